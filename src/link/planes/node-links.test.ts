import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openGate } from '../../../test/support/tcp-gate.ts'
import { until } from '../../../test/support/until.ts'
import { Near, reached, request } from '../../data-plane/remote/testing/test-near.ts'
import { newAuthority, type TestNode, TestNodes } from '../../data-plane/remote/testing/test-nodes.ts'
import { type ByteStream, writeLent } from '../../lib/bytes/byte-stream.ts'
import { DialFault, type DialReason } from '../../model/dial.ts'
import { WINDOW_BYTES } from '../wire/wire-bounds.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { PREAMBLE_BYTES } from './dial-header.ts'

const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
})

function newNodes(): TestNodes {
  const nodes = new TestNodes()
  closers.push(() => nodes.close())
  return nodes
}

/** A server that speaks no TLS; resolves with its port. */
async function listening(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer(onConnection).listen(0, '127.0.0.1')
  await once(server, 'listening')
  closers.push(() => server.close())
  return (server.address() as { port: number }).port // it listens on a port
}

/** The node `a`, which has visitors, and `b`, which has tunnels. */
async function pair({ a: near = {}, b: far = {} }: Partial<Record<'a' | 'b', Parameters<TestNodes['start']>[1]>> = {}) {
  const nodes = newNodes()
  const a = await nodes.start('a', near)
  const b = await nodes.start('b', far)
  return { nodes, a, b }
}

const atB = { nodeId: 'b', planeId: 'w1' }

async function open(a: TestNode, b: TestNode, at = atB) {
  const near = new Near(reached(await a.links.dial(at, request)))
  return { near, tunnel: b.tunnels.at(-1) ?? assert.fail('nothing was dialled') }
}

function faultOf(result: ByteStream | DialFault): DialFault {
  return result instanceof DialFault ? result : assert.fail('it was reached')
}

