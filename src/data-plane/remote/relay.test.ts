import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { until } from '../../../test/support/until.ts'
import { type ByteStream, writeLent } from '../../lib/bytes/byte-stream.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { buildPreamble, PREAMBLE_BYTES, RELAY_TYPE } from '../../link/planes/dial-header.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import { WINDOW_BYTES } from '../../link/wire/wire-bounds.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { type Dial, DialFault, type DialReason, type DialRequest } from '../../model/dial.ts'
import { RelayLinks } from './relay-links.ts'
import { Near, reached, request } from './testing/test-near.ts'
import { TestTunnel } from './testing/test-tunnel.ts'
import { WorkerListener } from './worker-listener.ts'

const log = createLog({ level: 'silent' })
const folder = await mkdtemp(join(tmpdir(), 'relay-'))
const closers: (() => unknown)[] = []
after(async () => {
  for (const close of closers) await close()
  await rm(folder, { recursive: true, force: true })
})

let sockets = 0
const freshPath = (): string => join(folder, `${++sockets}.sock`)

interface PlanesOptions {
  readonly dial?: Dial
  readonly sessionStreams?: number
  readonly preambleMs?: number
  readonly lastBytesMs?: number
}

/** A plane `w1` that has visitors, and `w2` that has tunnels: by default a new one for each dial. */
async function planes({ dial, sessionStreams, preambleMs, lastBytesMs }: PlanesOptions = {}) {
  const tunnels: TestTunnel[] = []
  const asked: DialRequest[] = []
  const path = freshPath()
  const listener = new WorkerListener({
    answer() {},
    log,
    ...(preambleMs !== undefined && { preambleMs }),
    ...(lastBytesMs !== undefined && { lastBytesMs }),
    dial: async (one) => {
      asked.push(one)
      if (dial) return dial(one)
      const tunnel = new TestTunnel()
      tunnels.push(tunnel)
      return tunnel
    },
  })
  await listener.listen(path)
  const links = new RelayLinks({
    log,
    pathOf: (id) => (id === 'w2' ? path : undefined),
    ...(sessionStreams !== undefined && { sessionStreams }),
  })
  closers.push(
    () => links.close(),
    () => listener.close(),
  )
  const open = async (): Promise<{ near: Near; tunnel: TestTunnel }> => {
    const near = new Near(reached(await links.dial('w2', request)))
    return { near, tunnel: tunnels.at(-1) ?? assert.fail('nothing was dialled') }
  }
  return { listener, links, path, tunnels, asked, open }
}

function faultOf(result: ByteStream | DialFault): DialFault {
  return result instanceof DialFault ? result : assert.fail('it was reached')
}

