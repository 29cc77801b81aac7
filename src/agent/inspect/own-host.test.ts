import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foreignRequest } from './local-api.ts'

test('only the address of the agent is accepted as Host', () => {
  for (const [listens, host, isOwn] of [
    ['127.0.0.1', 'localhost:4040', true],
    ['127.0.0.1', 'LOCALHOST', true],
    ['127.0.0.1', '127.0.0.1:4040', true],
    ['127.0.0.1', '127.1.2.3', true],
    ['127.0.0.1', '[::1]:4040', true],
    ['127.0.0.1', '', false],
    ['127.0.0.1', undefined, false],
    ['127.0.0.1', 'evil.test', false],
    ['127.0.0.1', '127.0.0.1.evil.test', false],
    ['127.0.0.1', 'user@localhost', false],
    ['127.0.0.1', 'localhost:4040:1', false],
    ['127.0.0.1', '192.0.2.1', false],
    ['192.0.2.1', '192.0.2.1:4040', true],
    ['192.0.2.1', '192.0.2.2:4040', false],
    ['box.test', 'Box.Test:4040', true],
    ['0.0.0.0', '192.0.2.1:4040', true],
    ['0.0.0.0', 'evil.test', false],
    ['::', '[2001:db8::1]:4040', true],
    ['::', 'evil.test', false],
  ] as const) {
    assert.equal(foreignRequest({ host }, listens) === undefined, isOwn, `${host} at ${listens}`)
  }
})

test('only pages of its own origin may use the API', () => {
  const host = 'localhost:4040'
  for (const [headers, isOwn] of [
    [{}, true],
    [{ origin: 'http://localhost:4040' }, true],
    [{ origin: 'http://LOCALHOST:4040' }, true],
    [{ origin: 'https://localhost:4040' }, false],
    [{ origin: 'http://localhost:4041' }, false],
    [{ origin: 'http://127.0.0.1:4040' }, false],
    [{ origin: 'null' }, false],
    [{ origin: '' }, false],
    [{ 'sec-fetch-site': 'same-origin' }, true],
    [{ 'sec-fetch-site': 'none' }, true],
    [{ 'sec-fetch-site': 'same-site' }, false],
    [{ 'sec-fetch-site': 'cross-site' }, false],
    [{ 'sec-fetch-site': '' }, false],
  ] as const) {
    assert.equal(foreignRequest({ host, ...headers }, '127.0.0.1') === undefined, isOwn, JSON.stringify(headers))
  }
})

test('other sites may link to the page, and to nothing else', () => {
  const host = 'localhost:4040'
  const link = { host, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  for (const [headers, isPage, isOwn] of [
    [link, true, true],
    [link, false, false],
    [{ ...link, 'sec-fetch-dest': 'iframe' }, true, false],
    [{ ...link, 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' }, true, false],
    [{ ...link, origin: 'https://evil.test' }, true, false],
    [{ ...link, host: 'evil.test' }, true, false],
  ] as const) {
    assert.equal(foreignRequest(headers, '127.0.0.1', { isPage }) === undefined, isOwn, JSON.stringify(headers))
  }
})
