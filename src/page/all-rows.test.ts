import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_ROWS, readAllRows } from './all-rows.ts'
import type { CallOutcome } from './api-caller.ts'

/** An API with `count` things, a hundred a page. */
function listOf(count: number) {
  const asked: string[] = []
  const get = async <T>(path: string): Promise<CallOutcome<T>> => {
    asked.push(path)
    const from = Number(/before_id=tn_(\d+)/.exec(path)?.[1] ?? -1) + 1
    const to = Math.min(count, from + 100)
    const things = Array.from({ length: to - from }, (_, i) => ({ id: `tn_${from + i}` }))
    const next = to < count ? 'more' : null
    // The types of responses are the test's to choose.
    return { ok: true, value: { things, uri: 'u', next_page_uri: next } as T }
  }
  return { asked, get }
}

test('all pages of a list are read, in their order', async () => {
  const api = listOf(250)
  const outcome = await readAllRows(api, '/tunnels')
  assert.ok(outcome.ok)
  assert.equal(outcome.value.isCut, false)
  assert.deepEqual(
    outcome.value.rows.map(({ id }) => id),
    Array.from({ length: 250 }, (_, i) => `tn_${i}`),
  )
  assert.deepEqual(api.asked, [
    '/tunnels?limit=100',
    '/tunnels?limit=100&before_id=tn_99',
    '/tunnels?limit=100&before_id=tn_199',
  ])
})

test('a list of any length is cut at the limit, and says so', async () => {
  const outcome = await readAllRows(listOf(MAX_ROWS * 2), '/tunnels')
  assert.ok(outcome.ok)
  assert.deepEqual([outcome.value.rows.length, outcome.value.isCut], [MAX_ROWS, true])
})

test('an empty list has no rows', async () => {
  const outcome = await readAllRows(listOf(0), '/tunnels')
  assert.deepEqual(outcome, { ok: true, value: { rows: [], isCut: false } })
})
