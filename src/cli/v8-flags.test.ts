import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const flags = new URL('./v8-flags.ts', import.meta.url).href

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
  assert.deepEqual(decisions(`(await import(${JSON.stringify(flags)})).keepObjectsYoung()`), [])
})

test('memory left behind by loading code is given back, and compiled code stays valid', () => {
  const code = `
    import { cachedDataVersionTag, getHeapStatistics } from 'node:v8'
    const { collectLoaded } = await import(${JSON.stringify(flags)})
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

/** Runs a function that calls two larger ones very often; returns which of them V8 has inlined. */
function inlined(before: string): string[] {
  const code = `
    ${before}
    const sums = Array.from({ length: 25 }, (_, i) => 'sum = (sum + x * ' + i + ' + (sum ^ ' + i + ')) | 0').join(';')
    const larger = (name) => new Function('return function ' + name + '(x) { let sum = 1;' + sums + '; return sum }')()
    const [a, b] = ['first', 'second'].map(larger)
    function hot(count) {
      let sum = 0
      for (let i = 0; i < count; i++) sum = (a(i) + b(sum)) | 0
      return sum
    }
    for (let i = 0; i < 400; i++) hot(2000)`
  // The other compiler is off, since it follows rules of its own.
  const args = ['--trace-turbo-inlining', '--no-maglev', '--input-type=module', '--eval', code]
  const said = execFileSync(process.execPath, args, { encoding: 'utf8' })
  // By their names: a line says where a function is in memory too, and the collector moves it between two compilations.
  const lines = said.matchAll(/^Inlining .*<SharedFunctionInfo (first|second)>.* into .*<SharedFunctionInfo hot>/gm)
  return [...new Set(Array.from(lines, ([, name = '']) => name))].sort()
}

test('larger functions are inlined', () => {
  assert.deepEqual(inlined(''), [])
  assert.deepEqual(inlined(`(await import(${JSON.stringify(flags)})).inlineMore()`), ['first', 'second'])
})
