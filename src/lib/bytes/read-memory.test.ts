import assert from 'node:assert/strict'
import { PerformanceObserver } from 'node:perf_hooks'
import { test } from 'node:test'
import { noteRead, ROUND_BYTES } from './read-memory.ts'

test('a minor collection runs once for every `ROUND_BYTES`, and not for fewer', async () => {
  const minor: unknown[] = []
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail } = entry as unknown as { detail: { flags: number } } // what entries of this type have
      if (detail.flags & FORCED) minor.push(detail)
    }
  })
  observer.observe({ entryTypes: ['gc'] })
  noteRead(ROUND_BYTES - 1)
  assert.equal((await seen(minor)).length, 0)
  noteRead(1)
  assert.equal((await seen(minor)).length, 1)
  for (let i = 0; i < 32; i++) noteRead(ROUND_BYTES / 16)
  assert.equal((await seen(minor)).length, 3)
  observer.disconnect()
})

/** NODE_PERFORMANCE_GC_FLAGS_FORCED: requested by a program, not by the engine. */
const FORCED = 4

/** Performance entries arrive some turns later. */
async function seen(minor: unknown[]): Promise<unknown[]> {
  for (let i = 0; i < 10; i++) await new Promise(setImmediate)
  return minor
}
