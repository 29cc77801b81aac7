import assert from 'node:assert/strict'
import { test } from 'node:test'
import { httpsEdgeRoutes } from '../resources/https-edge-routes.ts'
import { httpsEdges } from '../resources/https-edges.ts'
import { linksUnder } from '../resources/resource-links.ts'
import { type Complete, show } from './show-resource.ts'

const links = linksUnder('http://localhost')
const rest = {
  ownerId: null,
  createdAt: '2026-01-01T00:00:00Z',
  fields: { description: '', metadata: '', hostports: [] },
  live: {},
  token: null,
  children: [],
}
const text = '# ours\non_http_request: []\n'
const written = { text, lists: { inbound: 'on_http_request', outbound: 'on_http_response' } }
const policy = { enabled: true, inbound: [], written }
const edge: Complete = { ...rest, id: 'edghts_1', kind: 'https_edge', parentId: null, modules: new Map() }
const route = (modules: ReadonlyMap<string, unknown>): Complete => ({
  ...rest,
  id: 'edghtsrt_1',
  kind: 'https_edge_route',
  parentId: edge.id,
  modules: new Map(modules) as Complete['modules'],
})

test('other spellings of modules are shown on request, in children too', () => {
  const children = [route(new Map([['policy', policy]])), route(new Map())]
  const { routes } = show(httpsEdges, { ...edge, children }, { links, spellings: true }) as {
    routes: Record<string, unknown>[]
  }
  assert.deepEqual(routes[0]?.policy, { enabled: true, inbound: [], outbound: null })
  assert.deepEqual(routes[0]?.traffic_policy, { enabled: true, value: text })
  assert.equal(routes[1]?.traffic_policy, null)
})

test('the plain answer has no other spellings', () => {
  const shown = JSON.stringify(show(httpsEdgeRoutes, route(new Map([['policy', policy]])), { links, spellings: false }))
  assert.doesNotMatch(shown, /traffic_policy|written|ours|on_http/)
})
