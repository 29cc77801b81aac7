import assert from 'node:assert/strict'
import { test } from 'node:test'
import { everyExchange, filterExchanges } from './exchange-filter.ts'

const rows = [
  { id: 'a', method: 'GET', status: 200, tunnel_name: 'web' },
  { id: 'b', method: 'POST', status: 404, tunnel_name: 'web' },
  { id: 'c', method: 'PUT', status: 503, tunnel_name: 'web (http)' },
  { id: 'd', method: 'GET', status: null, tunnel_name: 'api' },
]

for (const [filter, expected] of [
  [{}, 'abcd'],
  [{ method: 'get' }, 'ad'],
  [{ method: 'p' }, 'bc'],
  [{ status: '404' }, 'b'],
  [{ status: '4xx' }, 'b'],
  [{ status: ' 5 ' }, 'c'],
  [{ status: 'none' }, 'd'],
  [{ status: 'what' }, ''],
  [{ tunnel: 'web' }, 'ab'],
  [{ method: 'GET', status: '2', tunnel: 'api' }, ''],
] as const) {
  test(`${JSON.stringify(filter)} leaves ${expected === '' ? 'nothing' : expected}`, () => {
    const found = filterExchanges(rows, { ...everyExchange, ...filter })
    assert.equal(found.map(({ id }) => id).join(''), expected)
  })
}
