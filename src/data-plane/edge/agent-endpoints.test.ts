import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { BindRefusal, type EndpointRequest, type ServedEndpoint } from '../../model/endpoint.ts'
import { AgentEndpoints } from './agent-endpoints.ts'
import type { Edges } from './edge-table.ts'
import type { SharedEdges } from './endpoint-holders.ts'

const request: EndpointRequest = {
  ...{ id: 'ep_1', proto: 'https', host: 'a.test', port: undefined, place: 'secure:a.test' },
  tunnel: { kind: 'tunnel', tunnelId: 'tn_1', httpVersion: 1, proxyHeader: 0 },
  ...{ sessionId: 'ts_1', credentialId: 'cr_1', opts: {} },
}

/** The endpoints of a node with this key, where `edgeId` holds every name. */
function endpointsWith({ key = 'key', guard = '', edgeId }: { key?: string; guard?: string; edgeId?: string } = {}) {
  // Nothing else of them is used.
  const edges = { wildcardEdge: () => undefined, holder: () => undefined } as unknown as Edges
  const shared = { compile: async () => undefined, serve: async () => undefined } as unknown as SharedEdges
  const held = async () => ({ edgeId, reservationId: undefined })
  return new AgentEndpoints({
    ...{ edges, shared, holdersOfName: held, holdersOfPort: held },
    bindModules: async () => ({ edge: {}, route: guard === '' ? {} : { basic_auth: guard } }),
    claim: async () => true,
    whyTaken: async () => undefined,
    unclaim: () => {},
    digest: (text) => createHmac('sha256', key).update(text).digest('base64url'),
    publicPorts: { https: 443, http: 80 },
  })
}

/** What is served for an agent that comes to a node with this key. */
async function opened(asked: EndpointRequest, options: { key?: string; guard?: string } = {}): Promise<ServedEndpoint> {
  const open = await endpointsWith(options).open(asked)
  assert.ok(!(open instanceof BindRefusal))
  return open.served
}

test('a name that an edge or an agent ingress has is refused, and the agent is told whose it is', async () => {
  for (const [edgeId, whose] of [
    ['edghts_1', 'the edge edghts_1'],
    ['agin_1', 'the agent ingress agin_1'],
  ] as const) {
    const refusal = await endpointsWith({ edgeId }).open(request)
    assert.ok(refusal instanceof BindRefusal)
    assert.deepEqual([refusal.ngrok, refusal.isTaken], [381, true])
    assert.equal(refusal.message, `a.test:443 belongs to ${whose}; detach it there, or ask for another`)
  }
})

describe('the version of what an agent serves', () => {
  test('is the same when it comes back for the same, at any node', async () => {
    const { version } = await opened(request)
    assert.equal((await opened({ ...request, sessionId: 'ts_2' })).version, version)
    assert.equal((await opened(request, { guard: 'ada' })).version, (await opened(request, { guard: 'ada' })).version)
  })

  test('is another when anything is served differently', async () => {
    const { version } = await opened(request)
    const others = [
      await opened(request, { guard: 'ada' }),
      await opened({ ...request, tunnel: { ...request.tunnel, tunnelId: 'tn_2' } }),
      await opened({ ...request, tunnel: { ...request.tunnel, proxyHeader: 1 } }),
      await opened({ ...request, credentialId: 'cr_2' }),
      await opened({ ...request, pool: { ownerId: 'usr_1', httpVersion: 1 } }),
      // It is stored, and must not let anyone verify a guess at a guard.
      await opened(request, { key: 'another' }),
    ]
    assert.equal(new Set([version, ...others.map((each) => each.version)]).size, others.length + 1)
  })
})
