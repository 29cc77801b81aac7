import assert from 'node:assert/strict'
import { test } from 'node:test'
import { format, inspect } from 'node:util'
import { Secret } from './secret.ts'

const value = 'correct_horse_battery_staple'
const secret = new Secret(value)

test('reveals its value only when asked', () => {
  assert.equal(secret.reveal(), value)
})

const printed: Record<string, string> = {
  'String()': String(secret),
  concatenation: ['a', secret].join(''),
  JSON: JSON.stringify({ secret }),
  inspect: inspect({ secret }, { showHidden: true, depth: null }),
  format: format('%s %o %j', secret, secret, secret),
  keys: JSON.stringify(Object.entries(secret)),
  'error message': new Error(String(secret)).message,
}
for (const [how, text] of Object.entries(printed)) {
  test(`does not show its value through ${how}`, () => {
    assert.ok(!text.includes(value), text)
  })
}
