import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { BindRefusal, type EndpointRequest } from '../../model/endpoint.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { testControl } from '../tunnel/testing/test-control.ts'
import { AgentEndpoints } from './agent-endpoints.ts'
import type { EdgeTable } from './edge-table.ts'
import type { EndpointHolders } from './endpoint-holders.ts'

const request: EndpointRequest = {
  ...{ id: 'ep_1', proto: 'https', host: 'a.test', port: undefined, place: 'secure:a.test' },
  tunnel: { kind: 'tunnel', tunnelId: 'tn_1', httpVersion: 1, proxyHeader: 0 },
  ...{ sessionId: 'ts_1', credentialId: 'cr_1', opts: {}, isRandom: false, isPooled: false },
}

interface Around {
  /** The control plane's answer: an error, or by default the address. */
  readonly error?: Error
  /** The edges that have the address while it is asked for, and once it is granted. */
  readonly there?: readonly (string | undefined)[]
  readonly wildcard?: string
  readonly compileFault?: Error
  readonly portFault?: Error
}

/** Opens the endpoint; gives the outcome, what was asked and what was given up. */
async function open({ error, there = [], wildcard, compileFault, portFault }: Around) {
  const [asked, withdrawn, logged]: [unknown[], string[], string[]] = [[], [], []]
  const holders = there.values()
  // Nothing else of them is used.
  const edges = {
    wildcardEdge: () => wildcard && { name: wildcard, holderId: 'edghts_1' },
    holder: () => holders.next().value,
  } as unknown as EdgeTable
  const shared = {
    compile: async () => (compileFault ? Promise.reject(compileFault) : undefined),
    serve: async () => portFault,
    letGo() {},
  } as unknown as EndpointHolders
  const config = { id: 'ep_1', kind: 'https', names: ['a.test'], ports: [], modules: {}, routes: [] } as const
  const control = testControl({
    async bind({ hostport, served }) {
      asked.push({ hostport, served })
      if (error) throw error
      return { config, version: '1', isUnnamed: true, reservationId: undefined }
    },
    unclaim: ({ place, tunnelId }) => void withdrawn.push(`${place} ${tunnelId}`),
  })
  const endpoints = new AgentEndpoints({
    ...{ edges, shared, control, isRemote: (id: string) => id === 'ep_distant' },
    log: createLog({ level: 'warn', format: 'json', destination: { write: (line) => logged.push(line) } }),
    publicPorts: { https: 8443, http: 80 },
  })
  const outcome = await endpoints.open(request).catch((failure: Error) => failure)
  return { outcome, asked, withdrawn, logged }
}

const OURS = ['secure:a.test tn_1']

test('what is served at the address is part of the question', async () => {
  const hostport = 'a.test:8443'
  assert.deepEqual((await open({})).asked, [{ hostport, served: undefined }])
  for (const edgeId of ['ep_9', 'ep_distant']) {
    const { asked } = await open({ there: [edgeId] })
    assert.deepEqual(asked, [{ hostport, served: { edgeId, isRemote: edgeId === 'ep_distant' } }])
  }
})

test('an address that was granted is given up when it cannot be served, and when it is closed', async () => {
  const rows: [Around, RegExp][] = [
    [{ there: [undefined, 'edghts_1'] }, /^BindRefusal: a\.test:8443 is already online; stop the other tunnel/],
    [{ wildcard: '*.test' }, /^BindRefusal: a\.test stands below \*\.test, which edghts_1 holds/],
    [{ portFault: new Error('in use') }, /^BindRefusal: port undefined cannot be opened on this server/],
    [{ compileFault: new Error('too large') }, /^Error: too large/],
  ]
  for (const [around, text] of rows) {
    const { outcome, withdrawn } = await open(around)
    assert.ok(outcome instanceof Error)
    assert.match(`${outcome}`, text)
    assert.deepEqual(withdrawn, OURS, String(text))
  }
  const { outcome, withdrawn } = await open({})
  assert.ok(!(outcome instanceof Error))
  assert.deepEqual(withdrawn, [])
  outcome.close()
  assert.deepEqual(withdrawn, OURS)
})

test('an address that was refused is not given up: the same tunnel may have it by another bind', async () => {
  const { outcome, withdrawn } = await open({ error: new BindRefusal(334, 'taken', { isTaken: true }) })
  assert.ok(outcome instanceof BindRefusal)
  assert.deepEqual(withdrawn, [])
})

test('an address whose answer was lost is given up, and the agent is told to try again', async () => {
  const { outcome, withdrawn, logged } = await open({ error: new LinkFault('timeout', 'bind') })
  assert.ok(outcome instanceof BindRefusal)
  assert.equal(outcome.ngrok, 802)
  assert.match(outcome.message, /cannot reach its database/)
  assert.deepEqual(withdrawn, OURS)
  assert.match(logged.join(), /credential cannot be looked up/)
  const failed = await open({ error: new Error('no more memory') })
  assert.ok(failed.outcome instanceof Error)
  assert.match(`${failed.outcome}`, /^Error: no more memory/)
  assert.deepEqual(failed.withdrawn, OURS)
})
