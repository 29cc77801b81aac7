import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { answerPings, Heartbeat, watchSilence } from './heartbeat.ts'
import type { MuxOptions } from './mux.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { Ends, Heard } from './testing/test-link.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

/** The head of a frame and a ping. */
const PING_FRAME_BYTES = 8 + 4

const answering = {
  onStream(stream: WireStream, type: number) {
    assert.equal(type, streamTypes.heartbeat)
    answerPings(stream)
  },
}

/** Only timers are mocked: the immediates that they set run when the turn of the event loop ends. */
const endOfTurn = () => new Promise((resolve) => setImmediate(resolve))

/** Lets time pass while the loop runs, so no timer is late; a long `tick` is a loop that was blocked. */
async function pass(t: TestContext, ends: Ends, ms: number): Promise<void> {
  for (let i = 0; i < ms; i++) {
    ends.timeMs++
    t.mock.timers.tick(1)
    await endOfTurn()
  }
}

/** Blocks the whole process, as when a machine sleeps. */
const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const codes = (died: readonly WireError[]): string[] => died.map(({ code }) => code)

test('every ping is answered in one frame, however it was cut', () => {
  const ends = new Ends({ server: answering })
  const stream = ends.agent.open(typeHead(streamTypes.heartbeat))
  if (stream instanceof WireError) assert.fail(stream)
  const heard = new Heard()
  stream.attach(heard)
  stream.write(Buffer.from('42ce5613', 'hex'))
  ends.settle(1)
  assert.equal(heard.bytes.toString('hex'), '42ce5613')
  const sent = Buffer.concat(ends.link.pipes.server.log).toString('hex')
  assert.ok(sent.includes('000004100000000342ce5613'), sent)
})

test('a ping is sent at once and then every interval, and its round trip is measured', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends({ server: answering })
  const died: WireError[] = []
  const heartbeat = new Heartbeat(ends.agent, {
    intervalMs: 1000,
    toleranceMs: 500,
    onDead: (error) => died.push(error),
    now: () => ends.timeMs,
  })
  for (const trip of [30, 20, 80]) {
    const sent = ends.agent.bytesOut
    ends.turn('agent')
    assert.ok(ends.agent.bytesOut > sent)
    ends.timeMs += trip
    ends.settle()
    t.mock.timers.tick(1000)
  }
  // The recent minimum of 20, which has grown by a quarter.
  assert.equal(ends.agent.roundTripMs, 25)
  assert.deepEqual(died, [])
  heartbeat.stop()
})

test('a peer that does not answer within interval and tolerance is dead, once', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends({ server: { onStream() {} } })
  const died: WireError[] = []
  new Heartbeat(ends.agent, { intervalMs: 1000, toleranceMs: 500, onDead: (error) => died.push(error) })
  ends.settle()
  await pass(t, ends, 1499)
  assert.deepEqual(died, [])
  await pass(t, ends, 1)
  assert.deepEqual(codes(died), ['dead_peer'])
  await pass(t, ends, 10_000)
  assert.deepEqual(codes(died), ['dead_peer'])
})

test('a peer that answers something else is dead', () => {
  const onStream = (stream: WireStream): void =>
    stream.attach({ data: () => void stream.write(Buffer.from('nope')), end() {}, drain() {}, closed() {} })
  const ends = new Ends({ server: { onStream } })
  const died: WireError[] = []
  new Heartbeat(ends.agent, { onDead: (error) => died.push(error) })
  ends.settle()
  assert.deepEqual(codes(died), ['dead_peer'])
})

test('silence is noticed after the limit, which any byte resets', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends({ server: { onStream() {} } })
  const died: WireError[] = []
  watchSilence(ends.server, { limitMs: 25_000, onDead: (error) => died.push(error) })
  for (const ms of [20_000, 24_500, 24_999]) {
    await pass(t, ends, ms)
    ends.agent.open(typeHead(streamTypes.bind))
    ends.settle()
  }
  await pass(t, ends, 24_999)
  assert.deepEqual(died, [])
  await pass(t, ends, 1)
  assert.deepEqual(codes(died), ['dead_peer'])
})

