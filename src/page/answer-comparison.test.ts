import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareAnswers, comparisonText } from './answer-comparison.ts'

const answer = (content: string, headers: readonly [name: string, value: string][] = [], status = 200) => {
  const body = { size: content.length, kept: content.length, encoding: 'text', content }
  return { status, error_code: null, response: { headers: headers.map(([name, value]) => ({ name, value })), body } }
}

test('identical responses have no differences', () => {
  const same = answer('{"a":1}', [['X-A', '1']])
  const comparison = compareAnswers(same, same)
  assert.ok([...comparison.parts, ...comparison.lines].every(({ isSame }) => isSame))
  assert.equal(comparisonText(comparison), 'The responses are identical.')
})

test('status, headers and lines are compared, header names regardless of case', () => {
  const comparison = compareAnswers(
    answer('{"a":1,"b":2}', [
      ['X-A', '1'],
      ['Set-Cookie', 'a'],
      ['Set-Cookie', 'b'],
      ['Gone', ''],
    ]),
    answer(
      '{"a":1,"b":3}',
      [
        ['x-a', '1'],
        ['set-cookie', 'a'],
        ['New', 'n'],
      ],
      500,
    ),
  )
  assert.deepEqual(
    comparison.parts.map(({ name, first, second, isSame }) => [name, first, second, isSame]),
    [
      ['status', '200', '500', false],
      ['body size', '13', '13', true],
      ['x-a', '1', '1', true],
      ['set-cookie', 'a', 'a', true],
      ['set-cookie', 'b', undefined, false],
      ['gone', '', undefined, false],
      ['new', undefined, 'n', false],
    ],
  )
  assert.deepEqual(
    comparison.lines.filter(({ isSame }) => !isSame),
    [{ first: '  "b": 2', second: '  "b": 3', isSame: false }],
  )
  assert.equal(comparisonText(comparison), 'The responses differ in the status, 3 headers and 1 line of the body.')
})

test('a missing response differs from one that came', () => {
  const none = { status: null, error_code: 'ERR_UPSTREAM_UNREACHABLE', response: null }
  const comparison = compareAnswers(answer('hi'), none)
  assert.deepEqual(comparison.parts[0]?.second, 'no response ERR_UPSTREAM_UNREACHABLE')
  assert.equal(comparisonText(comparison), 'The responses differ in the status and 1 line of the body.')
})

test('binary bodies are compared byte by byte, and truncated ones are reported as such', () => {
  const bytes = (content: string, size: number) => ({
    ...answer(''),
    response: { headers: [], body: { size, kept: 3, encoding: 'base64', content } },
  })
  const comparison = compareAnswers(bytes('/wAB', 3), bytes('/wAC', 3))
  assert.equal(comparisonText(comparison), 'The responses differ in 1 line of the body.')
  const cut = compareAnswers(bytes('/wAB', 9), bytes('/wAB', 8))
  assert.equal(
    comparisonText(cut),
    'The responses differ in the size of the body. Only the beginning of the bodies was compared.',
  )
})