describe('a stream between nodes', () => {
  test('carries its dial request unchanged, in both directions and between three nodes', async () => {
    const { nodes, a, b } = await pair()
    const c = await nodes.start('c')
    const asked = { ...request, requestId: 'rq_1', version: 'd'.repeat(64) }
    for (const [from, to, nodeId] of [
      [a, b, 'b'],
      [b, a, 'a'],
      [a, c, 'c'],
      [c, b, 'b'],
    ] as const) {
      const near = new Near(reached(await from.links.dial({ nodeId, planeId: 'w1' }, asked)))
      const tunnel = to.tunnels.at(-1) ?? assert.fail('nothing was dialled')
      near.stream.write(Buffer.from('there'))
      tunnel.say(Buffer.from('back'))
      await until('both arrive', () => near.bytes.toString() === 'back' && tunnel.bytes.toString() === 'there')
      assert.deepEqual(to.asked.at(-1), asked)
    }
    assert.deepEqual([a.links.links, a.links.dialled, a.links.streams, a.links.unreached], [2, 2, 2, 0])
    assert.deepEqual([b.listener.links, b.listener.dials.streams, b.listener.dials.accepted], [2, 2, 2])
  })

  test('ends independently in each direction', async () => {
    const { a, b } = await pair()
    const { near, tunnel } = await open(a, b)
    near.stream.write(Buffer.from('question'))
    near.stream.end()
    await until('the question has ended', () => tunnel.isEndHeard)
    assert.deepEqual([tunnel.bytes.toString(), b.listener.dials.streams], ['question', 1])
    tunnel.say(Buffer.from('answer'))
    tunnel.sayEnd()
    await until('it is closed', () => near.closes.length > 0 && b.listener.dials.streams === 0)
    assert.deepEqual([near.bytes.toString(), near.ends, near.closes], ['answer', 1, [undefined]])
  })

  test('that either side resets is reset at the other, not ended', async () => {
    const { a, b } = await pair()
    const left = await open(a, b)
    left.near.stream.reset()
    await until('the tunnel is reset', () => left.tunnel.isReset)
    assert.equal(left.tunnel.isEndHeard, false)
    const right = await open(a, b)
    right.tunnel.say(Buffer.from('half'))
    right.tunnel.reset()
    await until('the visitor knows', () => right.near.closes.length > 0)
    assert.ok(right.near.closes[0] instanceof Error)
    assert.equal(right.near.ends, 0)
    await until('nothing is open', () => b.listener.dials.streams === 0)
  })

  test('carries twenty megabytes each way, unchanged', async () => {
    const { a, b } = await pair()
    const { near, tunnel } = await open(a, b)
    const [there, back] = [randomBytes(20_000_000), randomBytes(20_000_000)]
    tunnel.say(back)
    tunnel.sayEnd()
    for (let at = 0; at < there.length; ) {
      const before = near.drains
      const hasRoom = writeLent(near.stream, there.subarray(at, at + 50_000))
      at += 50_000
      if (!hasRoom) await until('there is room', () => near.drains > before)
    }
    near.stream.end()
    await until('all has arrived', () => near.closes.length > 0)
    assert.deepEqual([digest(tunnel.bytes), digest(near.bytes)], [digest(there), digest(back)])
    assert.deepEqual([near.closes, tunnel.isReset], [[undefined], false])
  })

  test('whose reader is stuck holds back its writer, and no other stream', async () => {
    const { a, b } = await pair()
    const { near, tunnel } = await open(a, b)
    tunnel.isStuck = true
    const chunk = randomBytes(16 * 1024)
    const stream = near.stream as WireStream // streams of a session are
    let written = 0
    // The preamble has used a little of the window.
    const isFull = (): boolean => written - stream.unsent >= WINDOW_BYTES - 1024
    while (!isFull()) {
      const before = near.drains
      do written += chunk.length
      while (writeLent(stream, chunk))
      await until('there is room, or the window is full', () => near.drains > before || isFull())
    }
    const other = await open(a, b)
    other.near.stream.write(Buffer.from('past it'))
    await until('it arrives', () => other.tunnel.bytes.toString() === 'past it')
    assert.ok(written - stream.unsent <= WINDOW_BYTES, 'the window of a stuck reader does not grow')
    tunnel.unstick()
    await until('all has arrived', () => tunnel.bytes.length === written)
  })

  test('has a larger window where the round trip is long', async () => {
    const { nodes, a, b } = await pair({ a: { links: { dialMs: 10_000 } } })
    const server = createServer((near) => {
      const far = connect(b.port, '127.0.0.1')
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('error', () => {}).on('close', () => to.destroy())
        from.on('data', (chunk) => void setTimeout(() => to.write(chunk), 25))
      }
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    closers.push(() => server.close())
    nodes.addresses.set('b', { host: '127.0.0.1', port: (server.address() as { port: number }).port }) // it listens on a port
    const { near } = await open(a, b)
    const stream = near.stream as WireStream // streams of a session are
    const chunk = randomBytes(64 * 1024)
    let written = 0
    await until('the window has grown', async () => {
      const before = near.drains
      do written += chunk.length
      while (writeLent(stream, chunk) && !stream.isClosed)
      await until('there is room', () => near.drains > before)
      // Credit for more than was sent in all means that the window has grown.
      return stream.credited - written > WINDOW_BYTES
    })
    near.stream.reset()
  })

  test('is one of hundreds, and outlives them when they are reset at once', async () => {
    const { a, b } = await pair()
    const { near, tunnel } = await open(a, b)
    const many = await Promise.all(Array.from({ length: 500 }, async () => reached(await a.links.dial(atB, request))))
    many.forEach((stream, i) => void stream.write(Buffer.from(`${i}`)))
    await until('all have arrived', () => b.tunnels.slice(1).every(({ heard }) => heard.length > 0))
    assert.equal(new Set(b.tunnels.slice(1).map(({ bytes }) => bytes.toString())).size, many.length)
    assert.equal(b.listener.links, 1)
    for (const stream of many) stream.reset()
    await until('they are gone', () => b.listener.dials.streams === 1)
    near.stream.write(Buffer.from('still here'))
    await until('it arrives', () => tunnel.bytes.toString() === 'still here')
    assert.equal(near.closes.length, 0)
  })
})

describe('a dial at another node', () => {
  for (const reason of ['offline', 'busy', 'timeout', 'refused'] satisfies DialReason[]) {
    test(`that fails there as ${reason} fails here as ${reason}`, async () => {
      const { a } = await pair({ b: { dial: async () => new DialFault(reason, `because: ${reason}`) } })
      const fault = faultOf(await a.links.dial(atB, request))
      assert.deepEqual([fault.reason, fault.message], [reason, `because: ${reason}`])
    })
  }

  test('that is too long is refused without being sent', async () => {
    const { a, b } = await pair()
    const fault = faultOf(await a.links.dial(atB, { ...request, requestId: 'x'.repeat(PREAMBLE_BYTES) }))
    assert.deepEqual([fault.reason, b.asked.length], ['refused', 0])
  })

  test('that the tunnel does not answer is a timeout, since the node is alive', async () => {
    const { a } = await pair({ a: { links: { dialMs: 300, lookMs: 20 } }, b: { dial: () => new Promise(() => {}) } })
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'timeout')
    assert.equal(a.links.links, 1)
  })

  test('is unreachable when the node is not known, does not listen, or is closed', async () => {
    const { nodes, a, b } = await pair()
    assert.equal(faultOf(await a.links.dial({ nodeId: 'z', planeId: 'w1' }, request)).reason, 'unreachable')
    await b.close()
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    nodes.addresses.set('b', { host: '127.0.0.1', port: await listening((socket) => socket.destroy()) })
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    a.links.close()
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    assert.deepEqual([a.links.dialled, a.links.unreached], [4, 4])
  })

  test('is unreachable when another node is at the address, and is not sent to that one', async () => {
    const { nodes, a, b } = await pair()
    nodes.addresses.set('c', { host: '127.0.0.1', port: b.port })
    const fault = faultOf(await a.links.dial({ nodeId: 'c', planeId: 'w1' }, request))
    assert.equal(fault.reason, 'unreachable')
    assert.match(causes(fault), /node b answered instead/)
    assert.equal(b.asked.length, 0)
  })

  for (const [name, isFirst] of [
    ['the node that is dialled', false],
    ['the node that dials', true],
  ] as const) {
    test(`is unreachable when ${name} has another authority`, async () => {
      const authority = newAuthority()
      const { a, b } = await pair(isFirst ? { a: { authority } } : { b: { authority } })
      assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
      assert.deepEqual([b.asked.length, b.listener.links], [0, 0])
    })
  }

  test('fails fast while the node is known to be silent, and one dial at a time tries to connect again', async () => {
    let connections = 0
    const port = await listening((socket) => {
      connections++
      socket.on('error', () => {})
    })
    const nodes = newNodes()
    nodes.addresses.set('z', { host: '127.0.0.1', port })
    const dialMany = async (node: TestNode): Promise<void> => {
      const all = await Promise.all(
        Array.from({ length: 20 }, () => node.links.dial({ nodeId: 'z', planeId: 'w1' }, request)),
      )
      assert.ok(all.every((result) => faultOf(result).reason === 'unreachable'))
    }
    const patient = await nodes.start('a', { links: { dialMs: 100, retryMs: 1e9 } })
    await dialMany(patient)
    await dialMany(patient)
    assert.equal(connections, 1)
    const eager = await nodes.start('b', { links: { dialMs: 100, retryMs: 0 } })
    await until('it is tried a few times more', async () => {
      const before = connections
      await dialMany(eager)
      assert.ok(connections - before <= 1)
      return connections >= 4
    })
  })

  test('reaches a node that has just come back, for all dials that wait', async () => {
    const { nodes, a, b } = await pair({ a: { links: { retryMs: 0, othersMs: 1e9 } } })
    nodes.addresses.set('b', { host: '127.0.0.1', port: await listening((socket) => socket.destroy()) })
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    nodes.addresses.set('b', { host: '127.0.0.1', port: b.port })
    const asked = [a.links.dial(atB, request), a.links.dial(atB, request), a.links.dial(atB, request)]
    for (const stream of await Promise.all(asked)) assert.ok(!(stream instanceof DialFault))
  })

  test('reaches a node that was gone and came back, at the same address or another', async () => {
    const { nodes, a, b } = await pair({ a: { links: { retryMs: 0 } } })
    const { near } = await open(a, b)
    await b.close()
    await until('it is broken off', () => near.closes.length > 0)
    assert.ok(near.closes[0] instanceof Error)
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    const again = await nodes.start('b', { on: { host: '127.0.0.1', port: b.port } })
    await open(a, again)
    await again.close()
    const elsewhere = await nodes.start('b')
    await until('it is found', async () => !((await a.links.dial(atB, request)) instanceof DialFault))
    assert.ok(elsewhere.asked.length > 0)
  })
})