describe('a dial at another plane', () => {
  test('carries its request unchanged', async () => {
    const { links, asked } = await planes()
    const requests = [
      request,
      { ...request, passthroughTls: false, proto: 'tcp', edge: 'none', requestId: 'rq_1' },
      { ...request, version: 'd'.repeat(64) },
    ] as const
    for (const one of requests) reached(await links.dial('w2', one))
    assert.deepEqual(asked, requests)
  })

  for (const reason of ['offline', 'busy', 'timeout', 'refused'] satisfies DialReason[]) {
    test(`that fails there as ${reason} fails here as ${reason}`, async () => {
      const { links, listener } = await planes({ dial: async () => new DialFault(reason, `because: ${reason}`) })
      const fault = faultOf(await links.dial('w2', request))
      assert.deepEqual([fault.reason, fault.message], [reason, `because: ${reason}`])
      assert.equal(listener.dials.streams, 0)
    })
  }

  test('that fails there as unreachable is offline here, since this plane was reached', async () => {
    const { links } = await planes({ dial: async () => new DialFault('unreachable', 'no way there') })
    const fault = faultOf(await links.dial('w2', request))
    assert.deepEqual([fault.reason, fault.message], ['offline', 'no way there'])
  })

  test('whose fault has an endless message is answered with its beginning', async () => {
    const { links } = await planes({ dial: async () => new DialFault('busy', '\u0001'.repeat(100_000)) })
    const fault = faultOf(await links.dial('w2', request))
    assert.equal(fault.reason, 'busy')
    assert.ok(fault.message.length <= 1000)
  })

  test('that throws there is offline here', async () => {
    const { links } = await planes({ dial: () => Promise.reject(new Error('broken')) })
    assert.equal(faultOf(await links.dial('w2', request)).reason, 'offline')
  })

  test('with a request that is too long is refused', async () => {
    const { links, asked } = await planes()
    const fault = faultOf(await links.dial('w2', { ...request, requestId: 'x'.repeat(PREAMBLE_BYTES) }))
    assert.equal(fault.reason, 'refused')
    assert.equal(asked.length, 0)
  })

  test('is offline when the plane is not known, does not listen, or closes before it answers', async () => {
    const path = freshPath()
    const links = new RelayLinks({ log, pathOf: (id) => (id === 'w2' ? path : undefined) })
    closers.push(() => links.close())
    assert.equal(faultOf(await links.dial('w9', request)).reason, 'offline')
    assert.equal(faultOf(await links.dial('w2', request)).reason, 'offline')
    const server = createServer((socket) => void socket.once('data', () => socket.destroy())).listen(path)
    await once(server, 'listening')
    assert.equal(faultOf(await links.dial('w2', request)).reason, 'offline')
    server.close()
  })

  test('is a timeout when there is no answer, and the stream is reset', async () => {
    const path = freshPath()
    const tunnel = new TestTunnel()
    const late = Promise.withResolvers<TestTunnel>()
    const listener = new WorkerListener({ answer() {}, log, dial: () => late.promise })
    await listener.listen(path)
    const links = new RelayLinks({ log, pathOf: () => path, answerMs: 20 })
    closers.push(
      () => links.close(),
      () => listener.close(),
    )
    assert.equal(faultOf(await links.dial('w2', request)).reason, 'timeout')
    late.resolve(tunnel)
    await until('the late tunnel is reset', () => tunnel.isReset && listener.dials.streams === 0)
  })

  test('after close is offline, and so is one that was waiting', async () => {
    const { links } = await planes({ dial: () => new Promise(() => {}) })
    const waiting = links.dial('w2', request)
    links.close()
    assert.equal(faultOf(await waiting).reason, 'offline')
    assert.equal(faultOf(await links.dial('w2', request)).reason, 'offline')
  })
})

