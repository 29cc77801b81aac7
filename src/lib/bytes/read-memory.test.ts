import assert from 'node:assert/strict'
import { constants, PerformanceObserver } from 'node:perf_hooks'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { noteRead, ROUND_BYTES } from './read-memory.ts'

test('a minor collection runs once for every `ROUND_BYTES`, and not for fewer', async () => {
  const minor: unknown[] = []
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as unknown as { detail: { kind: number; flags: number } } // as for all GC entries
      // Other code may force full collections when memory is short.
      if (detail.kind === constants.NODE_PERFORMANCE_GC_MINOR && detail.flags & FORCED) minor.push(detail)
    }
  })
  // Other tests of this process may have counted some bytes.
  noteRead(ROUND_BYTES)
  observer.observe({ entryTypes: ['gc'] })
  noteRead(ROUND_BYTES - 1)
  assert.equal((await seen(minor, 0)).length, 0)
  noteRead(1)
  assert.equal((await seen(minor, 1)).length, 1)
  for (let i = 0; i < 32; i++) noteRead(ROUND_BYTES / 16)
  assert.equal((await seen(minor, 3)).length, 3)
  observer.disconnect()
})

/** Requested by a program, not by the engine. */
const FORCED = constants.NODE_PERFORMANCE_GC_FLAGS_FORCED

/** Performance entries arrive some turns later, on a busy machine many: waits for `expected` and ten turns more. */
async function seen(minor: unknown[], expected: number): Promise<unknown[]> {
  for (let i = 0; i < 1000 && minor.length < expected; i++) await setTimeout(1)
  for (let i = 0; i < 10; i++) await new Promise(setImmediate)
  return minor
}