describe('a node that freezes', () => {
  test('loses its streams and its link, at both ends', async () => {
    const { nodes, a, b } = await pair({
      a: { links: { lookMs: 30, dialMs: 200, retryMs: 0 } },
      b: { listener: { lookMs: 30 } },
    })
    const gate = await openGate(b.port)
    closers.push(() => gate.shut())
    nodes.addresses.set('b', { host: '127.0.0.1', port: gate.port })
    const { near, tunnel } = await open(a, b)
    gate.hush()
    await until('the visitor knows', () => near.closes.length > 0)
    await until('the tunnel knows', () => tunnel.isReset)
    assert.ok(near.closes[0] instanceof Error)
    assert.deepEqual([near.ends, tunnel.isEndHeard, a.links.links, b.listener.links], [0, false, 0, 0])
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    gate.speak()
    await until('it is back', async () => !((await a.links.dial(atB, request)) instanceof DialFault))
  })

  test('is unreachable for a dial that it does not answer, even while its link is open', async () => {
    const { nodes, a, b } = await pair({ a: { links: { dialMs: 200 } } })
    const gate = await openGate(b.port)
    closers.push(() => gate.shut())
    nodes.addresses.set('b', { host: '127.0.0.1', port: gate.port })
    await open(a, b)
    gate.hush()
    assert.equal(faultOf(await a.links.dial(atB, request)).reason, 'unreachable')
    assert.equal(a.links.links, 1)
  })

  test('while its link is idle costs a dial no more than a new connection', async () => {
    const { nodes, a, b } = await pair({ a: { links: { lookMs: 30 } } })
    const gate = await openGate(b.port)
    closers.push(() => gate.shut())
    nodes.addresses.set('b', { host: '127.0.0.1', port: gate.port })
    const { near } = await open(a, b)
    near.stream.reset()
    await until('it is over', () => b.listener.dials.streams === 0)
    // The link is cut without notice, and the address leads to the node by another path.
    gate.hush()
    nodes.addresses.set('b', { host: '127.0.0.1', port: b.port })
    // Until it has been silent for so long that it must prove that it lives.
    await pause(5 * 30)
    await open(a, b)
    assert.deepEqual([a.links.links, a.links.dialled], [1, 2])
  })
})

