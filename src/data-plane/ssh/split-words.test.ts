import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitWords } from './forward-command.ts'

const cases: readonly [text: string, words: readonly string[] | undefined][] = [
  ['', []],
  ['   ', []],
  ['http', ['http']],
  [' http  --domain a.example ', ['http', '--domain', 'a.example']],
  ["http --basic-auth 'user:pa ss'", ['http', '--basic-auth', 'user:pa ss']],
  ['a "b c" d', ['a', 'b c', 'd']],
  ['a "b\\"c\\\\d\\e"', ['a', 'b"c\\d\\e']],
  ['a\'b\'"c"d', ['abcd']],
  ["''", ['']],
  ['a\\ b', ['a b']],
  ["'a\\'", ['a\\']],
  ['a\tb\nc', ['a', 'b', 'c']],
  ["a 'b", undefined],
  ['a "b', undefined],
]
for (const [text, words] of cases) {
  test(`${JSON.stringify(text)} is ${words ? words.length : 'no'} words`, () => {
    assert.deepEqual(splitWords(text), words)
  })
}
