import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refuseRepeats } from './fields.ts'

test('a repeat is named with the entry it repeats', () => {
  refuseRepeats('ids', ['a', 'b', 'A'])
  assert.throws(() => refuseRepeats('m.ids', ['a', 'b', 'a']), {
    field: 'm.ids[2]',
    kind: 'value',
    message: '`m.ids[2]` repeats `m.ids[0]`; name each entry once',
  })
  assert.throws(() => refuseRepeats('ids', ['a', 'A'], (v) => v.toLowerCase()), { field: 'ids[1]' })
})
