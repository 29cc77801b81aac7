import assert from 'node:assert/strict'
import { Duplex } from 'node:stream'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { BufferedWrites } from './buffered-writes.ts'

/** A socket that accepts everything at once, and records the size of each write. */
class Taker extends Duplex {
  readonly writes: number[] = []

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.writes.push(chunk.length)
    done()
  }
}

test('a small chunk is sent at once, and the pieces of one turn are sent as one', async () => {
  const socket = new Taker()
  const staged = new BufferedWrites(socket, () => {})
  staged.write(Buffer.alloc(100))
  assert.deepEqual(socket.writes, [100])
  for (let i = 0; i < 4; i++) staged.write(Buffer.alloc(16_384))
  assert.deepEqual(socket.writes, [100])
  await turn()
  assert.deepEqual(socket.writes, [100, 65_536])
})

test('small pieces after a large transfer do not wait for long', async () => {
  const socket = new Taker()
  const staged = new BufferedWrites(socket, () => {})
  staged.write(Buffer.alloc(10_000))
  await turn()
  assert.deepEqual(socket.writes, [10_000])
  for (let i = 0; i < 40; i++) {
    // More arrives in every turn, but never much.
    staged.write(Buffer.alloc(500))
    staged.write(Buffer.alloc(500))
    await turn()
  }
  const later = socket.writes.slice(1)
  assert.ok(later.length >= 8, `${later.length} writes in 40 turns`)
  assert.ok(Math.max(...later) <= 5000, `${Math.max(...later)} bytes waited`)
})
