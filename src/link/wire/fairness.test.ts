import assert from 'node:assert/strict'
import { test } from 'node:test'
import { peerTraits } from './mux-peer.ts'
import { streamTypes, typeHead } from './stream-types.ts'
import { Ends, Heard } from './testing/test-link.ts'
import { BATCH_BYTES, EAGER_MESSAGES, LONE_FRAME_BYTES, SERVER_OPENED_STREAMS, WINDOW_BYTES } from './wire-bounds.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

function start(): Ends {
  const ends = new Ends()
  ends.server.adapt(peerTraits('ngrok-go/1'))
  return ends
}

/** A stream opened by the server, and what the agent receives on it. */
function open(ends: Ends): { stream: WireStream; far: WireStream; heard: Heard } {
  const stream = ends.server.open(typeHead(streamTypes.proxy))
  if (stream instanceof WireError) assert.fail(stream)
  stream.attach(new Heard())
  ends.settle()
  const far = ends.accepted.agent.at(-1)?.stream ?? assert.fail()
  const heard = new Heard()
  far.attach(heard)
  return { stream, far, heard }
}

test('a reader that stops holds one window, and 99 others go on', () => {
  const ends = start()
  const all = Array.from({ length: 100 }, () => open(ends))
  const [slow, ...others] = all
  slow?.far.pause()
  const megabyte = Buffer.alloc(1024 * 1024)
  slow?.stream.write(megabyte)
  ends.settle()
  // The type of the stream was read, but its four bytes are not credited yet.
  assert.equal(slow?.far.unread, WINDOW_BYTES - 4)
  assert.equal(slow?.heard.bytes.length, 0)
  for (const { stream } of others) stream.end(megabyte)
  ends.settle()
  for (const { heard } of others) assert.deepEqual([heard.bytes.length, heard.ends], [megabyte.length, 1])
  slow?.far.resume()
  ends.settle()
  assert.equal(slow?.heard.bytes.length, megabyte.length)
})

test('a small message overtakes a large one of another stream', () => {
  const ends = start()
  const [large, small] = [open(ends), open(ends)]
  large.stream.write(Buffer.alloc(WINDOW_BYTES))
  small.stream.write(Buffer.from('now'))
  ends.turn('server')
  ends.link.pipes.server.deliver(BATCH_BYTES)
  assert.equal(small.heard.bytes.toString(), 'now')
  const before = Buffer.concat(ends.link.pipes.server.log).indexOf('now')
  assert.ok(before < 20_000, `it came after ${before} bytes`)
})

test('all messages of a turn are sent in one write', () => {
  const ends = start()
  const streams = Array.from({ length: 10 }, () => open(ends))
  let writes = 0
  const { server } = ends.link.pipes
  const write = server.write.bind(server)
  server.write = (chunks) => {
    writes++
    return write(chunks)
  }
  for (const { stream } of streams) for (let i = 0; i < 10; i++) stream.write(Buffer.from('x'))
  ends.turn('server')
  assert.equal(writes, 1)
  ends.settle()
  for (const { heard } of streams) assert.equal(heard.bytes.toString(), 'x'.repeat(10))
  // Ten writes of one turn are one frame.
  assert.ok(Buffer.concat(server.log).includes('x'.repeat(10)))
})

test('in a turn with many messages, the first are sent before it ends', async () => {
  const ends = start()
  const streams = Array.from({ length: 2.5 * EAGER_MESSAGES }, () => open(ends))
  const { server } = ends.link.pipes
  const before = server.log.length
  for (const { stream } of streams) {
    stream.write(Buffer.from('x'))
    // As between two reads of one turn.
    await Promise.resolve()
  }
  assert.equal(server.log.length - before, 2)
  ends.turn('server')
  assert.equal(server.log.length - before, 3)
  ends.settle()
  for (const { heard } of streams) assert.equal(heard.bytes.toString(), 'x')
})

