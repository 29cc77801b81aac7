import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { until } from '../../../test/support/until.ts'
import { connectNode } from '../../link/planes/connect-node.ts'
import { buildPreamble, LEAVE_TYPE, RELAY_TYPE } from '../../link/planes/dial-header.ts'
import { CALL_BYTES, CALL_TYPE } from '../../link/planes/node-calls.ts'
import { createNodeIdentity, tlsOptions } from '../../link/planes/node-identity.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import { streamTypes, typeHead } from '../../link/wire/stream-types.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { Near, reached, request } from './testing/test-near.ts'
import { type TestNodeOptions, TestNodes } from './testing/test-nodes.ts'

const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
})

/** Resolves when the other end has closed it, with a reset or without. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

async function pair({ a: near = {}, b: far = {} }: { a?: TestNodeOptions; b?: TestNodeOptions } = {}) {
  const nodes = new TestNodes()
  closers.push(() => nodes.close())
  return { nodes, a: await nodes.start('a', near), b: await nodes.start('b', far) }
}

const atB = { nodeId: 'b', planeId: 'w1' }

describe('the door of a node', () => {
  const garbage: Record<string, Buffer> = {
    'random bytes': randomBytes(4096),
    'an HTTP request': Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'),
    'the preamble of a stream in plain text': buildPreamble(request) ?? assert.fail(),
    'a handshake record that is too long': Buffer.concat([Buffer.from([22, 3, 1, 255, 255]), Buffer.alloc(65_535)]),
  }
  for (const [name, bytes] of Object.entries(garbage)) {
    test(`closes a connection that begins with ${name}, and serves others`, async () => {
      const { a, b } = await pair()
      const socket = connect(b.port, '127.0.0.1')
      socket.on('error', () => {}).resume()
      socket.write(bytes)
      await closed(socket)
      const near = new Near(reached(await a.links.dial(atB, request)))
      near.stream.reset()
      assert.deepEqual([b.asked.length, b.listener.links], [1, 1])
    })
  }

  test('closes a connection that sends nothing, or only part of a handshake', async () => {
    const { b } = await pair({ b: { listener: { handshakeMs: 100 } } })
    for (const first of [Buffer.alloc(0), Buffer.from([22, 3, 1])]) {
      const socket = connect(b.port, '127.0.0.1')
      socket.on('error', () => {}).resume()
      socket.write(first)
      // Bytes that trickle in do not extend the time.
      const trickle = setInterval(() => void (first.length > 0 && socket.write(Buffer.from([0]))), 20)
      await closed(socket)
      clearInterval(trickle)
    }
  })

  test('accepts nodes while strangers hold connections open', async () => {
    const { a, b } = await pair({ b: { listener: { maxHandshakes: 4 } } })
    const sockets = Array.from({ length: 20 }, () =>
      connect(b.port, '127.0.0.1')
        .on('error', () => {})
        .resume(),
    )
    await until('most had to make room', () => sockets.filter(({ closed }) => closed).length >= 16)
    reached(await a.links.dial(atB, request)).reset()
    for (const socket of sockets) socket.destroy()
  })

  test('reads nothing from a connection that is not from a node, even after its handshake', async () => {
    const { nodes, b } = await pair()
    const { certPem } = nodes.authority
    const leaf = nodes.authority.issue(['app.example.com'])
    for (const tls of [tlsOptions({ ca: certPem }), tlsOptions({ ...leaf, ca: certPem })]) {
      const socket = connectTls({ ...tls.linkTls, host: '127.0.0.1', port: b.port })
      socket.on('error', () => {}).resume()
      await once(socket, 'secureConnect')
      socket.write(buildPreamble(request) ?? assert.fail())
      await closed(socket)
    }
    assert.deepEqual([b.asked.length, b.listener.links], [0, 0])
  })

  /** A session of a node that breaks the rules. */
  async function session(nodes: TestNodes, port: number) {
    const identity = createNodeIdentity({ nodeId: 'h', planeId: 'w1' }, nodes.authority)
    const { signal } = new AbortController()
    const address = { host: '127.0.0.1', port }
    const { socket } = await connectNode({ identity, nodeId: 'b', address, withinMs: 10_000, signal })
    const mux = relaySession(socket, { opens: true, isFar: true, onStream() {}, onClosed() {} })
    closers.push(() => mux.close())
    return mux
  }

  const streams: Record<string, Buffer> = {
    'an unknown type': typeHead(3),
    'a type that only the door may open': typeHead(LEAVE_TYPE),
    'a second heartbeat': typeHead(streamTypes.heartbeat),
    'a preamble that is none': Buffer.concat([typeHead(RELAY_TYPE), Buffer.from([0, 2, 0x7b, 0x7b])]),
    'half a preamble': Buffer.concat([typeHead(RELAY_TYPE), Buffer.from([0, 9, 0x7b])]),
  }
  for (const [name, first] of Object.entries(streams)) {
    test(`resets a stream with ${name}, and no other`, async () => {
      const { nodes, b } = await pair({ b: { listener: { preambleMs: 20 } } })
      const mux = await session(nodes, b.port)
      mux.open(typeHead(streamTypes.heartbeat))
      const good = mux.open(buildPreamble(request) ?? assert.fail()) as WireStream // there is room
      const bad = mux.open(first) as WireStream // there is room
      await until('it is reset', () => bad.isClosed)
      await until('the other is answered', () => good.take(2))
      assert.deepEqual([good.isClosed, b.listener.dials.streams, b.listener.links], [false, 1, 1])
    })
  }

  const calls: Record<string, string> = {
    'no JSON': '{"ask":',
    'no object': '[1]',
    'a key twice': '{"ask":1,"ask":2}',
    'a hostile key': '{"ask":{"__proto__":{"isAdmin":true}}}',
    'endless depth': `{"ask":${'['.repeat(10_000)}`,
    'too many values': `{"ask":[${'1,'.repeat(100_001)}1]}`,
    'no end': `{"ask":"${'x'.repeat(CALL_BYTES)}`,
  }
  for (const [name, text] of Object.entries(calls)) {
    test(`answers a call with ${name} with a fault, and does not pass it on`, async () => {
      let asked = 0
      const { nodes, b } = await pair({ b: { answer: async () => ++asked, calls: { askMs: 50 } } })
      const mux = await session(nodes, b.port)
      const stream = mux.open(Buffer.concat([typeHead(CALL_TYPE), Buffer.from(text)])) as WireStream // there is room
      const near = new Near(stream)
      await until('it is over', () => near.closes.length > 0 || near.ends > 0)
      // A call that stops in the middle is reset when its time is over.
      assert.match(near.bytes.toString(), /^$|^{"fault":"/)
      assert.deepEqual([asked, b.listener.links], [0, 1])
    })
  }

  test('closes a connection that breaks the protocol', async () => {
    const { nodes, b } = await pair()
    const identity = createNodeIdentity({ nodeId: 'h', planeId: 'w1' }, nodes.authority)
    const socket = connectTls({ ...identity.linkTls, host: '127.0.0.1', port: b.port })
    socket.on('error', () => {}).resume()
    socket.write(Buffer.alloc(1024))
    await closed(socket)
    assert.equal(b.listener.links, 0)
  })
})

