import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shownBody } from './shown-body.ts'

const sent = { size: 9, kept: 9, encoding: 'base64', content: 'AAAA' }

test('a body is shown decompressed where the API did so, else as it was sent', () => {
  assert.deepEqual(shownBody({ ...sent, unpacked: null }), {
    ...{ encoding: 'base64', content: 'AAAA', isWhole: true, unpacked: undefined },
  })
  const unpacked = { coding: 'br', size: 3, is_cut: false, content: 'abc' }
  assert.deepEqual(shownBody({ ...sent, unpacked }), {
    ...{ encoding: 'text', content: 'abc', isWhole: true },
    unpacked: { coding: 'br', size: 3, isCut: false },
  })
  const frame = { ...unpacked, encoding: 'base64', content: '/w==' }
  assert.deepEqual([shownBody({ ...sent, unpacked: frame }).encoding], ['base64'])
})

test('it is whole only if all of it was kept and decompressed', () => {
  const unpacked = { coding: 'gzip', size: 3, is_cut: true, content: 'abc' }
  for (const [body, isWhole] of [
    [{ ...sent, kept: 8 }, false],
    [{ ...sent, unpacked }, false],
    [{ ...sent, kept: 8, unpacked: { ...unpacked, is_cut: false } }, false],
    [{ ...sent, unpacked: { ...unpacked, is_cut: false } }, true],
  ] as const) {
    assert.equal(shownBody(body).isWhole, isWhole)
  }
})
