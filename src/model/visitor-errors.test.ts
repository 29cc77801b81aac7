import assert from 'node:assert/strict'
import { test } from 'node:test'
import { visitorErrors } from './visitor-errors.ts'

for (const [code, { text, when, remedy }] of Object.entries(visitorErrors)) {
  test(`${code} says when it is shown and what to do, in sentences that fit into a table`, () => {
    for (const sentence of [text, when, remedy]) {
      assert.match(sentence, /^[A-Z`][^|\n]*\.$/)
      assert.equal((sentence.match(/`/g) ?? []).length % 2, 0, 'a backtick is not closed')
    }
  })
}
