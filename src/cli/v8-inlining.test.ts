import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const compiler = new URL('./v8-inlining.ts', import.meta.url).href

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
  assert.deepEqual(inlined(`(await import(${JSON.stringify(compiler)})).inlineMore()`), ['first', 'second'])
})
