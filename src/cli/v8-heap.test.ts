import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const collector = new URL('./v8-heap.ts', import.meta.url).href

/** Allocates objects at one place that live for a while; returns where V8 would allocate the next ones. */
function decisions(before: string): string[] {
  const code = `
    ${before}
    const kept = []
    for (let i = 0; i < 3e6; i++) {
      kept.push({ at: i, parts: [i] })
      if (kept.length > 400_000) kept.length = 0
    }`
  // Compilers are off, since they may run before V8 has decided.
  const args = ['--trace-pretenuring-statistics', '--no-opt', '--no-maglev', '--input-type=module', '--eval', code]
  return execFileSync(process.execPath, args, { encoding: 'utf8' }).match(/=> tenure/g) ?? []
}

test('objects are allocated in the young generation, even where earlier ones lived long', () => {
  assert.ok(decisions('').length > 0, 'this engine does not pretenure, so the test is pointless')
  assert.deepEqual(decisions(`(await import(${JSON.stringify(collector)})).keepObjectsYoung()`), [])
})

test('memory left behind by loading code is given back, and compiled code stays valid', () => {
  const code = `
    import { cachedDataVersionTag, getHeapStatistics } from 'node:v8'
    const { collectLoaded } = await import(${JSON.stringify(collector)})
    const [tag, kept] = [cachedDataVersionTag(), []]
    for (let i = 0; i < 1e6; i++) kept[i % 1e5] = { at: i }
    const before = getHeapStatistics().total_physical_size
    kept.length = 0
    collectLoaded()
    const after = getHeapStatistics().total_physical_size
    console.log(JSON.stringify({ isSmaller: after < before / 2, isSame: tag === cachedDataVersionTag(), gc: typeof gc }))`
  const said = execFileSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' })
  assert.deepEqual(JSON.parse(said), { isSmaller: true, isSame: true, gc: 'undefined' })
})
