import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readRfc3339 } from './rfc3339.ts'

const good: [text: string, same: string][] = [
  ['2026-05-01T10:20:30Z', '2026-05-01T10:20:30.000Z'],
  ['2026-05-01t10:20:30z', '2026-05-01T10:20:30.000Z'],
  ['2026-05-01T10:20:30.123456789Z', '2026-05-01T10:20:30.123Z'],
  ['2026-05-01T10:20:30+02:00', '2026-05-01T08:20:30.000Z'],
  ['2024-02-29T23:59:59-00:30', '2024-03-01T00:29:59.000Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59.000Z'],
]
for (const [text, same] of good) {
  test(`${text} is read`, () => assert.equal(new Date(readRfc3339(text)).toISOString(), same))
}

const bad = [
  '',
  'tomorrow',
  '2026-05-01',
  '2026-05-01T10:20Z',
  '2026-05-01T10:20:30',
  '2026-05-01 10:20:30Z',
  '2026-02-30T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-05-01T24:00:00Z',
  '2026-05-01T10:60:00Z',
  '2026-05-01T10:20:30+99:00',
  '2026-05-01T10:20:30Z ',
  '+002026-05-01T10:20:30Z',
  '1777630830',
]
for (const text of bad) {
  test(`\`${text}\` is refused`, () => assert.throws(() => readRfc3339(text), /RFC 3339|offset/))
}
