import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerPings, Heartbeat, watchSilence } from './heartbeat.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { Ends, Heard } from './test-link.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

const answering = {
  onStream(stream: WireStream, type: number) {
    assert.equal(type, streamTypes.heartbeat)
    answerPings(stream)
  },
}

test('every ping is sent back in one frame, however it was cut', () => {
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

test('a ping goes out at once and then every interval, and its round trip is measured', (t) => {
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
  // The least of late, slowly forgotten.
  assert.equal(ends.agent.roundTripMs, 25)
  assert.deepEqual(died, [])
  heartbeat.stop()
})

test('a peer that does not answer within interval and tolerance is dead, once', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends({ server: { onStream() {} } })
  const died: WireError[] = []
  new Heartbeat(ends.agent, { intervalMs: 1000, toleranceMs: 500, onDead: (error) => died.push(error) })
  ends.settle()
  t.mock.timers.tick(1499)
  assert.deepEqual(died, [])
  t.mock.timers.tick(1)
  t.mock.timers.tick(10_000)
  assert.deepEqual(
    died.map(({ code }) => code),
    ['dead_peer'],
  )
})

test('a peer that answers something else is dead', () => {
  const onStream = (stream: WireStream): void =>
    stream.attach({ data: () => void stream.write(Buffer.from('nope')), end() {}, drain() {}, closed() {} })
  const ends = new Ends({ server: { onStream } })
  const died: WireError[] = []
  new Heartbeat(ends.agent, { onDead: (error) => died.push(error) })
  ends.settle()
  assert.deepEqual(
    died.map(({ code }) => code),
    ['dead_peer'],
  )
})

test('silence is noticed after the limit, and any byte puts it off', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends({ server: { onStream() {} } })
  const died: WireError[] = []
  watchSilence(ends.server, { limitMs: 25_000, onDead: (error) => died.push(error) })
  const pass = (ms: number): void => {
    ends.timeMs += ms
    t.mock.timers.tick(ms)
  }
  pass(20_000)
  ends.agent.open(typeHead(streamTypes.bind))
  ends.settle()
  pass(24_999)
  assert.deepEqual(died, [])
  pass(1)
  assert.deepEqual(
    died.map(({ code }) => code),
    ['dead_peer'],
  )
})

test('whatever an agent announces, silence lasts a minute at most', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ends = new Ends()
  let died = 0
  watchSilence(ends.server, { limitMs: 3_600_000, onDead: () => died++ })
  ends.timeMs += 60_000
  t.mock.timers.tick(60_000)
  assert.equal(died, 1)
})
