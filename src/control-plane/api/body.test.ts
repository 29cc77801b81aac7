import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readBody } from './body.ts'
import { own } from './dialect/own.ts'
import { type ApiRoute, routeTable } from './routes.ts'

const routes = routeTable()
const create = route('create_ip_policy')
const update = route('update_ip_policy')
const rule = route('create_ip_policy_rule')
const get = route('get_ip_policy')
const id = `ipp_${'1'.repeat(27)}`
const JSON_TYPE = 'application/json'

const types: [contentType: string | undefined, code: string | undefined][] = [
  [JSON_TYPE, undefined],
  ['Application/JSON', undefined],
  ['application/json; charset=utf-8', undefined],
  ['application/json;charset="UTF-8"', undefined],
  ['application/json ; charset=utf8', undefined],
  [undefined, 'BODY_TYPE'],
  ['', 'BODY_TYPE'],
  ['text/plain', 'BODY_TYPE'],
  ['text/json', 'BODY_TYPE'],
  ['application/jsonp', 'BODY_TYPE'],
  ['application/json-patch+json', 'BODY_TYPE'],
  ['application/x-www-form-urlencoded', 'BODY_TYPE'],
  ['multipart/form-data; boundary=application/json', 'BODY_TYPE'],
  ['application/json; charset=latin1', 'BODY_TYPE'],
  ['application/json; charset=utf-16', 'BODY_TYPE'],
  ['application/json, text/plain', 'BODY_TYPE'],
]

for (const [contentType, code] of types) {
  test(`a body sent as ${contentType ?? 'nothing'} is ${code ? 'refused' : 'taken'}`, async () => {
    const read = readBody(create, { bytes: Buffer.from('{"description":"a"}'), contentType, params: {} }, own)
    if (code) await assert.rejects(read, { name: 'Refusal', code, status: 415 })
    else assert.equal((await read).description, 'a')
  })
}

test('an empty body counts as {}, whatever its type (D7)', async () => {
  for (const contentType of [undefined, JSON_TYPE, 'text/plain']) {
    const read = await readBody(create, { bytes: Buffer.alloc(0), contentType, params: {} }, own)
    assert.deepEqual(read, { description: '', metadata: '' })
  }
})

test('a route without a body ignores one', async () => {
  assert.deepEqual(await readBody(get, { bytes: Buffer.from('{"'), contentType: 'x', params: { id } }, own), {})
})

const refused: [what: string, route: ApiRoute, text: string, code: string][] = [
  ['text that is not JSON', create, 'hello', 'BODY_MALFORMED'],
  ['a blank', create, ' ', 'BODY_MALFORMED'],
  ['a key twice', create, '{"description":"","description":""}', 'BODY_MALFORMED'],
  ['33 levels', create, '['.repeat(33) + ']'.repeat(33), 'BODY_MALFORMED'],
  ['a list', create, '[]', 'INVALID_VALUE'],
  ['null', create, 'null', 'INVALID_VALUE'],
  ['a string', create, '"{}"', 'INVALID_VALUE'],
  ['an unknown field', create, '{"descriptio":""}', 'UNKNOWN_FIELD'],
  ['an id in a create', create, `{"id":"${id}"}`, 'UNKNOWN_FIELD'],
  ['a missing field', rule, '{"action":"allow"}', 'FIELD_REQUIRED'],
  ['a wrong type', create, '{"description":1}', 'INVALID_VALUE'],
  ['256 bytes', create, `{"description":"${'é'.repeat(128)}"}`, 'FIELD_TOO_LONG'],
  ['another id than the path’s', update, `{"id":"ipp_${'2'.repeat(27)}"}`, 'INVALID_VALUE'],
  ['an id that is a list', update, `{"id":["${id}"]}`, 'INVALID_VALUE'],
]

for (const [what, route, text, code] of refused) {
  test(`refuses ${what} with ${code}`, async () => {
    await assert.rejects(read(route, text), { name: 'Refusal', code })
  })
}

test('the body may repeat the id of the path (D8)', async () => {
  assert.deepEqual(await read(update, `{"id":"${id}","metadata":"m"}`), { metadata: 'm' })
})

test('an update gets no defaults, and null fields are left out', async () => {
  assert.deepEqual(await read(update, '{"description":null}'), {})
})

function read(route: ApiRoute, text: string) {
  const params = route === update ? { id } : {}
  return readBody(route, { bytes: Buffer.from(text), contentType: JSON_TYPE, params }, own)
}

function route(operation: string): ApiRoute {
  return routes.find((each) => each.operation === operation) ?? assert.fail(`no operation ${operation}`)
}