test('whatever an agent announces, silence may last a minute at most', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends()
  let died = 0
  watchSilence(ends.server, { limitMs: 3_600_000, onDead: () => died++ })
  await pass(t, ends, 59_999)
  assert.equal(died, 0)
  await pass(t, ends, 1)
  assert.equal(died, 1)
})

describe('data that has arrived but is not read when the time is over', () => {
  test('counts as an answer in time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const ends = new Ends({ server: answering })
    const died: WireError[] = []
    const heartbeat = new Heartbeat(ends.agent, { intervalMs: 1000, toleranceMs: 500, onDead: (e) => died.push(e) })
    await pass(t, ends, 1499)
    t.mock.timers.tick(1)
    ends.settle()
    await endOfTurn()
    assert.deepEqual(died, [])
    heartbeat.stop()
  })

  test('counts as a byte in time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const ends = new Ends({ server: { onStream() {} } })
    const died: WireError[] = []
    const stop = watchSilence(ends.server, { limitMs: 25_000, onDead: (error) => died.push(error) })
    await pass(t, ends, 24_999)
    ends.timeMs++
    t.mock.timers.tick(1)
    ends.agent.open(typeHead(streamTypes.bind))
    ends.settle()
    await endOfTurn()
    assert.deepEqual(died, [])
    stop()
  })
})

describe('a process that was blocked for longer than a peer may be silent', () => {
  /** How long an answer takes. */
  const ROUND_TRIP_MS = 50

  /** Sessions in memory, on the clock of the process. */
  const start = (server: Partial<MuxOptions> = answering) => {
    const now = () => performance.now()
    const ends = new Ends({ server: { now, ...server }, agent: { now } })
    const { promise, resolve } = Promise.withResolvers<WireError>()
    const died: WireError[] = []
    const onDead = (error: WireError): void => {
      died.push(error)
      resolve(error)
    }
    return { ends, died, onDead, dead: promise }
  }

  test('gives its ping time to be sent and answered', async () => {
    const { ends, died, onDead } = start()
    const heartbeat = new Heartbeat(ends.agent, { intervalMs: 100, toleranceMs: 900, onDead })
    block(1500)
    await delay(ROUND_TRIP_MS)
    assert.deepEqual(died, [])
    ends.settle()
    assert.notEqual(ends.agent.roundTripMs, undefined)
    heartbeat.stop()
  })

  test('gives a silent peer time to send', async () => {
    const { ends, died, onDead } = start({ onStream() {} })
    const stop = watchSilence(ends.server, { limitMs: 1000, onDead })
    block(1500)
    await delay(ROUND_TRIP_MS)
    assert.deepEqual(died, [])
    stop()
  })

  test('still finds dead peers', { timeout: 10_000 }, async () => {
    const { ends, onDead, dead } = start({ onStream() {} })
    new Heartbeat(ends.agent, { intervalMs: 50, toleranceMs: 50, onDead })
    const silent = start({ onStream() {} })
    watchSilence(silent.ends.server, { limitMs: 100, onDead: silent.onDead })
    // The watches do not keep the process running.
    const alive = setInterval(() => {}, 1000)
    block(200)
    assert.deepEqual(codes([await dead, await silent.dead]), ['dead_peer', 'dead_peer'])
    clearInterval(alive)
  })
})

