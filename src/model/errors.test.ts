import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ErrorCode, errors, Refusal } from './errors.ts'

const codes = Object.keys(errors) as ErrorCode[]

for (const code of codes) {
  test(`${code} has an error status, a number and a sentence`, () => {
    const { status, ngrok, text } = errors[code]
    assert.match(code, /^[A-Z]+(_[A-Z]+)*$/)
    assert.ok(Number.isInteger(status) && status >= 400 && status <= 599)
    assert.ok(Number.isInteger(ngrok) && ngrok > 0)
    assert.match(text, /^[A-Z`].*\.$/)
    assert.equal((text.match(/`/g) ?? []).length % 2, 0, 'a backtick is not closed')
  })
}

test('no two codes share a sentence', () => {
  const bySentence = Map.groupBy(codes, (code) => errors[code].text)
  const shared = [...bySentence.values()].filter((group) => group.length > 1)
  assert.deepEqual(shared, [])
})

test('a refusal has the sentence of its code unless it is given another', () => {
  const cause = new Error('why')
  const plain = new Refusal('NOT_FOUND')
  assert.deepEqual([plain.status, plain.message, plain.headers], [404, errors.NOT_FOUND.text, {}])
  assert.ok(!('cause' in plain))
  const reported = new Refusal('METHOD_NOT_ALLOWED', 'this takes GET', { headers: { allow: 'GET' }, cause })
  assert.deepEqual([reported.status, reported.message, reported.headers], [405, 'this takes GET', { allow: 'GET' }])
  assert.equal(reported.cause, cause)
})
