import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListedRow, Rows } from './all-rows.ts'
import type { CallFault, CallOutcome, FollowOptions } from './api-caller.ts'
import { type ExchangeFilters, queryOf, readExchanges } from './exchange-feed.ts'
import { ExchangeFollower } from './exchange-follower.ts'
import type { Reading } from './polling.ts'

const filters: ExchangeFilters = { method: 'GET', path: '', status: '', edge_id: '', endpoint_id: '' }
const away: CallFault = { kind: 'away', text: 'away', code: '', field: '', operation: '' }
const row = (number: number): ListedRow => ({ id: `ex_${number}` })
const following = { name: 'following', data: '{}' }
const missed = { name: 'missed', data: '{"count":1}' }
const exchange = (number: number) => ({ name: 'exchange', data: JSON.stringify(row(number)) })

/** A server whose list and stream the test provides. */
function world({ maxRetryMs }: { readonly maxRetryMs?: number } = {}) {
  const readings: Reading<Rows>[] = []
  const streams: (FollowOptions & { readonly path: string; readonly end: (fault: CallFault) => void })[] = []
  const lists: ((numbers: readonly number[] | CallFault) => Promise<void>)[] = []
  const waits: { readonly ms: number; readonly run: () => void }[] = []
  const api = {
    follow: (path: string, options: FollowOptions) =>
      new Promise<CallFault>((resolve) => streams.push({ ...options, path, end: resolve })),
    get: <T>() =>
      new Promise<CallOutcome<T>>((resolve) =>
        lists.push(async (given) => {
          // The types of responses are the test's to choose.
          const value = { exchanges: 'kind' in given ? [] : given.map(row), next_page_uri: null } as T
          resolve('kind' in given ? { ok: false, fault: given } : { ok: true, value })
          await settled()
        }),
      ),
  }
  const follower = new ExchangeFollower({
    api,
    stream: `/exchanges/stream?${queryOf(filters)}`,
    load: (known) => readExchanges(api, filters, known),
    ...(maxRetryMs !== undefined && { maxRetryMs }),
    onChange: (reading) => readings.push(reading),
    now: () => 7,
    after(ms, run) {
      const wait = { ms, run }
      waits.push(wait)
      return () => void waits.splice(waits.indexOf(wait), waits.includes(wait) ? 1 : 0)
    },
  })
  const stream = () => streams.at(-1) ?? assert.fail('no stream is open')
  return {
    ...{ follower, streams, lists, waits, stream },
    last: () => readings.at(-1),
    numbers: () => readings.at(-1)?.value?.rows.map(({ id }) => Number(String(id).slice(3))),
    list: (given: readonly number[] | CallFault) => (lists.shift() ?? assert.fail('no list was asked for'))(given),
    /** The pending timer. */
    wait: () => {
      const next = waits.shift() ?? assert.fail('nobody waits')
      next.run()
      return next.ms
    },
  }
}

const removed = (number: number) => ({ name: 'removed', data: JSON.stringify(row(number)) })
const changed = (number: number, status: number) => ({
  name: 'exchange',
  data: JSON.stringify({ ...row(number), status }),
})

const settled = () => new Promise(setImmediate)

test('the list is read once the stream is open, and exchanges that come meanwhile are sorted in', async () => {
  const { follower, stream, lists, list, last, numbers } = world()
  follower.start()
  assert.equal(stream().path, '/exchanges/stream?method=GET')
  stream().onEvents([])
  assert.deepEqual([lists.length, last()], [0, undefined])
  stream().onEvents([following])
  stream().onEvents([exchange(13), exchange(12)])
  assert.equal(last(), undefined)
  await list([12, 11])
  assert.deepEqual([numbers(), last()?.fault, last()?.readAt], [[13, 12, 11], undefined, 7])
  stream().onEvents([exchange(15)])
  stream().onEvents([exchange(14)])
  assert.deepEqual(numbers(), [15, 14, 13, 12, 11])
  assert.equal(lists.length, 0)
})

