import assert from 'node:assert/strict'
import { test } from 'node:test'
import { visitorErrorAdvice } from './visitor-error-advice.ts'
import { type VisitorErrorCode, visitorErrors } from './visitor-errors.ts'

const codes = Object.keys(visitorErrors) as VisitorErrorCode[] // keys of that table

for (const code of codes) {
  test(`${code} says when it is shown and what to do, in sentences that fit into a table`, () => {
    const { when, remedy } = visitorErrorAdvice[code]
    for (const text of [visitorErrors[code].text, when, remedy]) {
      assert.match(text, /^[A-Z`][^|\n]*\.$/)
      assert.equal((text.match(/`/g) ?? []).length % 2, 0, 'a backtick is not closed')
    }
  })
}

test('there is no advice for an unknown code', () => {
  assert.deepEqual(Object.keys(visitorErrorAdvice).sort(), [...codes].sort())
})