test('a full batch of one stream is sent at once, and the next waits until the transport has room', () => {
  const ends = start()
  const { stream, heard } = open(ends)
  const { server } = ends.link.pipes
  const before = server.log.length
  const lent = Buffer.alloc(LONE_FRAME_BYTES, 'x')
  const written = (): number => server.log.length - before
  let frames = 0
  while (written() === 0 && frames < 10) {
    assert.ok(stream.writeLent?.(lent), 'there is room until the batch is sent')
    frames++
  }
  assert.equal(written(), 1)
  // The transport took the batch and asks to wait: the next batch fills, and then the writer waits.
  while (frames < 20) {
    frames++
    if (!stream.writeLent?.(lent)) break
  }
  assert.ok(frames < 20)
  assert.equal(written(), 1)
  ends.settle()
  assert.equal(heard.bytes.length, frames * lent.length)
})

test('data that does not fit one write is sent in the next turns, even when the transport never asks to wait', () => {
  const ends = start()
  const streams = Array.from({ length: 4 }, () => open(ends))
  const { server } = ends.link.pipes
  const write = server.write.bind(server)
  const writes: number[] = []
  server.write = (bytes) => {
    writes.push(bytes.length)
    write(bytes)
    return true
  }
  for (const { stream } of streams) stream.end(Buffer.alloc(200_000))
  for (let turn = 0; turn < 8; turn++) ends.turn('server')
  assert.ok(server.length > 4 * 200_000)
  ends.settle()
  for (const { heard } of streams) assert.deepEqual([heard.bytes.length, heard.ends], [200_000, 1])
  assert.ok(Math.max(...writes) < BATCH_BYTES + 70_000)
})

test('a writer is asked to wait, and called once there is room', () => {
  const ends = start()
  const { stream, far } = open(ends)
  const heard = new Heard()
  stream.attach(heard)
  far.pause()
  let chunks = 0
  while (stream.write(Buffer.alloc(32 * 1024))) chunks++
  ends.settle()
  assert.equal(heard.drains, 1)
  assert.ok(chunks < 10)
  while (stream.write(Buffer.alloc(32 * 1024))) chunks++
  ends.settle()
  while (stream.write(Buffer.alloc(32 * 1024))) chunks++
  ends.settle()
  const drains = heard.drains
  assert.ok(stream.unsent > 0 && stream.unsent < WINDOW_BYTES)
  far.resume()
  ends.settle()
  assert.equal(heard.drains, drains + 1)
})

test('10,000 streams that come and go leave nothing behind', () => {
  const ends = start()
  for (let round = 0; round < 100; round++) {
    const all = Array.from({ length: 100 }, () => {
      const stream = ends.server.open(typeHead(streamTypes.proxy))
      if (stream instanceof WireError) assert.fail(stream)
      stream.attach(new Heard())
      stream.end(Buffer.from('hello'))
      return stream
    })
    ends.settle()
    for (const { stream } of ends.accepted.agent.splice(0)) {
      stream.attach(new Heard())
      if (stream.id % 3 === 0) stream.reset()
      else stream.end(Buffer.from('world'))
    }
    ends.settle()
    assert.ok(all.every(({ isClosed }) => isClosed))
    ends.link.pipes.server.log.length = 0
    ends.link.pipes.agent.log.length = 0
  }
  assert.deepEqual([ends.server.size, ends.agent.size], [0, 0])
})

test('10,000 streams can be open at once', () => {
  const ends = start()
  for (let i = 0; i < 10_000; i++) assert.ok(!(ends.server.open(typeHead(streamTypes.proxy)) instanceof WireError))
  ends.settle()
  assert.ok(SERVER_OPENED_STREAMS >= 10_000)
  assert.equal(ends.accepted.agent.length, 10_000)
  ends.server.close()
  ends.settle()
  assert.deepEqual([ends.server.size, ends.agent.size], [0, 0])
})
