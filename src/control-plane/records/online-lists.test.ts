import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Presence, PresentEndpoint } from '../../model/presence.ts'
import { apiKeys } from '../resources/api-keys.ts'
import { endpoints } from '../resources/endpoints.ts'
import { resources } from '../resources/index.ts'
import { nodes } from '../resources/nodes.ts'
import { linksUnder } from '../resources/resource-links.ts'
import { nobodyPresent, presentKind } from './online-lists.ts'

const links = linksUnder('https://api.example.com')
const presenting = { links, groupsOf: () => ['bkdtg_1'] }
const ref = (path: string, id: string) => ({ id, uri: `https://api.example.com${path}/${id}` })

const plain: PresentEndpoint = {
  id: 'ep_1',
  region: 'local',
  createdAt: '2026-01-01T00:00:00Z',
  updatedAt: '2026-01-02T00:00:00Z',
  publicUrl: 'https://app.example.com',
  proto: 'https',
  hostport: 'app.example.com:443',
  type: 'ephemeral',
  name: 'web',
  description: 'a site',
  metadata: '',
}

const shown = {
  id: 'ep_1',
  uri: 'https://api.example.com/endpoints/ep_1',
  region: 'local',
  created_at: '2026-01-01T00:00:00Z',
  updated_at: '2026-01-02T00:00:00Z',
  public_url: 'https://app.example.com',
  proto: 'https',
  hostport: 'app.example.com:443',
  type: 'ephemeral',
  name: 'web',
  description: 'a site',
  metadata: '',
  bindings: ['public'],
  pooling_enabled: false,
  traffic_policy: '',
  upstream_protocol: '',
  upstream_url: '',
}

const rows: readonly [what: string, endpoint: PresentEndpoint, also: Record<string, unknown>][] = [
  ['without anything else', plain, {}],
  [
    'of a tunnel on a reserved domain',
    { ...plain, tunnelId: 'tn_1', domainId: 'rd_1' },
    { tunnel: ref('/tunnels', 'tn_1'), domain: ref('/reserved_domains', 'rd_1') },
  ],
  [
    'of a pool, whose agent says where it forwards to',
    { ...plain, isPooled: true, upstreamUrl: 'http://localhost:80', upstreamProtocol: 'http2' },
    { pooling_enabled: true, upstream_url: 'http://localhost:80', upstream_protocol: 'http2' },
  ],
  [
    'of an edge on a reserved address',
    { ...plain, type: 'edge', edgeId: 'edgtcp_1', tcpAddrId: 'ra_1' },
    { type: 'edge', edge: ref('/edges/tcp', 'edgtcp_1'), tcp_addr: ref('/reserved_addrs', 'ra_1') },
  ],
]

for (const [what, endpoint, also] of rows) {
  test(`an endpoint ${what} is shown only with the fields that apply`, async () => {
    const presence: Presence = {
      ...nobodyPresent,
      endpoints: async () => [endpoint],
      endpoint: async (id) => (id === endpoint.id ? endpoint : undefined),
    }
    const expected = { ...shown, ...also }
    assert.deepEqual(await presentKind(endpoints).one(presence, 'ep_1', presenting), expected)
    assert.deepEqual(await presentKind(endpoints).page(presence, { limit: 2 }, presenting), [expected])
    assert.equal(await presentKind(endpoints).one(presence, 'ep_2', presenting), undefined)
    const known = Object.keys(endpoints.view.properties)
    for (const field of Object.keys(expected)) assert.ok(known.includes(field), field)
  })
}

test('a node is shown with its address, its sessions and the rest of its lease', async () => {
  const about = { name: 'a', address: '10.0.0.5:7444', region: 'eu', version: '1.2.3', since: '2026-01-01T00:00:00Z' }
  const node = { id: 'nd_1', ...about, sessions: 3, lease: 8 }
  const presence: Presence = {
    ...nobodyPresent,
    nodes: async () => [node],
    node: async (id) => (id === node.id ? node : undefined),
  }
  const expected = { ...node, uri: 'https://api.example.com/nodes/nd_1' }
  assert.deepEqual(await presentKind(nodes).one(presence, 'nd_1', presenting), expected)
  assert.deepEqual(await presentKind(nodes).page(presence, { limit: 2 }, presenting), [expected])
  assert.deepEqual(Object.keys(nodes.view.properties).sort(), Object.keys(expected).sort())
  assert.equal(nodes.access, 'admin')
})

test('every resource that presence answers can be read from it, and no other', async () => {
  for (const resource of resources.filter(({ handlers }) => handlers?.list === 'list_present')) {
    assert.deepEqual(await presentKind(resource).page(nobodyPresent, { limit: 1 }, presenting), [], resource.kind)
    assert.equal(await presentKind(resource).one(nobodyPresent, 'x', presenting), undefined, resource.kind)
  }
  assert.throws(() => presentKind(apiKeys), /not read from presence/)
})