describe('a relayed stream', () => {
  test('ends independently in each direction, the visitor first', async () => {
    const { open, listener } = await planes()
    const { near, tunnel } = await open()
    const upload = randomBytes(3_000_000)
    writeLent(near.stream, upload)
    near.stream.end()
    await until('the upload has ended', () => tunnel.isEndHeard)
    assert.ok(tunnel.bytes.equals(upload))
    assert.equal(listener.dials.streams, 1)
    tunnel.say(Buffer.from('answer'))
    tunnel.sayEnd()
    await until('it is closed', () => near.closes.length > 0 && listener.dials.streams === 0)
    assert.deepEqual([near.bytes.toString(), near.ends, near.closes], ['answer', 1, [undefined]])
  })

  test('ends independently in each direction, the service first', async () => {
    const { open, listener } = await planes()
    const { near, tunnel } = await open()
    const answer = randomBytes(3_000_000)
    tunnel.say(answer)
    tunnel.sayEnd()
    await until('the answer has ended', () => near.ends === 1)
    assert.ok(near.bytes.equals(answer))
    near.stream.write(Buffer.from('late'))
    near.stream.end()
    await until('it is closed', () => near.closes.length > 0 && listener.dials.streams === 0)
    assert.deepEqual([tunnel.bytes.toString(), tunnel.isReset, near.closes], ['late', false, [undefined]])
  })

  test('that either side resets is reset at the other, not ended', async () => {
    const { open, listener } = await planes()
    const left = await open()
    left.near.stream.reset()
    await until('the tunnel is reset', () => left.tunnel.isReset)
    assert.equal(left.tunnel.isEndHeard, false)
    const right = await open()
    right.tunnel.say(Buffer.from('half'))
    right.tunnel.reset()
    await until('the visitor knows', () => right.near.closes.length > 0)
    assert.ok(right.near.closes[0] instanceof Error)
    assert.equal(right.near.ends, 0)
    await until('nothing is open', () => listener.dials.streams === 0)
  })

  test('holds back a writer whose reader has stopped, in both directions, and then delivers everything', async () => {
    const { open } = await planes()
    const { near, tunnel } = await open()
    const chunk = randomBytes(16 * 1024)
    // Towards the service, which takes one piece and no more.
    tunnel.isStuck = true
    let written = 0
    const stream = near.stream as WireStream // streams of a session are
    // The preamble has used a little of the window.
    const isFull = (): boolean => written - stream.unsent >= WINDOW_BYTES - 1024
    while (!isFull()) {
      const before = near.drains
      do written += chunk.length
      while (writeLent(stream, chunk))
      await until('there is room, or the window is full', () => near.drains > before || isFull())
    }
    const { unsent } = stream
    assert.ok(unsent <= 256 * 1024, `${unsent} bytes wait at the visitor's plane`)
    const held = written - tunnel.bytes.length - unsent
    assert.ok(held <= WINDOW_BYTES, `${held} bytes wait at the plane of the tunnel`)
    tunnel.unstick()
    await until('all has arrived', () => tunnel.bytes.length === written)
    // Back: the visitor reads nothing.
    near.stream.pause()
    let said = 0
    while (!tunnel.isPaused && said < 64 * 1024 * 1024) {
      tunnel.say(chunk)
      said += chunk.length
      if (said % (64 * chunk.length) === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    assert.ok(said < 2 * 1024 * 1024, `${said} bytes were taken for nobody`)
    near.stream.resume()
    tunnel.sayEnd()
    await until('all has arrived', () => near.ends === 1)
    assert.equal(near.bytes.length, said)
    near.stream.reset()
  })

  test('is one of thousands, and outlives them when they are all reset at once', async () => {
    const { open, links, tunnels, listener } = await planes()
    const { near, tunnel } = await open()
    const many = await Promise.all(Array.from({ length: 4000 }, async () => reached(await links.dial('w2', request))))
    many.forEach((stream, i) => void stream.write(Buffer.from(`${i}`)))
    await until('all have arrived', () => tunnels.slice(1).every(({ heard }) => heard.length > 0))
    const texts = new Set(tunnels.slice(1).map(({ bytes }) => bytes.toString()))
    assert.equal(texts.size, many.length)
    // Half by the visitors, half by the services, each in one turn.
    for (const stream of many.slice(0, 2000)) stream.reset()
    for (const one of tunnels) if (one !== tunnel) one.reset()
    await until('they are gone', () => listener.dials.streams === 1)
    near.stream.write(Buffer.from('still here'))
    await until('it arrives', () => tunnel.bytes.toString() === 'still here')
    assert.equal(near.closes.length, 0)
  })

  test('is reset, not ended, when the other plane dies', async () => {
    const path = freshPath()
    let socket: Socket | undefined
    const server = createServer((accepted) => {
      socket = accepted
      const session = relaySession(accepted, {
        opens: false,
        onStream: (stream) => void stream.write(Buffer.concat([Buffer.alloc(2), Buffer.from('half')])),
        onClosed: () => session.close(),
      })
    }).listen(path)
    await once(server, 'listening')
    const links = new RelayLinks({ log, pathOf: () => path })
    const near = new Near(reached(await links.dial('w2', request)))
    await until('half is here', () => near.bytes.toString() === 'half')
    socket?.destroy()
    await until('it is closed', () => near.closes.length > 0)
    assert.ok(near.closes[0] instanceof Error)
    assert.equal(near.ends, 0)
    links.close()
    server.close()
  })
})

test('random writes, ends and resets of both sides arrive as they were sent', async () => {
  const { open, listener } = await planes({ lastBytesMs: 10 })
  const step = fc.record({
    side: fc.constantFrom('near' as const, 'far' as const),
    act: fc.oneof(
      { weight: 12, arbitrary: fc.integer({ min: 0, max: 90_000 }) },
      { weight: 2, arbitrary: fc.constant('end' as const) },
      { weight: 1, arbitrary: fc.constant('reset' as const) },
      { weight: 4, arbitrary: fc.constant('turn' as const) },
    ),
  })
  const property = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
    const { near, tunnel } = await open()
    const sent = { near: [] as Buffer[], far: [] as Buffer[] }
    const isEnded = { near: false, far: false }
    let isReset = false
    for (const { side, act } of [...steps, { side: 'near', act: 'end' }, { side: 'far', act: 'end' }] as typeof steps) {
      if (isReset) break
      if (act === 'turn') await new Promise((resolve) => setImmediate(resolve))
      else if (act === 'reset') {
        // When both directions have ended, nothing is left to reset.
        isReset = !(isEnded.near && isEnded.far)
        if (isReset) (side === 'near' ? near.stream : tunnel).reset()
      } else if (isEnded[side]) continue
      else if (act === 'end') {
        isEnded[side] = true
        if (side === 'near') near.stream.end()
        else tunnel.sayEnd()
      } else {
        const chunk = randomBytes(act)
        sent[side].push(chunk)
        if (side === 'far') tunnel.say(chunk)
        else {
          const lent = Buffer.from(chunk)
          writeLent(near.stream, lent)
          lent.fill(0xdb)
        }
      }
    }
    await until('it is over', () => near.closes.length > 0 && listener.dials.streams === 0)
    const there = Buffer.concat(sent.near)
    const back = Buffer.concat(sent.far)
    assert.ok(tunnel.bytes.equals(there.subarray(0, tunnel.bytes.length)))
    assert.ok(near.bytes.equals(back.subarray(0, near.bytes.length)))
    assert.equal(near.closes.length, 1)
    if (tunnel.isEndHeard) assert.equal(tunnel.bytes.length, there.length)
    if (near.ends > 0) assert.equal(near.bytes.length, back.length)
    if (isReset) assert.ok(near.closes[0] instanceof Error)
    else {
      assert.deepEqual([near.closes[0], near.ends, tunnel.isEndHeard, tunnel.isReset], [undefined, 1, true, false])
      assert.deepEqual([tunnel.bytes.length, near.bytes.length], [there.length, back.length])
    }
  })
  await fc.assert(property, { numRuns: 150 })
})

