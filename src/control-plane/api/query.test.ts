import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Refusal } from '../../model/errors.ts'
import { ngrok } from './dialect/ngrok.ts'
import { own } from './dialect/own.ts'
import { readQuery } from './query.ts'
import { type ApiRoute, routeTable } from './routes.ts'

const routes = routeTable()
const list = route('list_api_keys')
const get = route('get_api_key')
const id = `ak_${'0'.repeat(27)}`

const taken: [search: string, page: object][] = [
  ['', { limit: 100 }],
  ['limit=1', { limit: 1 }],
  ['limit=100', { limit: 100 }],
  [`before_id=${id}`, { limit: 100, beforeId: id }],
  [`limit=5&before_id=${id}`, { limit: 5, beforeId: id }],
  ['li%6Dit=%35', { limit: 5 }],
  ['&&limit=5&', { limit: 5 }],
]

for (const [search, page] of taken) {
  test(`a list takes \`?${search}\``, () => {
    assert.deepEqual(readQuery(list, search, own), page)
  })
}

const refused: [search: string, code: string][] = [
  ...['0', '', '-1', '+1', '01', '101', '1e1', '1.0', ' 1', '1%20', '٣', 'ten', '99999999999999999999', '0x10'].map(
    (limit): [string, string] => [`limit=${limit}`, 'BAD_LIMIT'],
  ),
  ['limit', 'BAD_LIMIT'],
  ['limit=1&limit=1', 'REPEATED_QUERY'],
  ['limit=1&li%6dit=2', 'REPEATED_QUERY'],
  [`before_id=${id}&before_id=${id}`, 'REPEATED_QUERY'],
  ['before_id=', 'BAD_CURSOR'],
  ['before_id=x', 'BAD_CURSOR'],
  [`before_id=${id}0`, 'BAD_CURSOR'],
  [`before_id=cr_${'0'.repeat(27)}`, 'BAD_CURSOR'],
  [`before_id=${id.slice(0, -1)}%00`, 'BAD_CURSOR'],
  ['Limit=1', 'UNKNOWN_QUERY'],
  ['limits=1', 'UNKNOWN_QUERY'],
  ['limit[]=1', 'UNKNOWN_QUERY'],
  ['__proto__=1', 'UNKNOWN_QUERY'],
  ['constructor', 'UNKNOWN_QUERY'],
  ['=', 'UNKNOWN_QUERY'],
  ['access_token=x', 'UNKNOWN_QUERY'],
  [`limit=1;before_id=${id}`, 'BAD_LIMIT'],
  ['limit=1?limit=2', 'BAD_LIMIT'],
]

for (const [search, code] of refused) {
  test(`a list refuses \`?${search}\` with ${code}`, () => {
    assert.throws(() => readQuery(list, search, own), { name: 'Refusal', code })
  })
}

test('operations other than lists take no parameters', () => {
  assert.deepEqual(readQuery(get, '', own), { limit: 100 })
  for (const search of ['limit=1', `before_id=${id}`, 'x'])
    assert.throws(() => readQuery(get, search, own), { code: 'UNKNOWN_QUERY', message: /it takes none$/ })
})

test('for a mistyped parameter the right one is suggested', () => {
  assert.throws(() => readQuery(list, 'befor_id=1', own), { message: /did you mean `before_id`\?$/ })
})

test('an empty parameter counts as left out where the dialect says so', () => {
  for (const search of ['before_id=', 'beforeId=&limit=', 'limit', 'filter=', 'before_id=&before_id=']) {
    assert.deepEqual(readQuery(list, search, ngrok), { limit: 100 }, search)
    assert.throws(() => readQuery(list, search, own), { status: 400 }, search)
  }
  assert.deepEqual(readQuery(list, `before_id=&beforeId=${id}`, ngrok), { limit: 100, beforeId: id })
})

test('any query is read or refused with a short message', () => {
  const part = fc.oneof(fc.constantFrom('limit', 'before_id', '=', '&', '%', '%0', '+', id, '1', '?', '#'), fc.string())
  fc.assert(
    fc.property(fc.array(part), fc.constantFrom(list, get), (parts, route) => {
      try {
        const { limit } = readQuery(route, parts.join(''), own)
        assert.ok(Number.isInteger(limit) && limit >= 1 && limit <= 100)
      } catch (error) {
        assert.ok(error instanceof Refusal && error.status === 400, String(error))
        assert.ok(error.message.length < 300)
      }
    }),
    { numRuns: 2000 },
  )
})

function route(operation: string): ApiRoute {
  return routes.find((each) => each.operation === operation) ?? assert.fail(`no operation ${operation}`)
}
