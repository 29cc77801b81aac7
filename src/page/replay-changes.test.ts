import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesOf, requestOf } from './replay-changes.ts'

const exchange = {
  method: 'POST',
  path: '/a?b=1',
  request: {
    headers: [
      { name: 'Host', value: 'x' },
      { name: 'X-A', value: 'a: b' },
    ],
    body: { size: 2, kept: 2, encoding: 'text', content: 'hi' },
  },
}

test('a request is shown as it was, and only changes are sent', () => {
  const before = requestOf(exchange)
  assert.deepEqual(before, { method: 'POST', path: '/a?b=1', headers: 'Host: x\nX-A: a: b', body: 'hi' })
  assert.deepEqual(changesOf(before, before), {})
  assert.deepEqual(changesOf(before, { ...before, method: 'PUT', body: '' }), {
    method: 'PUT',
    body: { encoding: 'text', content: '' },
  })
})

test('changed headers are sent as a whole, line by line', () => {
  const before = requestOf(exchange)
  assert.deepEqual(changesOf(before, { ...before, headers: 'X-A: a: b\n\n X-B :c\nX-C' }), {
    headers: [
      { name: 'X-A', value: 'a: b' },
      { name: 'X-B', value: 'c' },
      { name: 'X-C', value: '' },
    ],
  })
})

test('a binary body is left unchanged', () => {
  const body = { size: 1, kept: 1, encoding: 'base64', content: '/w==' }
  const before = requestOf({ ...exchange, request: { headers: [], body } })
  assert.equal(before.body, '')
  assert.deepEqual(changesOf(before, before), {})
})
