import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rowWindow } from './row-window.ts'

test('of ten thousand rows only those near the view are drawn, and the total height stays the same', () => {
  for (const scrollTop of [0, 360, 180_000, 359_400, 1_000_000]) {
    const { from, to, above, below } = rowWindow({ count: 10_000, rowHeight: 36, scrollTop, height: 600 })
    assert.ok(to - from <= 41, `${from}..${to}`)
    assert.equal(above + (to - from) * 36 + below, 360_000)
    const top = Math.min(scrollTop, 360_000 - 600)
    assert.ok(above <= top && above + (to - from) * 36 >= Math.min(top + 600, 360_000), `${scrollTop}: ${from}..${to}`)
  }
})

test('a short list is drawn whole, wherever it was scrolled to', () => {
  for (const count of [0, 1, 5]) {
    const drawn = rowWindow({ count, rowHeight: 36, scrollTop: 5000, height: 600 })
    assert.deepEqual(drawn, { from: 0, to: count, above: 0, below: 0 })
  }
})