describe('an idle link', () => {
  test('is closed by the end that opened it, and opened again when needed', async () => {
    const { a, b } = await pair({ a: { links: { lookMs: 10, idleMs: 50 } } })
    const { near } = await open(a, b)
    near.stream.reset()
    await until('it is closed', () => a.links.links === 0 && b.listener.links === 0)
    await open(a, b)
  })

  test('is closed by the door too', async () => {
    const { a, b } = await pair({ b: { listener: { lookMs: 10, idleMs: 50 } } })
    const { near } = await open(a, b)
    near.stream.reset()
    await until('it is closed', () => a.links.links === 0 && b.listener.links === 0)
  })
})

describe('a node with several planes at one port', () => {
  test('is reached through any, and soon each of them directly', async () => {
    const nodes = newNodes()
    const a = await nodes.start('a')
    const b1 = await nodes.start('b', { on: { host: '127.0.0.1', port: 0, isShared: true } })
    const on = { host: '127.0.0.1', port: b1.port, isShared: true }
    const b2 = await nodes.start('b', { on, planeId: 'w2' })
    const b3 = await nodes.start('b', { on, planeId: 'w3' })
    const planes = [b1, b2, b3]
    for (const [i, plane] of planes.entries()) {
      const at = { nodeId: 'b', planeId: `w${i + 1}` }
      await until('the plane itself is asked', async () => {
        const before = plane.asked.length
        const stream = reached(await a.links.dial(at, request))
        stream.reset()
        return plane.asked.length > before
      })
    }
    // From now on each dial goes to the right one.
    const counts = planes.map(({ asked }) => asked.length)
    for (const i of [0, 1, 2, 0, 1, 2]) {
      reached(await a.links.dial({ nodeId: 'b', planeId: `w${i + 1}` }, request))
    }
    assert.deepEqual(
      planes.map(({ asked }, i) => asked.length - (counts[i] ?? 0)),
      [2, 2, 2],
    )
    assert.equal(a.links.links, 3)
  })

  test('is reached through another plane when the plane does not exist, with a bounded number of tries', async () => {
    const { a, b } = await pair()
    let most = 0
    for (let i = 0; i < 40; i++) {
      const stream = reached(await a.links.dial({ nodeId: 'b', planeId: 'w9' }, request))
      stream.reset()
      await new Promise((resolve) => setImmediate(resolve))
      most = Math.max(most, b.listener.links)
    }
    assert.equal(b.asked.length, 40)
    await until('all but one are closed', () => b.listener.links === 1)
    // The link itself, and six tries for each of the two known planes.
    assert.ok(most <= 13, `${most} connections`)
  })

  test('loses a plane that leaves: open streams go on, new ones use another plane', async () => {
    const nodes = newNodes()
    const a = await nodes.start('a')
    const b1 = await nodes.start('b', { on: { host: '127.0.0.1', port: 0, isShared: true } })
    const { near, tunnel } = await open(a, b1)
    const b2 = await nodes.start('b', { on: { host: '127.0.0.1', port: b1.port, isShared: true }, planeId: 'w2' })
    b1.listener.stop()
    await until('the link is retired', () => a.links.links === 0)
    await open(a, b2, { nodeId: 'b', planeId: 'w1' })
    near.stream.write(Buffer.from('still here'))
    await until('it arrives', () => tunnel.bytes.toString() === 'still here')
    near.stream.reset()
    await until('the link is closed', () => b1.listener.links === 0)
    await b1.listener.close()
  })
})

