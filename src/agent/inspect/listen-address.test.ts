import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLoopback, parseInspectListen } from './listen-address.ts'

test('an address is read as people write it', () => {
  for (const [text, host, port] of [
    ['127.0.0.1:4040', '127.0.0.1', 4040],
    ['localhost:4041', '127.0.0.1', 4041],
    ['4042', '127.0.0.1', 4042],
    [':0', '127.0.0.1', 0],
    ['0.0.0.0:4040', '0.0.0.0', 4040],
    ['[::1]:4040', '::1', 4040],
    ['box.test:80', 'box.test', 80],
  ] as const) {
    assert.deepEqual(parseInspectListen(text), { host, port, isDefault: false }, text)
  }
  assert.equal(parseInspectListen('false'), false)
})

test('an invalid address is refused', () => {
  for (const text of [
    '',
    'true',
    'localhost',
    'http://localhost:4040',
    '1:2:3',
    '[x]:1',
    'a:70000',
    'a b:1',
    '::1:4040',
  ]) {
    assert.throws(
      () => parseInspectListen(text),
      /^Error: must be an address such as `127.0.0.1:4040`, or `false`$/,
      text,
    )
  }
})

test('a loopback address is recognised', () => {
  for (const [text, isOwn] of [
    ['127.0.0.1:1', true],
    ['127.8.8.8:1', true],
    ['[::1]:1', true],
    ['0.0.0.0:1', false],
    ['127.evil.test:1', false],
    ['192.0.2.1:1', false],
  ] as const) {
    const address = parseInspectListen(text)
    assert.equal(address && isLoopback(address), isOwn, text)
  }
})
