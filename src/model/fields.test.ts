import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuseRepeats } from './fields.ts'

test('the error for a repeated entry names both entries', () => {
  refuseRepeats('ids', ['a', 'b', 'A'])
  assert.throws(() => refuseRepeats('m.ids', ['a', 'b', 'a']), {
    field: 'm.ids[2]',
    kind: 'value',
    message: '`m.ids[2]` repeats `m.ids[0]`; name each entry once',
  })
  assert.throws(() => refuseRepeats('ids', ['a', 'A'], (v) => v.toLowerCase()), { field: 'ids[1]' })
})
