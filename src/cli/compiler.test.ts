import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const compiler = new URL('./compiler.ts', import.meta.url).href

/** Runs a function that calls two larger ones very often; returns how many V8 has compiled into it. */
function inlined(before: string): number {
  const code = `
    ${before}
    const sums = Array.from({ length: 25 }, (_, i) => 'sum = (sum + x * ' + i + ' + (sum ^ ' + i + ')) | 0').join(';')
    const [a, b] = [1, 2].map((from) => new Function('x', 'let sum = ' + from + ';' + sums + '; return sum'))
    function hot(count) {
      let sum = 0
      for (let i = 0; i < count; i++) sum = (a(i) + b(sum)) | 0
      return sum
    }
    for (let i = 0; i < 400; i++) hot(2000)`
  // Without the other compiler, which follows rules of its own.
  const args = ['--trace-turbo-inlining', '--no-maglev', '--input-type=module', '--eval', code]
  const said = execFileSync(process.execPath, args, { encoding: 'utf8' })
  return new Set(said.match(/^Inlining .* into .*<SharedFunctionInfo hot>/gm)).size
}

test('larger functions are compiled into their callers', () => {
  assert.equal(inlined(''), 0)
  assert.equal(inlined(`(await import(${JSON.stringify(compiler)})).inlineMore()`), 2)
})
