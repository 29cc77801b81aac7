import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timestamp } from './clock.ts'

const cases: [millis: number, text: string][] = [
  [0, '1970-01-01T00:00:00Z'],
  [1_709_210_096_789, '2024-02-29T12:34:56Z'],
  [1_709_210_096_999.9, '2024-02-29T12:34:56Z'],
  [253_402_300_799_999, '9999-12-31T23:59:59Z'],
]

for (const [millis, text] of cases) {
  test(`${millis} is ${text}: UTC, whole seconds, never rounded up`, () => {
    assert.equal(timestamp(millis), text)
    assert.ok(Date.parse(text) <= millis)
  })
}
