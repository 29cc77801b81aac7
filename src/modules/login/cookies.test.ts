import assert from 'node:assert/strict'
import { test } from 'node:test'
import { headerList } from '../test-request.ts'
import { cookieNames, expireCookie, readCookies, setCookie } from './cookies.ts'

test('names follow the prefix, ours where none is set', () => {
  assert.deepEqual(cookieNames(''), { session: 'postern.session', nonce: 'postern.nonce.' })
  assert.deepEqual(cookieNames('my.'), { session: 'my.session', nonce: 'my.nonce.' })
})

test('reads cookies of all headers in their order, whatever stands around them', () => {
  const read = (...cookie: string[]) => readCookies(headerList({ cookie }), (name) => name === 'a')
  assert.deepEqual(read('a=1; b=2;a=3', ' a = 4 ', 'A=5; xa=6; a', '=a; a='), [
    ['a', '1'],
    ['a', '3'],
    ['a', '4'],
    ['a', ''],
  ])
  assert.deepEqual(read(), [])
})

test('sets cookies for this host and TLS alone, out of reach of scripts', () => {
  assert.deepEqual(setCookie('a', 'b', 5), ['Set-Cookie', 'a=b; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=5'])
  assert.deepEqual(setCookie('a', 'b', undefined), ['Set-Cookie', 'a=b; Path=/; HttpOnly; Secure; SameSite=Lax'])
  assert.match(expireCookie('a')[1], /^a=; .*Max-Age=0$/)
})