describe('a node that has reached tunnels', () => {
  /** Tells `a` of tunnels that are gone at `b`. */
  const reported = async () => {
    const gone: (readonly string[])[] = []
    const { a, b } = await pair({ a: { links: { onGone: (ids) => void gone.push(ids) } } })
    const dial = async (tunnelId: string) => new Near(reached(await a.links.dial(atB, { ...request, tunnelId })))
    return { gone, a, b, dial }
  }

  test('is told when they are gone, once for all that end in one turn, and of no others', async () => {
    const { gone, b, dial } = await reported()
    for (const id of ['tn_1', 'tn_2', 'tn_2', 'tn_3']) await dial(id)
    for (const id of ['tn_2', 'tn_1', 'tn_9', 'tn_1']) b.listener.tunnelEnded(id)
    await until('it is told', () => gone.length > 0)
    await dial('tn_1')
    b.listener.tunnelEnded('tn_2')
    b.listener.tunnelEnded('tn_1')
    await until('it is told again', () => gone.length > 1)
    assert.deepEqual(gone, [['tn_2', 'tn_1'], ['tn_1']])
  })

  test('is told of one that ended while it was dialled', async () => {
    const gone: (readonly string[])[] = []
    const dialled = Promise.withResolvers<void>()
    const { a, b } = await pair({
      a: { links: { onGone: (ids) => void gone.push(ids) } },
      b: {
        dial: async () => {
          await dialled.promise
          return new DialFault('offline', 'it is gone')
        },
      },
    })
    const outcome = a.links.dial(atB, request)
    await until('it is dialled', () => b.asked.length > 0)
    b.listener.tunnelEnded('tn_1')
    await until('it is told', () => gone.length > 0)
    dialled.resolve()
    assert.equal(faultOf(await outcome).reason, 'offline')
    assert.deepEqual(gone, [['tn_1']])
  })

  test('that is gone itself is not told, and nothing fails', async () => {
    const { gone, a, b, dial } = await reported()
    await dial('tn_1')
    a.links.close()
    b.listener.tunnelEnded('tn_1')
    await until('the link is closed', () => b.listener.links === 0)
    assert.deepEqual(gone, [])
  })
})

test('a node that is forgotten keeps its open streams, and its link closes with the last', async () => {
  const { a, b } = await pair()
  const { near, tunnel } = await open(a, b)
  a.links.forget('b')
  a.links.forget('b')
  near.stream.write(Buffer.from('still here'))
  await until('it arrives', () => tunnel.bytes.toString() === 'still here')
  assert.deepEqual([a.links.links, b.listener.links], [0, 1])
  near.stream.reset()
  await until('it is closed', () => b.listener.links === 0)
  await open(a, b)
  a.links.close()
  await until('it is broken off', () => b.listener.links === 0 && b.listener.dials.streams === 0)
})

function digest(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** The messages of an error and of all its causes. */
function causes(error: unknown): string {
  return error instanceof Error ? `${error.message}; ${causes(error.cause)}` : ''
}
