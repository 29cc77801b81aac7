import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import { Refusal } from '../../model/errors.ts'
import type { ModuleConfig } from '../module.ts'
import { userAgentFilter } from './form.ts'

function put(body: unknown, at = ''): ModuleConfig {
  assert.ok(userAgentFilter.at.route && userAgentFilter.accept)
  return userAgentFilter.accept(check(userAgentFilter.at.route, body), { place: 'route', at })
}

test('accepts RE2 patterns and stores them unchanged', () => {
  const body = { allow: ['(?i)google(bot)?', '^$', '(?P<v>\\d+)'], deny: ['\\pL+', '.*'] }
  assert.deepEqual(put(body), { enabled: true, ...body })
  assert.deepEqual(put({}), { enabled: true, allow: [], deny: [] })
})

for (const [pattern, reason] of [
  ['(', 'missing closing )'],
  ['[z-a]', 'invalid character class range'],
  ['(?=a)', '(?='],
  ['(?<!a)b', '(?<'],
  ['(a)\\1', 'invalid escape sequence'],
  ['a**', 'invalid nested repetition operator'],
  ['a{1001}', 'invalid repeat count'],
] as const) {
  test(`refuses ${pattern} and says where and why`, () => {
    assert.throws(
      () => put({ allow: ['ok'], deny: ['ok', pattern] }, 'user_agent_filter.'),
      (error: unknown) =>
        error instanceof Refusal &&
        error.code === 'BAD_REGEX' &&
        error.message.startsWith('`user_agent_filter.deny[1]` ') &&
        error.message.includes(reason),
    )
  })
}

test('refuses a pattern that compiles to too many instructions', () => {
  assert.throws(() => put({ allow: ['x{900}'.repeat(20)] }), {
    code: 'BAD_REGEX',
    message: /`allow\[0\]` is too costly/,
  })
})

test('refuses patterns that are too costly together', () => {
  const one = 'x{900}y{900}'
  put({ allow: Array(5).fill(one), deny: Array(5).fill(one) })
  assert.throws(() => put({ allow: Array(6).fill(one), deny: Array(6).fill(one) }), {
    code: 'BAD_REGEX',
    message: /together .* reached at `deny\[5\]`/,
  })
})

test('a full module of ordinary patterns fits', () => {
  const list = Array.from({ length: 100 }, (_, i) => `(?i)^mozilla/\\d+\\.\\d+ .*(bot|crawler|spider)-${i}/`)
  put({ allow: list, deny: list })
})

test('enforces limits on count and length', () => {
  assert.throws(() => put({ deny: Array(101).fill('a') }), { field: 'deny', kind: 'value' })
  put({ deny: ['a'.repeat(1024)] })
  assert.throws(() => put({ deny: ['a'.repeat(1025)] }), { field: 'deny[0]', kind: 'too_long' })
})
