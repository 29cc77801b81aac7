/** Online sessions through the vendor's and our clients: their transport, and commands that the agent obeys. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { buildApi } from '../../../src/control-plane/api/app.ts'
import { ApiMetrics } from '../../../src/control-plane/api/metrics.ts'
import { PageSessions } from '../../../src/control-plane/api/page-session.ts'
import { RateLimit } from '../../../src/control-plane/records/api-rate-limit.ts'
import { nobodyPresent } from '../../../src/control-plane/records/online-lists.ts'
import { IdSource } from '../../../src/lib/ids.ts'
import { createLog } from '../../../src/lib/log/create-log.ts'
import type { Presence } from '../../../src/model/presence.ts'
import { ApiClient } from '../../support/api-client.ts'
import { npmClient } from './npm-services.ts'

const ID = `ts_${'1'.repeat(27)}`
const obeyed: string[] = []

const presence: Presence = {
  ...nobodyPresent,
  sessions: async () => [session],
  session: async (id) => (id === ID ? session : undefined),
  command: async (_id, command) => {
    obeyed.push(command)
  },
}
const session = {
  id: ID,
  agentVersion: '3.9.0',
  credentialId: `cr_${'1'.repeat(27)}`,
  ip: '192.0.2.1',
  metadata: '',
  os: 'linux',
  region: 'local',
  startedAt: '2026-01-01T00:00:00Z',
  transport: 'v2',
} as const

/** Calls about online sessions must not use the store. */
const noStore = (): never => assert.fail('a call about sessions asked the store')
const never = new Proxy({}, { get: noStore }) as never

let api: FastifyInstance
let url: string
before(async () => {
  api = await buildApi({
    ids: new IdSource({ now: Date.now }),
    authenticate: async () => ({ id: 'usr_1', role: 'admin', keyId: 'ak_1' }),
    admits: async () => true,
    rateLimit: new RateLimit({ perMinute: 0, now: Date.now }),
    records: never,
    explanations: never,
    traffic: never,
    brokenEdges: never,
    modules: never,
    presence,
    logins: never,
    exchanges: never,
    exchangeStreams: never,
    captures: never,
    renew: never,
    retry: never,
    groupsOf: () => [],
    inForce: never,
    metrics: new ApiMetrics(),
    log: createLog({ level: 'silent' }),
    readiness: async () => ({ isReady: true, addresses: {} }),
    sshHostKey: '',
    apiUrl: () => null,
    pageSessions: new PageSessions({ sealer: never, now: Date.now, apiUrl: () => null, ended: never }),
    pageFiles: undefined,
    version: '0',
  })
  url = await api.listen({ port: 0, host: '127.0.0.1' })
})
after(() => api.close())

test('the npm client restarts, stops and updates an agent', async () => {
  const sessions = npmClient(url, 'any').service('tunnelSessions')
  obeyed.length = 0
  await sessions.restart(ID)
  await sessions.stop(ID)
  await sessions.update({ id: ID })
  assert.deepEqual(obeyed, ['restart', 'stop', 'update'])
})

const clients: [who: string, headers: Record<string, string>, status: number, body: string, transport: string][] = [
  ['the npm client', theirs('ngrok-api-typescript/0.10.0/v24.0.0'), 200, '{}', 'ngrok/v2'],
  ['the Python client', theirs('ngrok-api-python/0.11.0/3.11.2'), 200, '{}', 'ngrok/v2'],
  ['the Go client', theirs('ngrok-api-go//go1.22'), 204, '', 'ngrok/v2'],
  ['any other client of theirs', theirs('curl/8'), 204, '', 'ngrok/v2'],
  ['the npm client under our version', { 'user-agent': 'ngrok-api-typescript/0' }, 204, '', 'service/v2'],
  ['our own client', {}, 204, '', 'service/v2'],
]
for (const [who, headers, status, body, transport] of clients) {
  test(`a command of ${who} is answered with ${status} and its session has transport ${transport}`, async () => {
    const client = new ApiClient(url, 'any')
    for (const command of ['restart', 'stop', 'update']) {
      const answer = await client.send('POST', `/tunnel_sessions/${ID}/${command}`, { headers })
      assert.deepEqual([answer.status, answer.text], [status, body])
    }
    const list = await client.send('GET', '/tunnel_sessions', { headers })
    assert.equal(list.body.tunnel_sessions[0].transport, transport)
    const one = await client.send('GET', `/tunnel_sessions/${ID}`, { headers })
    assert.equal(one.body.transport, transport)
  })
}

function theirs(userAgent: string): Record<string, string> {
  return { 'service-version': '', 'ngrok-version': '2', 'user-agent': userAgent }
}
