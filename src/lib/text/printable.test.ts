import assert from 'node:assert/strict'
import { test } from 'node:test'
import { printable } from './printable.ts'

const cases: readonly [name: string, text: string, shown: string][] = [
  ['leaves plain text alone', 'Grüße, 世界 🎉', 'Grüße, 世界 🎉'],
  ['keeps one line', 'a\nb\r\tc', 'a\\nb\\r\\tc'],
  ['disarms escape sequences', '\u001b[2Jx\u009b1m', '\\u001b[2Jx\\u009b1m'],
  ['disarms direction marks', 'a\u202eb', 'a\\u202eb'],
]
for (const [name, text, shown] of cases) {
  test(name, () => assert.equal(printable(text), shown))
}
