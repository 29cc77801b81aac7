import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { Sealer } from '../../lib/secrets/seal.ts'
import type { BackendPlan, EdgeConfig } from '../../model/edge-config.ts'
import { moduleAt, sealFields } from '../records/sealed-fields.ts'
import {
  backend,
  edge,
  failover,
  group,
  policy,
  response,
  route,
  sealedBy,
  storeRows,
  type TestRow,
  testSealer,
} from '../records/testing/test-rows.ts'
import { openStore, type Store } from '../store/store.ts'
import { readEdgeConfigs, readIpRules } from './edge-configs.ts'

const webPlan: BackendPlan = { kind: 'tunnel_group', id: 'bkdtg_web', labels: { app: 'web' } }
const bare = { names: [], ports: [], modules: {}, routes: [] }

/** Stored rows, the first of them the edge, and the edge configuration for the data plane. */
const golden: Record<string, { stored: readonly TestRow[]; expected: EdgeConfig }> = {
  'an edge without hostports and modules': {
    stored: [edge('edgtcp_bare', 'tcp_edge', [])],
    expected: { id: 'edgtcp_bare', kind: 'tcp', ...bare },
  },
  'a TCP edge: its ports, its tunnels, and the rules of its IP policies in one': {
    stored: [
      edge('edgtcp_1', 'tcp_edge', ['tcp.example.com:20001', '0.0.0.0:20002'], {
        backend: backend('bkdtg_web'),
        ip_restriction: { enabled: true, ip_policy_ids: ['ipp_office', 'ipp_bad'] },
      }),
      group('bkdtg_web'),
      ...policy('ipp_office', ['10.0.0.0/8', 'allow'], ['2001:db8::/32', 'allow']),
      ...policy('ipp_bad', ['10.6.6.6/32', 'deny'], ['192.0.2.0/24', 'allow']),
    ],
    expected: {
      id: 'edgtcp_1',
      kind: 'tcp',
      names: [],
      ports: [20001, 20002],
      modules: {
        ip_restriction: { allow: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.0/24'], deny: ['10.6.6.6/32'] },
        backend: webPlan,
      },
      routes: [],
    },
  },
  'an IP policy without rules: it allows nobody': {
    stored: [
      edge('edgtcp_2', 'tcp_edge', [], { ip_restriction: { enabled: true, ip_policy_ids: ['ipp_none'] } }),
      ...policy('ipp_none'),
    ],
    expected: { id: 'edgtcp_2', kind: 'tcp', ...bare, modules: { ip_restriction: { allow: [], deny: [] } } },
  },
  'a TLS edge: normalised names, the certificates of its authorities, and no module that is disabled': {
    stored: [
      edge('edgtls_1', 'tls_edge', ['TLS.Example.com:443', '*.example.net:443'], {
        tls_termination: { enabled: true, terminate_at: 'edge', min_version: '' },
        mutual_tls: { enabled: true, certificate_authority_ids: ['ca_1', 'ca_2'] },
        ip_restriction: { enabled: false, ip_policy_ids: ['ipp_off'] },
      }),
      { id: 'ca_1', kind: 'certificate_authority', fields: { ca_pem: 'first PEM' } },
      { id: 'ca_2', kind: 'certificate_authority', fields: { ca_pem: 'second PEM' } },
      ...policy('ipp_off', ['10.0.0.0/8', 'allow']),
    ],
    expected: {
      id: 'edgtls_1',
      kind: 'tls',
      names: ['tls.example.com', '*.example.net'],
      ports: [],
      modules: {
        tls_termination: { terminate: 'edge', minVersion: null },
        mutual_tls: { authorities: ['first PEM', 'second PEM'] },
      },
      routes: [],
    },
  },
  'a TLS edge whose policy names an IP policy and reads no more than the name': {
    stored: [
      edge('edgtls_2', 'tls_edge', ['sni.example.com:443'], {
        policy: {
          enabled: true,
          inbound: [
            {
              name: 'office',
              expressions: ["conn.tls.sni != ''"],
              actions: [{ type: 'restrict-ips', config: { ip_policies: ['ipp_named'] } }],
            },
          ],
        },
      }),
      ...policy('ipp_named', ['198.51.100.0/24', 'deny']),
    ],
    expected: {
      id: 'edgtls_2',
      kind: 'tls',
      names: ['sni.example.com'],
      ports: [],
      modules: {
        policy: {
          place: 'tls',
          inbound: [
            {
              name: 'office',
              expressions: ["conn.tls.sni != ''"],
              actions: [{ type: 'restrict-ips', config: { ip_policies: ['ipp_named'] } }],
            },
          ],
          outbound: [],
          ipPolicies: { ipp_named: [{ cidr: '198.51.100.0/24', action: 'deny' }] },
          readsHandshake: false,
        },
      },
      routes: [],
    },
  },
  'an HTTPS edge: its routes oldest first, secrets opened, backends inside backends written out': {
    stored: [
      edge('edghts_1', 'https_edge', ['www.example.com:443'], {
        tls_termination: { enabled: true, terminate_at: 'edge', min_version: '1.3' },
      }),
      group('bkdtg_web'),
      response('bkdhr_sorry'),
      { id: 'bkdsc_v6', kind: 'static_backend', fields: { address: '[2001:db8::7]:8443', tls: { enabled: true } } },
      failover('bkdfo_1', 'bkdtg_web', 'bkdhr_sorry'),
      { id: 'bkdwd_1', kind: 'weighted_backend', fields: { backends: { bkdfo_1: 9, bkdsc_v6: 1 } } },
      route('edghtsrt_1', 'edghts_1', '/', { backend: backend('bkdwd_1') }),
      route(
        'edghtsrt_2',
        'edghts_1',
        '/hook',
        {
          webhook_verification: { enabled: true, provider: 'github', secret: 'between us' },
          request_headers: { enabled: true, add: { 'x-hook': 'yes' }, remove: ['cookie'] },
        },
        'exact_path',
      ),
    ],
    expected: {
      id: 'edghts_1',
      kind: 'https',
      names: ['www.example.com'],
      ports: [],
      modules: { tls_termination: { terminate: 'edge', minVersion: '1.3' } },
      routes: [
        {
          id: 'edghtsrt_1',
          matchType: 'path_prefix',
          match: '/',
          modules: {
            backend: {
              kind: 'weighted',
              id: 'bkdwd_1',
              children: [
                {
                  weight: 9,
                  plan: {
                    kind: 'failover',
                    id: 'bkdfo_1',
                    children: [
                      webPlan,
                      {
                        kind: 'http_response',
                        id: 'bkdhr_sorry',
                        status: 503,
                        headers: { 'retry-after': '60' },
                        body: 'Back soon.',
                      },
                    ],
                  },
                },
                { weight: 1, plan: { kind: 'static', id: 'bkdsc_v6', host: '2001:db8::7', port: 8443, tls: true } },
              ],
            },
          },
        },
        {
          id: 'edghtsrt_2',
          matchType: 'exact_path',
          match: '/hook',
          modules: {
            webhook_verification: { provider: 'github', secret: 'between us' },
            request_headers: { add: [['x-hook', 'yes']], remove: ['cookie'] },
          },
        },
      ],
    },
  },
}

describe('edge configurations of stored edges', () => {
  eachStore((databases) => {
    const opened: Store[] = []
    let shared: Store
    const fresh = async (...rows: readonly TestRow[]): Promise<Store> => {
      const store = await sealedBy(await openStore(await databases.url()))
      opened.push(store)
      await storeRows(store, rows)
      return store
    }
    const read = (store: Store, ...ids: string[]) =>
      store.read(async (reader) => {
        const byId = new Map((await reader.resources(ids)).map((each) => [each.id, each]))
        return readEdgeConfigs(
          reader,
          testSealer,
          ids.flatMap((id) => byId.get(id) ?? []),
        )
      })
    before(async () => {
      const rows = Object.values(golden).flatMap(({ stored }) => stored)
      // Each row once, after the rows that it names.
      const once = [...new Map(rows.map((row) => [row.id, row])).values()]
      shared = await fresh(...once.filter((row) => !isHost(row)), ...once.filter(isHost))
    })
    after(() => Promise.all(opened.map((store) => store.close())))

    for (const [name, { stored, expected }] of Object.entries(golden)) {
      test(name, async () => assert.deepEqual(await read(shared, stored[0]?.id ?? ''), [expected]))
    }

    test('several edges come back in the order asked for, each with its own modules', async () => {
      const all = Object.values(golden).reverse()
      const ids = all.map(({ expected }) => expected.id)
      assert.deepEqual(
        await read(shared, ...ids),
        all.map(({ expected }) => expected),
      )
    })

    test('resources that are not edges are left out', async () => {
      assert.deepEqual(await read(shared, 'bkdtg_web', 'ipp_office', 'edghtsrt_1'), [])
    })

    test('the rules of IP policies can be looked up without an edge', async () => {
      const lookup = await shared.read((reader) => readIpRules(reader, ['ipp_bad']))
      assert.deepEqual(lookup.ipRules('ipp_bad'), [
        { cidr: '10.6.6.6/32', action: 'deny' },
        { cidr: '192.0.2.0/24', action: 'allow' },
      ])
      assert.throws(() => lookup.ipRules('ipp_office'), /ipp_office no longer exists/)
    })

    test('a route whose secret cannot be opened is broken; other routes are not', async () => {
      const store = await fresh(
        edge('edghts_x', 'https_edge', ['x.example.com:443']),
        route('edghtsrt_a', 'edghts_x', '/a'),
        route('edghtsrt_b', 'edghts_x', '/b'),
      )
      const config = { enabled: true, provider: 'github', secret: 'of another key' }
      const sealed = sealFields(new Sealer(Buffer.alloc(32, 8)), ['secret'], config, moduleAt('edghtsrt_a', 'x'))
      await store.write((writer) => writer.putModule('edghtsrt_a', 'webhook_verification', sealed))
      const [expected] = await read(store, 'edghts_x')
      const [a, b] = expected?.routes ?? []
      assert.deepEqual([a?.modules, typeof a?.broken], [{}, 'string'])
      assert.deepEqual([b?.modules, b?.broken, expected?.broken], [{}, undefined, undefined])
      assert.deepEqual(expected?.names, ['x.example.com'])
    })

    test('an edge that refers to a missing resource is broken and keeps its names, so that no other edge answers there', async () => {
      const store = await fresh(edge('edgtls_x', 'tls_edge', ['x.example.com:443']))
      await store.write((writer) => writer.putModule('edgtls_x', 'backend', backend('bkdtg_gone')))
      const [expected] = await read(store, 'edgtls_x')
      assert.deepEqual([expected?.names, expected?.broken], [['x.example.com'], 'bkdtg_gone no longer exists'])
      assert.deepEqual(expected?.modules, {})
    })

    test('an edge whose backend is another kind of resource is broken', async () => {
      const store = await fresh(...policy('ipp_1'), edge('edgtcp_x', 'tcp_edge', ['h:20009']))
      await store.write(async (writer) => {
        await writer.putModule('edgtcp_x', 'backend', backend('ipp_1'))
        await writer.setReferences('edgtcp_x', 'backend', ['ipp_1'], true)
      })
      assert.equal((await read(store, 'edgtcp_x'))[0]?.broken, 'ipp_1 is not a backend')
    })

    test('an edge with unreadable hostports has no names, and does not affect others', async () => {
      const store = await fresh(
        edge('edgtls_bad', 'tls_edge', ['no port']),
        edge('edgtls_good', 'tls_edge', ['good.example.com:443']),
      )
      const [bad, good] = await read(store, 'edgtls_bad', 'edgtls_good')
      assert.deepEqual([bad?.names, bad?.ports, typeof bad?.broken], [[], [], 'string'])
      assert.deepEqual([good?.names, good?.broken], [['good.example.com'], undefined])
    })
  })
})

/** Edges and routes name other rows, and only their children name them. */
function isHost({ kind }: TestRow): boolean {
  return kind.endsWith('_edge') || kind === 'https_edge_route'
}
