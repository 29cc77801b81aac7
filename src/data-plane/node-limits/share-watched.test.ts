import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { WatchedRequests } from '../tunnel/watched-requests.ts'
import { GATHER_MS } from './gather-changes.ts'
import { shareWatched } from './share-watched.ts'
import { TestNode } from './testing/test-worker-peers.ts'

const request = { method: 'GET', status: 200, durationMs: 1 }

function start({ mock }: TestContext, count: number) {
  mock.timers.enable({ apis: ['setTimeout'] })
  const node = new TestNode()
  const planes: WatchedRequests[] = []
  const add = (): WatchedRequests => {
    const plane = node.plane(`w${planes.length + 1}`)
    const watched = new WatchedRequests()
    shareWatched(plane, watched)
    planes.push(watched)
    node.join(plane)
    return watched
  }
  for (let i = 0; i < count; i++) add()
  const at = (n: number): WatchedRequests => planes[n] ?? assert.fail()
  const settle = async (): Promise<void> => {
    await node.settle()
    mock.timers.tick(GATHER_MS)
    await node.settle()
  }
  return { node, add, at, settle }
}

test('a watcher sees the requests to its endpoint at every plane, in order and once, until it stops', async (t) => {
  const { at, settle } = start(t, 3)
  await settle()
  const seen: string[] = []
  const stop = at(1).watch('ep_1', ({ path }) => seen.push(path))
  await settle()
  for (const n of [0, 1, 2]) at(n).saw({ ...request, edge: 'ep_1', path: `/${n}` })
  for (const n of [0, 1, 2]) at(n).saw({ ...request, edge: 'ep_2', path: '/yours' })
  at(0).saw({ ...request, edge: 'ep_1', path: '/0 again' })
  await settle()
  assert.deepEqual(seen, ['/1', '/0', '/0 again', '/2'])
  stop()
  await settle()
  for (const n of [0, 1, 2]) at(n).saw({ ...request, edge: 'ep_1', path: '/late' })
  await settle()
  assert.equal(seen.length, 4)
})

test('only the fields that a watcher shows are sent, and of very many requests the newest', async (t) => {
  const { at, settle } = start(t, 2)
  await settle()
  const seen: unknown[] = []
  at(1).watch('ep_1', (each) => seen.push(each))
  await settle()
  for (let i = 0; i < 5000; i++) at(0).saw({ ...request, edge: 'ep_1', path: `/${i}`, secret: 'x' } as never)
  await settle()
  assert.equal(seen.length, 200)
  assert.deepEqual(seen.at(-1), { ...request, path: '/4999' })
})

test('a new plane is told what is watched, and one that dies is forgotten', async (t) => {
  const { node, add, at, settle } = start(t, 2)
  await settle()
  const seen: string[] = []
  at(0).watch('ep_1', ({ path }) => seen.push(path))
  const third = add()
  await settle()
  third.saw({ ...request, edge: 'ep_1', path: '/third' })
  await settle()
  assert.deepEqual(seen, ['/third'])
  node.kill('w1')
  third.saw({ ...request, edge: 'ep_1', path: '/nobody' })
  await settle()
  assert.equal(node.delivered.get('watched.saw'), 1)
})
