import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ExchangeAsk } from '../../model/exchange.ts'
import { readAsk } from './node-exchanges.ts'

const asks: readonly ExchangeAsk[] = [
  { kind: 'page', query: { filter: {}, limit: 101 } },
  {
    kind: 'page',
    query: {
      filter: { edgeId: 'e', tunnelId: 't', method: 'GET', path: '/', status: 200, since: 5.5, ownerId: 'usr_1' },
      beforeId: 'ex_1',
      limit: 1,
    },
  },
  { kind: 'one', id: 'ex_1' },
  { kind: 'replay', id: 'ex_1', mayUseSecrets: false },
  {
    kind: 'replay',
    id: 'ex_1',
    mayUseSecrets: true,
    method: 'PUT',
    path: '/a',
    headers: [{ name: 'a', value: 'b' }],
    body: 'YQ==',
    callerIp: '192.0.2.1',
  },
  { kind: 'news', seen: {}, isFirst: true },
  { kind: 'news', seen: { plane: 5 }, isFirst: false },
]

for (const ask of asks) {
  test(`another node may ask: ${JSON.stringify(ask)}`, () => {
    const sent: unknown = JSON.parse(JSON.stringify(ask))
    assert.deepEqual(JSON.parse(JSON.stringify(readAsk(sent))), sent)
  })
}

for (const ask of [
  undefined,
  null,
  'page',
  {},
  { kind: 'more' },
  { kind: 'toString' },
  { kind: 'one' },
  { kind: 'one', id: 'x'.repeat(65) },
  { kind: 'page', query: { filter: {}, limit: 1000 } },
  { kind: 'page', query: { filter: { path: 5 }, limit: 1 } },
  { kind: 'news', seen: { plane: 'all' }, isFirst: false },
  { kind: 'replay', id: 'ex_1', mayUseSecrets: true, path: 'https://other.test/' },
]) {
  test(`an invalid question is refused: ${JSON.stringify(ask)?.slice(0, 80)}`, () => assert.throws(() => readAsk(ask)))
}
