import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loginAt, START } from '../../control-plane/records/testing/test-logins.ts'
import { type CachedLogin, LoginCache } from './login-cache.ts'

const KIB = 1024

function cached(id: string, { userId = 'au_1', browser = id, bytes = 0 } = {}): CachedLogin {
  const login = loginAt(START, { kept: bytes > 0 ? { t: 'x'.repeat(bytes - 1) } : {} })
  return { id, userId, browser, routeId: 'r', login, expiresAt: null, readAt: START, notedAt: START }
}

describe('the cache of logins', () => {
  const has = (cache: LoginCache, ...ids: string[]) => ids.filter((id) => cache.get(id, 'r') !== undefined).join('')

  test('is bounded in bytes and drops unused logins first', () => {
    const cache = new LoginCache(3 * KIB)
    for (const id of ['a', 'b', 'c']) cache.set(cached(id))
    cache.get('a', 'r')
    cache.set(cached('d'))
    assert.equal(has(cache, 'a', 'b', 'c', 'd'), 'acd')
  })

  test('counts what the modules keep', () => {
    const cache = new LoginCache(4 * KIB)
    for (const id of ['a', 'b']) cache.set(cached(id))
    cache.set(cached('c', { bytes: 2 * KIB }))
    assert.equal(has(cache, 'a', 'b', 'c'), 'bc')
    cache.set(cached('d', { bytes: 4 * KIB }))
    assert.equal(has(cache, 'b', 'c', 'd'), 'bc', 'a login that exceeds the cache by itself is not kept')
  })

  test('frees the room of logins that are replaced or dropped', () => {
    const cache = new LoginCache(2 * KIB)
    for (let i = 0; i < 10; i++) cache.set(cached('a'))
    cache.set(cached('b'))
    assert.equal(has(cache, 'a', 'b'), 'ab')
    cache.drop('a')
    cache.drop('unknown')
    cache.set(cached('c'))
    assert.equal(has(cache, 'a', 'b', 'c'), 'bc')
  })

  test('drops one login, those of a browser, those of users, and all', () => {
    const cache = new LoginCache(100 * KIB)
    cache.set(cached('a', { browser: 'x' }))
    cache.set({ ...cached('b', { browser: 'x' }), routeId: 'other' })
    cache.set(cached('c', { userId: 'au_2' }))
    cache.set(cached('d', { userId: 'au_3' }))
    cache.set(cached('e'))
    cache.dropBrowser('x')
    assert.equal(cache.size, 3)
    cache.dropUsers(new Set(['au_2', 'au_3']))
    assert.equal(has(cache, 'c', 'd', 'e'), 'e')
    cache.clear()
    assert.equal(cache.size, 0)
  })
})