describe('a call', () => {
  test('is answered with the value of the other node, which is told who asks', async () => {
    const { a } = await pair({ a: { planeId: 'w7' } })
    const value = { list: [1, 'ä', null, true], deep: { a: { b: {} } } }
    assert.deepEqual(await a.links.call('b', value, { withinMs: 10_000 }), {
      from: { nodeId: 'a', planeId: 'w7' },
      value,
    })
    assert.equal(a.links.links, 1)
  })

  test('and its answer may be large', async () => {
    const { a } = await pair({ b: { answer: async (_, value) => value } })
    const value = Array.from({ length: 50_000 }, (_, i) => `tunnel ${i}`)
    assert.ok(JSON.stringify(value).length > 600_000)
    assert.deepEqual(await a.links.call('b', value, { withinMs: 10_000 }), value)
  })

  const rejected = async (call: Promise<unknown>, reason: LinkFault['reason'], message: RegExp): Promise<void> => {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof LinkFault)
      assert.equal(error.reason, reason)
      assert.match(error.message, message)
      return true
    })
  }

  test('that is too large is not sent, and an answer that is too large is a fault', async () => {
    let asked = 0
    const { a } = await pair({ b: { answer: async () => 'x'.repeat(CALL_BYTES + asked++) } })
    await rejected(a.links.call('b', 'x'.repeat(CALL_BYTES), { withinMs: 10_000 }), 'invalid', /longer than/)
    await rejected(a.links.call('b', 1n, { withinMs: 10_000 }), 'invalid', /not JSON/)
    assert.equal(asked, 0)
    await rejected(a.links.call('b', 1, { withinMs: 10_000 }), 'failed', /longer than/)
  })

  test('that fails at the other node rejects with its message, truncated', async () => {
    const { a } = await pair({ b: { answer: () => Promise.reject(new Error(`no: ${'x'.repeat(5000)}`)) } })
    await assert.rejects(a.links.call('b', 1, { withinMs: 10_000 }), (error) => {
      assert.ok(error instanceof LinkFault)
      assert.deepEqual([error.reason, error.message.length], ['failed', 1000])
      return true
    })
  })

  test('without an answer ends in time, at both ends', async () => {
    const never = { answer: () => new Promise(() => {}) }
    const { a } = await pair({ b: never })
    await rejected(a.links.call('b', 1, { withinMs: 50 }), 'timeout', /no answer in \d+ ms/)
    const { a: patient } = await pair({ b: { ...never, calls: { answerMs: 30 } } })
    await rejected(patient.links.call('b', 1, { withinMs: 10_000 }), 'failed', /no answer in time/)
  })

  test('beyond the limit of calls at once is a fault, and later ones are answered', async () => {
    const answer = Promise.withResolvers<number>()
    const { a } = await pair({ b: { answer: () => answer.promise, calls: { maxCalls: 2 } } })
    const first = [a.links.call('b', 1, { withinMs: 10_000 }), a.links.call('b', 2, { withinMs: 10_000 })]
    await rejected(a.links.call('b', 3, { withinMs: 10_000 }), 'failed', /too many/)
    answer.resolve(7)
    assert.deepEqual(await Promise.all(first), [7, 7])
    assert.equal(await a.links.call('b', 4, { withinMs: 10_000 }), 7)
  })

  test('tells a node that is not there from one that goes meanwhile', async () => {
    const { a, b } = await pair({ b: { answer: () => new Promise(() => {}) } })
    await rejected(a.links.call('z', 1, { withinMs: 10_000 }), 'unreachable', /not known/)
    const waiting = a.links.call('b', 1, { withinMs: 10_000 })
    await until('there is a link', () => b.listener.links === 1)
    await Promise.all([rejected(waiting, 'closed', /no answer/), b.close()])
    await rejected(a.links.call('b', 1, { withinMs: 10_000 }), 'unreachable', /cannot be reached/)
  })
})