test('exchanges that the stream skipped are read from the list; until then the table says that there are more', async () => {
  const { follower, stream, lists, list, last, numbers, wait, waits } = world()
  follower.start()
  stream().onEvents([following])
  await list([11])
  stream().onEvents([missed])
  stream().onEvents([missed, exchange(15)])
  assert.deepEqual([numbers(), last()?.value?.isCut, waits.length], [[15, 11], true, 1])
  assert.equal(wait(), 1500)
  // What is missed while the list is read needs another one.
  stream().onEvents([missed, exchange(17)])
  await list([15, 14, 13, 12, 11])
  assert.deepEqual([numbers(), last()?.value?.isCut], [[17, 15, 14, 13, 12, 11], true])
  wait()
  await list([17, 16, 15])
  assert.deepEqual([numbers(), last()?.value?.isCut], [[17, 16, 15, 14, 13, 12, 11], false])
  assert.deepEqual([lists.length, waits.length], [0, 0])
})

test('events that come while the list is read again are not lost', async () => {
  const { follower, stream, list, numbers } = world()
  follower.start()
  stream().onEvents([following])
  await list([11])
  follower.refresh()
  stream().onEvents([exchange(13)])
  await list([12, 11])
  assert.deepEqual(numbers(), [13, 12, 11])
})

test('rows from before a restart of the server are dropped', async () => {
  const { follower, stream, list, numbers, wait } = world()
  follower.start()
  stream().onEvents([following])
  await list([11])
  stream().onEvents([missed, exchange(15)])
  stream().end(away)
  await settled()
  wait()
  stream().onEvents([following])
  await list([])
  assert.deepEqual(numbers(), [])
})

test('a broken stream is not live, and is retried with growing pauses until the list is read', async () => {
  const { follower, streams, stream, list, last, numbers, wait } = world()
  follower.start()
  stream().onEvents([following])
  await list([11])
  stream().end(away)
  await settled()
  assert.deepEqual([numbers(), last()?.fault], [[11], away])
  assert.equal(wait(), 1000)
  stream().end(away)
  await settled()
  assert.equal(wait(), 2000)
  const third = stream()
  third.onEvents([following])
  assert.equal(last()?.fault, away)
  await list(away)
  assert.ok(third.signal.aborted)
  assert.equal(wait(), 4000)
  stream().onEvents([following])
  await list([13, 12, 11])
  assert.deepEqual([numbers(), last()?.fault], [[13, 12, 11], undefined])
  // Events of an abandoned stream are ignored.
  third.onEvents([exchange(99)])
  assert.deepEqual([numbers(), streams.length], [[13, 12, 11], 4])
})

test('a hidden page has no open stream, and its rows are not live until it has caught up', async () => {
  const { follower, streams, stream, list, last, numbers, waits } = world()
  follower.start()
  follower.start()
  assert.equal(streams.length, 1)
  stream().onEvents([following])
  await list([11])
  follower.stop()
  assert.ok(stream().signal.aborted)
  assert.deepEqual([last()?.fault?.kind, waits.length], ['unseen', 0])
  stream().end(away)
  await settled()
  assert.equal(last()?.fault?.kind, 'unseen')
  follower.start()
  stream().onEvents([following, exchange(12)])
  assert.equal(last()?.fault?.kind, 'unseen')
  await list([11])
  assert.deepEqual([numbers(), last()?.fault], [[12, 11], undefined])
})

test('an exchange that changes keeps its place, and a dropped one disappears', async () => {
  const { follower, stream, list, last, numbers } = world()
  follower.start()
  stream().onEvents([following])
  await list([12, 11])
  stream().onEvents([changed(11, 200), exchange(13)])
  stream().onEvents([changed(13, 404), removed(12)])
  assert.deepEqual(
    last()?.value?.rows.map(({ id, status }) => [id, status]),
    [
      ['ex_13', 404],
      ['ex_11', 200],
    ],
  )
  // What is dropped while the list is read may still be on it.
  follower.refresh()
  stream().onEvents([changed(13, 500), changed(13, 501), removed(11)])
  assert.deepEqual(numbers(), [13])
  await list([14, 13, 11])
  assert.deepEqual(
    last()?.value?.rows.map(({ id, status }) => [id, status]),
    [
      ['ex_14', undefined],
      ['ex_13', 501],
    ],
  )
  stream().onEvents([removed(13), removed(14)])
  assert.deepEqual(numbers(), [])
})

test('the pause between retries stays below its limit, however long the other side was away', async () => {
  const { follower, stream, wait } = world({ maxRetryMs: 1500 })
  follower.start()
  for (const ms of [1000, 1500, 1500]) {
    stream().end(away)
    await settled()
    assert.equal(wait(), ms)
  }
})
