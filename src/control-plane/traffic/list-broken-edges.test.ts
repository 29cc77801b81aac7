import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BrokenEdge } from '../../model/broken-edge.ts'
import type { AttachedPlanes } from '../mirrors/attached-planes.ts'
import { brokenEdgesHere } from './list-broken-edges.ts'

/** Data planes that report these edges. */
const planes = (...all: (readonly BrokenEdge[])[]): Pick<AttachedPlanes, 'askEach'> => ({
  // The one call that is made.
  askEach: (async () => all.map((answer, i) => ({ planeId: `w${i}`, answer }))) as AttachedPlanes['askEach'],
})

test('an edge that several data planes report is listed once, and the list is bounded', async () => {
  const port = { edgeId: 'e1', reason: 'port 1 cannot be opened' }
  const route = { edgeId: 'e1', routeId: 'r1', reason: 'module oidc: no' }
  assert.deepEqual(await brokenEdgesHere(planes([port, route], [route], [])), {
    broken_edges: [
      { edge_id: 'e1', route_id: null, reason: 'port 1 cannot be opened' },
      { edge_id: 'e1', route_id: 'r1', reason: 'module oidc: no' },
    ],
  })
  const many = Array.from({ length: 500 }, (_, i) => ({ edgeId: `e${i}`, reason: 'x' }))
  const { broken_edges } = await brokenEdgesHere(planes(many))
  assert.equal((broken_edges as unknown[]).length, 100)
})
