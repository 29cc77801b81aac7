import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WatchedRequests } from './watched-requests.ts'

const request = { method: 'GET', path: '/', status: 200, durationMs: 1 }

test('a watcher sees the requests to its endpoint, and no other, until it stops', () => {
  const watched = new WatchedRequests()
  const seen: string[] = []
  const stop = watched.watch('ep_1', ({ path }) => seen.push(path))
  watched.saw({ ...request, edge: 'ep_1', path: '/mine' })
  watched.saw({ ...request, edge: 'ep_2', path: '/yours' })
  watched.saw({ ...request, edge: undefined, path: '/nobodys' })
  stop()
  watched.saw({ ...request, edge: 'ep_1', path: '/late' })
  assert.deepEqual(seen, ['/mine'])
})

test('a former watcher that stops late does not stop the present one', () => {
  const watched = new WatchedRequests()
  let seen = 0
  const stopFirst = watched.watch('ep_1', () => assert.fail('it has left'))
  watched.watch('ep_1', () => {
    seen++
  })
  stopFirst()
  watched.saw({ ...request, edge: 'ep_1' })
  assert.equal(seen, 1)
})
