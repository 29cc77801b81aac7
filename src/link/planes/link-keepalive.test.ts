import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { until } from '../../../test/support/until.ts'
import type { Mux } from '../wire/mux.ts'
import { streamTypes, typeHead } from '../wire/stream-types.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { LinkKeepalive } from './link-keepalive.ts'
import { relaySession } from './relay-session.ts'

const closers: (() => unknown)[] = []
after(() => {
  for (const close of closers) close()
})

interface Ends {
  readonly lookMs?: number
  readonly idleMs?: number
  /** Whether the other end answers pings, resets their stream, or does neither. */
  readonly pings?: 'answers' | 'resets' | 'ignores'
}

/** A session with a pulse, and its other end. */
async function link({ lookMs = 20, idleMs = 1e9, pings = 'answers' }: Ends = {}) {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as { port: number }).port, '127.0.0.1') // it listens on a port
  const [far] = (await once(server, 'connection')) as [Socket] // what this event gives
  server.close()
  const events: string[] = []
  const theirs: Mux = relaySession(far, {
    ...{ opens: false, isFar: true },
    onStream(stream, type) {
      if (type !== streamTypes.heartbeat) return
      if (pings === 'answers') answering.answer(stream)
      if (pings === 'resets') stream.reset()
    },
    onClosed: () => answering.stop(),
  })
  const answering = new LinkKeepalive(theirs, { idleMs: 1e9, onIdle() {}, onDead() {}, lookMs: 1e6 })
  const session = relaySession(socket, {
    ...{ opens: true, isFar: true },
    onStream: (stream) => pulse.answer(stream),
    onClosed: () => pulse.stop(),
  })
  const onEvent = (name: string) => () => {
    events.push(name)
    session.close()
  }
  const pulse = new LinkKeepalive(session, { idleMs, lookMs, onIdle: onEvent('idle'), onDead: onEvent('dead') })
  closers.push(
    () => session.close(),
    () => theirs.close(),
  )
  const open = (): WireStream => session.open(typeHead(3)) as WireStream // there is room
  return { session, pulse, theirs, events, open, far }
}

test('a session knows its round trip time at once, and does not count the streams of pings', async () => {
  const { session, theirs, pulse, open } = await link({ lookMs: 1e6 })
  await until('both know', () => session.roundTripMs !== undefined && theirs.roundTripMs !== undefined)
  assert.equal(pulse.streams, 0)
  open()
  assert.equal(pulse.streams, 1)
})

test('a session with a silent stream lives as long as pings are answered', async () => {
  const { events, open, session } = await link({ idleMs: 1 })
  open()
  const before = session.bytesIn
  await until('many pings are answered', () => session.bytesIn > before + 10 * 12)
  assert.deepEqual(events, [])
})

test('a session with a stream whose other end does not read is dead', async () => {
  const { events, open, far } = await link()
  open()
  far.pause()
  await until('it is dead', () => events.length > 0)
  assert.deepEqual(events, ['dead'])
})

test('a session without streams is not pinged, and is idle in the end', async () => {
  const { events } = await link({ pings: 'ignores', idleMs: 200 })
  await until('it is idle', () => events.length > 0)
  assert.deepEqual(events, ['idle'])
})

test('a session that was silent for long is soon dead when it is used and stays silent', async () => {
  const { events, pulse, far, session, open } = await link({ lookMs: 50 })
  await until('the first ping is answered', () => session.roundTripMs !== undefined)
  far.pause()
  await until('it was silent for long', () => session.silenceMs > 4 * 50)
  assert.deepEqual(events, [])
  pulse.use()
  open()
  await until('it is dead', () => events.length > 0)
  assert.deepEqual(events, ['dead'])
})

test('a session that was silent for long lives on when it is used and answers', async () => {
  const { events, pulse, session } = await link({ lookMs: 50 })
  await until('it was silent for long', () => session.silenceMs > 4 * 50)
  pulse.use()
  await until('it has answered', () => session.silenceMs < 50)
  await until('it was silent for long', () => session.silenceMs > 4 * 50)
  assert.deepEqual(events, [])
})

test('a session whose other end refuses pings is dead', async () => {
  const { events } = await link({ pings: 'resets' })
  await until('it is dead', () => events.length > 0)
  assert.deepEqual(events, ['dead'])
})
