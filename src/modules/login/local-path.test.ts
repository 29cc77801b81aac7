import assert from 'node:assert/strict'
import { test } from 'node:test'
import { localPath } from './local-path.ts'
import { redirectPayloads } from './testing/test-payloads.ts'

test('accepts paths, with and without a query, unchanged', () => {
  for (const path of ['/', '/a', '/a/b?c=d&e=%2F', '/a//b', '/~x/(y)!*', '/?to=https://a.test', '/a@b:c', '/%5c%2f']) {
    assert.equal(localPath(path), path)
  }
})

test('refuses everything else', () => {
  for (const text of [
    '',
    'a',
    '?a',
    '#a',
    '//a',
    '/\\a',
    '/a\\b',
    '/a b',
    '/a\n',
    '/ü',
    '/a\0',
    `/${'a'.repeat(1500)}`,
  ]) {
    assert.equal(localPath(text), undefined, JSON.stringify(text))
  }
})

test('what it accepts stays on the host when a browser parses it', () => {
  const payloads = redirectPayloads()
  assert.ok(payloads.length >= 600)
  let taken = 0
  for (const payload of payloads) {
    const path = localPath(payload)
    if (path === undefined) continue
    taken++
    assert.equal(new URL(path, 'https://app.example.com/oauth2/callback').origin, 'https://app.example.com', payload)
  }
  // Not every payload may be refused for its first characters.
  assert.ok(taken > 20, `${taken} were taken`)
})
