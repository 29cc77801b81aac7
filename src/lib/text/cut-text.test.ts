import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cutText, MAX_LOGGED_BYTES } from './cut-text.ts'

const rows: readonly [name: string, text: string, cut: boolean][] = [
  ['nothing', '', false],
  ['a short text', 'abc', false],
  ['as much as fits', 'a'.repeat(MAX_LOGGED_BYTES), false],
  ['one byte more', 'a'.repeat(MAX_LOGGED_BYTES + 1), true],
  ['few characters of many bytes', '語'.repeat(700), true],
  ['characters of four bytes, which are two in a string', '🚪'.repeat(600), true],
  ['megabytes', 'x'.repeat(3_000_000), true],
]
for (const [name, text, isCut] of rows) {
  test(`${name}: ${isCut ? 'cut' : 'kept'}`, () => {
    const kept = cutText(text)
    assert.ok(Buffer.byteLength(kept) <= MAX_LOGGED_BYTES)
    assert.ok(kept.isWellFormed())
    if (!isCut) assert.equal(kept, text)
    else {
      assert.ok(kept.endsWith('…') && text.startsWith(kept.slice(0, -1)))
      assert.ok(Buffer.byteLength(kept) > MAX_LOGGED_BYTES - 4, 'no more than needed is cut')
    }
  })
}
