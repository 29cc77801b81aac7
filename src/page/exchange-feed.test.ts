import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CallOutcome } from './api-caller.ts'
import { type ExchangeFilters, mergedRows, readExchanges } from './exchange-feed.ts'

const none: ExchangeFilters = { method: '', path: '', status: '', edge_id: '', endpoint_id: '' }
const nothing = { rows: [], isCut: false }

/** A server that has seen `count` exchanges, the newest with the highest number. */
function server(count: number) {
  const asked: string[] = []
  const get = async <T>(path: string): Promise<CallOutcome<T>> => {
    asked.push(path)
    const before = Number(/before_id=ex_(\d+)/.exec(path)?.[1] ?? count + 1)
    const ids = Array.from({ length: Math.min(100, before - 1) }, (_, i) => ({ id: `ex_${before - 1 - i}` }))
    // The types of responses are the test's to choose.
    return { ok: true, value: { exchanges: ids, next_page_uri: before - 1 > 100 ? 'more' : null } as T }
  }
  return { asked, get }
}

test('the first read gets the latest exchanges, later ones only what is new', async () => {
  const first = await readExchanges(server(30), none, nothing)
  assert.ok(first.ok)
  assert.deepEqual([first.value.rows.length, first.value.rows[0]?.id, first.value.isCut], [30, 'ex_30', false])
  const later = server(33)
  const second = await readExchanges(later, none, first.value)
  assert.ok(second.ok)
  assert.deepEqual(second.value.rows.map(({ id }) => id).slice(0, 4), ['ex_33', 'ex_32', 'ex_31', 'ex_30'])
  assert.deepEqual([second.value.rows.length, later.asked.length], [33, 1])
})

test('after a burst several pages are read, and a gap is reported', async () => {
  const first = await readExchanges(server(10), none, nothing)
  assert.ok(first.ok)
  const burst = await readExchanges(server(250), none, first.value)
  assert.ok(burst.ok)
  assert.deepEqual([burst.value.rows.length, burst.value.isCut], [250, false])
  const flood = await readExchanges(server(5000), none, first.value)
  assert.ok(flood.ok)
  assert.deepEqual([flood.value.rows.length, flood.value.isCut], [500, true])
})

test('filters are sent, and empty ones are not', async () => {
  const api = server(1)
  await readExchanges(api, { ...none, method: 'POST', path: '/a b' }, nothing)
  assert.deepEqual(api.asked, ['/exchanges?limit=100&method=POST&path=%2Fa+b'])
})

test('rows that came twice appear once, each in its place', () => {
  const rows = [{ id: 'ex_5' }, { id: 'ex_3' }]
  const merged = mergedRows({ rows, isCut: false }, [{ id: 'ex_4' }, { id: 'ex_5' }, { id: 'ex_6' }])
  assert.deepEqual(
    merged.rows.map(({ id }) => id),
    ['ex_6', 'ex_5', 'ex_4', 'ex_3'],
  )
})
