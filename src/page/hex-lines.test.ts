import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hexLines } from './hex-lines.ts'

test('each line has sixteen bytes, as numbers and as letters', () => {
  const bytes = Buffer.concat([Buffer.from('<b>\0\n\xff', 'latin1'), Buffer.alloc(12, 'a')])
  assert.deepEqual(hexLines(bytes.toString('base64'), 100), {
    lines: [
      '00000000  3c 62 3e 00 0a ff 61 61 61 61 61 61 61 61 61 61  <b>...aaaaaaaaaa',
      '00000010  61 61                                            aa',
    ],
    left: 0,
  })
})

test('of many bytes only the first are shown, and the others counted', () => {
  for (const size of [7, 8, 9, 1000]) {
    const { lines, left } = hexLines(Buffer.alloc(size, 'x').toString('base64'), 7)
    assert.deepEqual([lines.length, lines[0]?.endsWith('  xxxxxxx'), left], [1, true, size - 7])
  }
  assert.deepEqual(hexLines('', 7), { lines: [], left: 0 })
})
