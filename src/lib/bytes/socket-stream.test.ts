import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises'
import { socketPair } from '../../../test/support/socket-pair.ts'
import { until } from '../../../test/support/until.ts'
import type { ByteSink } from './byte-stream.ts'
import { socketStream } from './socket-stream.ts'

const nothing: ByteSink = { data() {}, end() {}, drain() {}, closed() {} }

describe('a socket that is reset', () => {
  for (const [name, prepare] of Object.entries({
    'as it is': () => {},
    'right after its end': (stream: ReturnType<typeof socketStream>) => {
      stream.write(Buffer.from('x'))
      stream.end()
    },
  })) {
    test(`${name} closes, and so does the far end`, async () => {
      const { connected: near, accepted: far } = await socketPair({ tls: false })
      const stream = socketStream(near)
      const closed = Promise.withResolvers<Error | undefined>()
      stream.attach({ data() {}, end() {}, drain() {}, closed: closed.resolve })
      const farClosed = new Promise((resolve) => far.on('close', resolve))
      far.on('error', () => {}).on('end', () => far.end())
      far.resume()
      prepare(stream)
      stream.reset()
      assert.ok((await closed.promise) instanceof Error)
      await farClosed
    })
  }
})

for (const tls of [false, true]) {
  describe(`a socket ${tls ? 'with' : 'without'} TLS`, () => {
    test('that has closed keeps no listeners', async () => {
      const { connected: near, accepted: far } = await socketPair({ tls })
      const closed = Promise.withResolvers<void>()
      // A listener that was there before is still called.
      near.on('close', () => closed.resolve())
      const stream = socketStream(near)
      stream.attach(nothing)
      stream.reset()
      far.on('error', () => {}).destroy()
      await closed.promise
      await turn()
      assert.deepEqual(near.eventNames(), ['error'])
      near.emit('error', new Error('late'))
    })

    test('lends the bytes it reads, at the pace of a reader that pauses after every piece', async () => {
      const { connected: near, accepted: far } = await socketPair({ tls })
      const stream = socketStream(near)
      const ended = Promise.withResolvers<void>()
      const hash = createHash('sha256')
      let isPaused = false
      const take = (chunk: Buffer): void => {
        assert.equal(isPaused, false)
        isPaused = true
        hash.update(chunk)
        stream.pause()
        setImmediate(() => {
          isPaused = false
          stream.resume()
        })
      }
      stream.attach({ ...nothing, data: take, lent: take, end: ended.resolve })
      const sent = randomBytes(4 * 1024 * 1024)
      far.end(sent)
      await ended.promise
      assert.equal(hash.digest('hex'), createHash('sha256').update(sent).digest('hex'))
      stream.reset()
      far.destroy()
    })

    test('gives a sink that keeps bytes its own copy', async () => {
      const { connected: near, accepted: far } = await socketPair({ tls })
      const stream = socketStream(near)
      const ended = Promise.withResolvers<void>()
      const chunks: Buffer[] = []
      stream.attach({ ...nothing, data: (chunk) => chunks.push(chunk), end: ended.resolve })
      const sent = randomBytes(4 * 1024 * 1024)
      far.end(sent)
      await ended.promise
      assert.ok(Buffer.concat(chunks).equals(sent))
      stream.reset()
      far.destroy()
    })

    test('that is paused makes the other end wait, with any kind of sink', async () => {
      for (const isLent of [false, true]) {
        const { connected: near, accepted: far } = await socketPair({ tls })
        const stream = socketStream(near)
        const take = (): void => stream.pause()
        stream.attach({ ...nothing, data: take, lent: isLent ? take : undefined })
        const block = Buffer.alloc(1024 * 1024)
        let written = 0
        // More than the kernel buffers on loopback.
        const isBlocked = (): boolean => far.writableLength >= 4 * block.length
        while (!isBlocked() && written < 256) {
          far.write(block)
          written++
          await turn()
        }
        await wait(50)
        assert.ok(isBlocked(), 'everything was read')
        assert.ok(near.readableLength < 512 * 1024, `${near.readableLength} bytes are held`)
        far.destroy()
        stream.reset()
      }
    })

    test('sends lent bytes in order with the others, and then its end', async () => {
      const { connected: near, accepted: far } = await socketPair({ tls })
      const stream = socketStream(near)
      let drains = 0
      stream.attach({ ...nothing, drain: () => drains++ })
      const received: Buffer[] = []
      far.on('data', (chunk: Buffer) => received.push(chunk))
      const sent = randomBytes(6 * 1024 * 1024)
      const sizes = [10, 5_000, 16_384, 1, 200_000, 4_096, 131_072, 70_000, 300_000]
      let waits = 0
      for (let at = 0, i = 0; at < sent.length; i++) {
        const size = sizes[i % sizes.length] ?? 1
        const chunk = Buffer.from(sent.subarray(at, at + size))
        const hasRoom = i % 3 === 0 ? stream.write(chunk) : stream.writeLent?.(chunk)
        if (i % 3 !== 0) chunk.fill(0xdb)
        at += size
        if (hasRoom) continue
        const before = drains
        waits++
        await until('there is room', () => drains > before)
      }
      stream.end()
      await once(far, 'end')
      assert.ok(Buffer.concat(received).equals(sent))
      assert.ok(waits > 0)
      stream.reset()
      far.destroy()
    })

    test('that closes with unsent bytes reports an error once, and accepts no more', async () => {
      const { connected: near, accepted: far } = await socketPair({ tls })
      const stream = socketStream(near)
      const closes: (Error | undefined)[] = []
      stream.attach({ ...nothing, closed: (error) => closes.push(error) })
      far.on('error', () => {})
      for (let i = 0; i < 100; i++) stream.writeLent?.(Buffer.alloc(100_000))
      far.destroy()
      await until('it is closed', () => closes.length > 0)
      assert.equal(stream.writeLent?.(Buffer.alloc(10)), false)
      assert.ok(closes[0] instanceof Error)
      await wait(5)
      assert.equal(closes.length, 1)
    })
  })
}