describe('a peer that is checked for a sign of life', () => {
  /** A heartbeat whose first ping is answered already, unless the server is silent. */
  function start(t: TestContext, server: Partial<MuxOptions> = answering) {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const ends = new Ends({ server })
    const died: WireError[] = []
    const heartbeat = new Heartbeat(ends.agent, { onDead: (error) => died.push(error), now: () => ends.timeMs })
    ends.settle()
    t.after(() => heartbeat.stop())
    return { ends, heartbeat, died }
  }

  /** The result of a check; undefined as long as it is pending. */
  function follow(check: Promise<boolean>): { answer?: boolean } {
    const state: { answer?: boolean } = {}
    void check.then((answer) => {
      state.answer = answer
    })
    return state
  }

  /** Accepts pings and does not answer. */
  const silent: Partial<MuxOptions> = { onStream() {} }

  test('and answers is alive at once, and concurrent checks share one ping', async (t) => {
    const { ends, heartbeat } = start(t)
    const before = ends.agent.bytesOut
    const asked = Array.from({ length: 100 }, () => follow(heartbeat.ask(2000)))
    ends.settle()
    await endOfTurn()
    assert.ok(asked.every(({ answer }) => answer === true))
    assert.equal(ends.agent.bytesOut - before, PING_FRAME_BYTES)
    // The next check sends another ping.
    const again = follow(heartbeat.ask(2000))
    await endOfTurn()
    assert.equal(again.answer, undefined)
    ends.settle()
    await endOfTurn()
    assert.equal(again.answer, true)
  })

  test('and does not answer is dead after the given time, and not before', async (t) => {
    const { ends, heartbeat, died } = start(t, silent)
    const asked = follow(heartbeat.ask(2000))
    await pass(t, ends, 1999)
    assert.equal(asked.answer, undefined)
    await pass(t, ends, 1)
    assert.equal(asked.answer, false)
    // Only the caller is told.
    assert.deepEqual(died, [])
  })

  test('is not pinged again while a ping is pending, which keeps its own deadline', async (t) => {
    const { ends, heartbeat, died } = start(t, silent)
    const before = ends.agent.bytesOut
    for (let second = 0; second < 25; second++) {
      assert.deepEqual(died, [])
      void heartbeat.ask(2000)
      ends.settle()
      await pass(t, ends, 1000)
    }
    assert.equal(ends.agent.bytesOut, before)
    assert.deepEqual(codes(died), ['dead_peer'])
  })

  test('and sends anything else is alive', async (t) => {
    const { ends, heartbeat } = start(t, silent)
    const asked = follow(heartbeat.ask(2000))
    await pass(t, ends, 1999)
    t.mock.timers.tick(1)
    ends.server.open(typeHead(streamTypes.stop))
    ends.settle()
    await endOfTurn()
    assert.equal(asked.answer, true)
  })

  test('by a process that is then blocked has time left when the process runs again', async (t) => {
    const { ends, heartbeat } = start(t)
    const asked = follow(heartbeat.ask(2000))
    t.mock.timers.tick(60_000)
    for (let i = 0; i < 3; i++) await endOfTurn()
    assert.equal(asked.answer, undefined)
    ends.settle()
    await endOfTurn()
    assert.equal(asked.answer, true)
  })

  test('and refuses pings counts as alive', async (t) => {
    const { heartbeat } = start(t, { onStream: (stream) => stream.reset('no_error') })
    assert.equal(await heartbeat.ask(2000), true)
  })

  test('and whose session ends counts as dead', async (t) => {
    const { ends, heartbeat } = start(t, silent)
    const asked = heartbeat.ask(2000)
    ends.agent.close()
    assert.equal(await asked, false)
  })

  test('gets more time when much data is queued before the ping, ten seconds at most', async (t) => {
    for (const [bytes, ms] of [
      [128 * 1024, 4048],
      [100 * 256 * 1024, 10_000],
    ] as const) {
      t.mock.timers.reset()
      const { ends, heartbeat } = start(t)
      for (let left = bytes; left > 0; left -= 128 * 1024) {
        const stream = ends.agent.open(typeHead(streamTypes.bind))
        if (stream instanceof WireError) assert.fail(stream)
        stream.write(Buffer.alloc(128 * 1024))
      }
      // Everything is sent, and nothing comes back.
      for (let i = 0; ends.agent.bytesOut < bytes; i++) {
        assert.ok(i < 10_000)
        ends.turn('agent')
        ends.link.pipes.agent.deliver(Number.POSITIVE_INFINITY)
      }
      const asked = follow(heartbeat.ask(2000))
      await pass(t, ends, ms - 10)
      assert.equal(asked.answer, undefined)
      await pass(t, ends, 20)
      assert.equal(asked.answer, false)
    }
  })
})
