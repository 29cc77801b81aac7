import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const collector = new URL('./collector.ts', import.meta.url).href

/** Makes objects at one place of the code that live for a while, and gives where the engine would make them from then on. */
function decisions(before: string): string[] {
  const code = `
    ${before}
    const kept = []
    for (let i = 0; i < 3e6; i++) {
      kept.push({ at: i, parts: [i] })
      if (kept.length > 400_000) kept.length = 0
    }`
  // Without the compilers, which may be faster than the engine's mind is made up.
  const args = ['--trace-pretenuring-statistics', '--no-opt', '--no-maglev', '--input-type=module', '--eval', code]
  return execFileSync(process.execPath, args, { encoding: 'utf8' }).match(/=> tenure/g) ?? []
}

test('objects are made among the young ones, also where those before them lived for long', () => {
  assert.ok(decisions('').length > 0, 'this engine does not do what is to be kept from it')
  assert.deepEqual(decisions(`(await import(${JSON.stringify(collector)})).keepObjectsYoung()`), [])
})
