import assert from 'node:assert/strict'
import { test } from 'node:test'
import { autoWorkers } from './auto-workers.ts'
import { readSettings } from './read-settings.ts'

const MIB = 1024 ** 2

for (const [cores, memory, workers] of [
  [1, 1024, 1],
  [2, 4096, 2],
  [8, 1024, 4],
  [2, 512, 1],
  [2, 256, 0],
  [256, 512 * 1024, 64],
] as const) {
  test(`${cores} cores and ${memory} MiB give ${workers} workers`, () => {
    assert.equal(autoWorkers({ cores, memory: memory * MIB }), workers)
  })
}

test('the setting takes a number, or chooses by the machine', () => {
  const read = (workers: string) => readSettings({ flags: { workers }, env: {}, cwd: '/srv' }).workers
  assert.equal(read('0'), 0)
  assert.equal(read('3'), 3)
  assert.equal(read('auto'), autoWorkers())
  assert.throws(() => read('65'), /must be `auto` or a whole number from 0 to 64/)
  assert.equal(readSettings({ env: {}, cwd: '/srv' }).workers, autoWorkers())
})