describe('the door', () => {
  test('accepts no new streams once stopped, and open ones go on', async () => {
    const { listener, links, open } = await planes()
    const { near, tunnel } = await open()
    listener.stop()
    assert.equal(faultOf(await links.dial('w2', request)).reason, 'offline')
    near.stream.write(Buffer.from('x'))
    await until('it arrives', () => tunnel.bytes.toString() === 'x')
    assert.equal(listener.dials.streams, 1)
    await listener.close()
    await until('it is broken off', () => near.closes.length > 0 && tunnel.isReset)
    assert.equal(listener.dials.streams, 0)
  })

  test('replaces the socket of a dead process, and leaves none behind', async () => {
    const path = freshPath()
    const first = new WorkerListener({ answer() {}, log, dial: async () => new TestTunnel() })
    await first.listen(path)
    const second = new WorkerListener({ answer() {}, log, dial: async () => new TestTunnel() })
    await second.listen(path)
    await second.close()
    await first.close()
    await assert.rejects(once(connect(path), 'connect'), { code: 'ENOENT' })
    await new WorkerListener({ answer() {}, log, dial: async () => new TestTunnel() }).close()
  })

  const typed = (type: number, rest: Buffer): Buffer => {
    const head = Buffer.alloc(4)
    head.writeUInt32BE(type)
    return Buffer.concat([head, rest])
  }
  const part = (text: string): Buffer =>
    Buffer.concat([Buffer.from([text.length >> 8, text.length & 255]), Buffer.from(text)])
  const hostile: Record<string, Buffer> = {
    'another type': typed(3, part('{}')),
    'a preamble that is too long': typed(RELAY_TYPE, Buffer.from([0xff, 0xff])),
    'an empty preamble': typed(RELAY_TYPE, Buffer.from([0, 0])),
    'what is not JSON': typed(RELAY_TYPE, part('{"tunnelId"')),
    'no object': typed(RELAY_TYPE, part('[]')),
    'a port that is none': typed(RELAY_TYPE, part(JSON.stringify({ ...request, port: 65_536 }))),
    'a version that is too long': typed(RELAY_TYPE, part(JSON.stringify({ ...request, version: 'd'.repeat(65) }))),
    'an unknown protocol': typed(RELAY_TYPE, part(JSON.stringify({ ...request, proto: 'toString' }))),
    'half a preamble': typed(RELAY_TYPE, Buffer.from([0, 9, 0x7b])),
  }
  for (const [name, first] of Object.entries(hostile)) {
    test(`resets a stream that begins with ${name}, and no other`, async () => {
      const { path, listener, asked } = await planes({ preambleMs: 20 })
      const session = relaySession(connect({ path, allowHalfOpen: true }), {
        opens: true,
        onStream() {},
        onClosed() {},
      })
      const good = session.open(buildPreamble(request) ?? assert.fail()) as WireStream // there is room
      const bad = session.open(first) as WireStream // there is room
      await until('it is reset', () => bad.isClosed)
      await until('the other is answered', () => good.take(2))
      assert.deepEqual([good.isClosed, listener.dials.streams, asked.length], [false, 1, 1])
      session.close()
      await until('nothing is open', () => listener.dials.streams === 0)
    })
  }

  test('closes a connection that breaks the protocol', async () => {
    const { path } = await planes()
    const socket = connect(path)
    socket.on('error', () => {}).resume()
    socket.write(Buffer.alloc(1024))
    await once(socket, 'close')
  })
})
