/** For tests: a peer that sends anything, and the conditions that must hold whatever it sends. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import { readMessage } from '../agent-rpc.ts'
import { peerTraits } from '../mux-peer.ts'
import { readProxyHeader } from '../proxy-header.ts'
import { streamTypes, typeHead } from '../stream-types.ts'
import { WINDOW_BYTES } from '../wire-bounds.ts'
import { WireError } from '../wire-error.ts'
import type { WireStream } from '../wire-stream.ts'
import { Ends, Heard } from './test-link.ts'

/** Streams that the hostile peer may have open. */
const MAX_ACCEPTED = 8

/** Streams that we open towards it. */
const OPENED = 3

const uint32 = fc.oneof(
  fc.integer({ min: 0, max: 12 }),
  fc.constantFrom(0x7ffffffe, 0x7fffffff, 0x80000000, 0xffffffff),
  fc.nat({ max: 0xffffffff }),
)

const body = fc.oneof(
  fc.uint8Array({ maxLength: 40 }),
  uint32.map((value) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return new Uint8Array(bytes)
  }),
  fc.constantFrom(...['{', '{}', '{"a":"', '\\', '"}', '[[[[', '\0'].map((text) => new Uint8Array(Buffer.from(text)))),
  fc.nat({ max: 300_000 }).map((length) => new Uint8Array(length)),
)

/** Mostly well-formed, since a malformed frame ends the session at once. */
const frame = fc
  .record({
    kind: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(0x10, 0x10, 0x11, 0x12, 0x12, 0x13) },
      { weight: 2, arbitrary: fc.constantFrom(0x00, 0x20) },
      { weight: 1, arbitrary: fc.nat({ max: 255 }) },
    ),
    id: fc.oneof({ weight: 8, arbitrary: fc.integer({ min: 1, max: 20 }) }, { weight: 1, arbitrary: uint32 }),
    body,
    lie: fc.oneof({ weight: 20, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat({ max: 0xffffff }) }),
  })
  .map(({ kind, id, body, lie }) => {
    const header = Buffer.alloc(8)
    header.writeUIntBE((body.length + lie) % 0x1000000, 0, 3)
    header.writeUInt8(kind, 3)
    header.writeUInt32BE(id, 4)
    return Buffer.concat([header, body])
  })

export const hostileRun = fc.record({
  frames: fc.array(
    fc.oneof({ weight: 10, arbitrary: frame }, { weight: 1, arbitrary: body.map((bytes) => Buffer.from(bytes)) }),
    {
      maxLength: 60,
      size: 'max',
    },
  ),
  chunk: fc.integer({ min: 1, max: 70_000 }),
  /** What the server does with the streams that the peer opens. */
  uses: fc.array(fc.constantFrom('read', 'echo', 'hold', 'message', 'header', 'refuse'), {
    minLength: 1,
    maxLength: 8,
  }),
  reads: fc.boolean(),
})

type Hostile = typeof hostileRun extends fc.Arbitrary<infer T> ? T : never

/** Plays one peer; it must not throw, hold more than its bounds, or leave anything behind. */
export function checkHostile({ frames, chunk, uses, reads }: Hostile): void {
  const served: WireStream[] = []
  const heard: Heard[] = []
  const onStream = (stream: WireStream): void => {
    served.push(stream)
    use(stream, uses[served.length % uses.length] ?? 'hold', heard)
  }
  const ends = new Ends({ server: { onStream, maxAccepted: MAX_ACCEPTED } })
  ends.server.adapt(peerTraits('ngrok-go/1'))
  const { server: out, agent: into } = ends.link.pipes
  out.events = undefined
  for (let i = 0; i < OPENED; i++) {
    const stream = ends.server.open(typeHead(streamTypes.proxy))
    if (!(stream instanceof WireError)) use(stream, 'read', heard)
  }

  const bytes = Buffer.concat(frames)
  for (let at = 0; at < bytes.length; at += chunk) {
    into.events?.data(Buffer.from(bytes.subarray(at, at + chunk)))
    ends.turn('server')
    if (reads) out.deliver(Number.POSITIVE_INFINITY)
    const held = served.reduce((sum, { unread }) => sum + unread, 0)
    assert.ok(held <= MAX_ACCEPTED * WINDOW_BYTES, `${held} bytes are held`)
    assert.ok(ends.server.size <= MAX_ACCEPTED + OPENED)
  }
  into.events?.closed(undefined)
  for (const stream of served) {
    stream.resume()
    // No sink is attached to this one.
    if (!stream.isClosed) stream.attach(new Heard())
  }
  assert.equal(ends.server.size, 0)
  assert.equal(ends.closed.server.length, 1)
  for (const { ends: endCount, closes } of heard) assert.ok(endCount <= 1 && closes.length === 1)
}

function use(stream: WireStream, how: Hostile['uses'][number], heard: Heard[]): void {
  const sink = new Heard()
  if (how === 'message') readMessage(stream, () => stream.close(), { maxBytes: 1000 })
  else if (how === 'header') readProxyHeader(stream, (header) => header instanceof WireError && stream.reset())
  else if (how === 'refuse') stream.reset('stream_refused')
  else if (how !== 'hold') {
    heard.push(sink)
    if (how === 'echo') sink.data = (chunk) => void (stream.write(chunk) || stream.pause())
    stream.attach(sink)
  }
}
