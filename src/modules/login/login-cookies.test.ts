import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cookieNames, expireCookie, hiddenCookies, setCookie } from './login-cookies.ts'

test('names begin with the configured prefix, or with ours', () => {
  assert.deepEqual(cookieNames(''), { session: '__Host-postern.session', nonce: '__Host-postern.nonce.' })
  assert.deepEqual(cookieNames('my.'), { session: '__Host-my.session', nonce: '__Host-my.nonce.' })
  assert.deepEqual(hiddenCookies(cookieNames('my.')), ['__Host-my.session', '__Host-my.nonce.*'])
})

test('cookies are for this host and TLS only, and hidden from scripts', () => {
  assert.deepEqual(setCookie('a', 'b', 5), ['Set-Cookie', 'a=b; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=5'])
  assert.deepEqual(setCookie('a', 'b', undefined), ['Set-Cookie', 'a=b; Path=/; HttpOnly; Secure; SameSite=Lax'])
  assert.match(expireCookie('a')[1], /^a=; .*Max-Age=0$/)
})
