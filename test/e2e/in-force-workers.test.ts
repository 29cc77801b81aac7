/**
 * What was written is met at once at every worker of a real server (D100): after each write, one visitor or agent at each worker
 * looks, over a connection that this worker had accepted before the write.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import { tlsIdentity } from '../support/tls-identity.ts'
import type { Owner } from '../support/upstream.ts'
import { socketsAtEach, visitorOver } from '../support/worker-sockets.ts'

const WORKERS = Number(process.env.POSTERN_IN_FORCE_WORKERS ?? 2)

/** Writes, each with a look at every worker; a longer run sets another number. */
const ROUNDS = Number(process.env.POSTERN_IN_FORCE_ROUNDS ?? 24)

const API_KEY = 'test_api_key_of_the_first_admin_0001'
const AUTHTOKEN = 'test_authtoken_of_the_first_admin_01'

eachStore((store) => {
  describe(`at each of ${WORKERS} workers`, () => {
    const closers: (() => unknown)[] = []
    const owner: Owner = { after: (close) => void closers.unshift(close) }
    let server: ServerProcess
    let api: ApiClient
    let ca: string
    before(async () => {
      const dataDir = mkdtempSync(join(tmpdir(), 'postern-in-force-'))
      owner.after(() => rmSync(dataDir, { recursive: true, force: true }))
      server = await serve({
        dataDir,
        databaseUrl: await store.url(),
        env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN },
        flags: { workers: String(WORKERS), 'drain-timeout': '1s' },
      })
      owner.after(() => server.stop())
      api = new ApiClient(server.url, API_KEY)
      ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
    })
    after(async () => {
      for (const close of closers) await close()
    })

    const looks = { done: 0, pending: 0 }

    /** Sends writes, the last of which is the round, and then looks at every worker at once. */
    const round = async (
      what: string,
      writes: readonly [method: string, path: string, body?: Json][],
      { at = server.https, wanted, look }: { at?: string; wanted: string; look: (socket: Socket) => Promise<string> },
    ): Promise<Json> => {
      const sockets = await socketsAtEach(server, at, { workers: WORKERS })
      let answer: Json
      let isPending = false
      for (const [method, path, body] of writes) {
        const { status, text, headers, body: answered } = await api.send(method, path, body && { body })
        assert.ok(status < 300, `${method} ${path}: ${text}`)
        if (headers.get('service-in-force') !== 'yes') isPending = true
        answer ??= answered
      }
      const seen = await Promise.all(sockets.map(([socket]) => look(socket ?? assert.fail())))
      assert.equal(seen.length, WORKERS)
      looks.done++
      // On a machine that is too busy, the header said that nobody should rely on it.
      if (isPending) looks.pending++
      else assert.deepEqual([...new Set(seen)], [wanted], `${what} in round ${looks.done}`)
      return answer
    }

    /** What a visitor sees of a name: the answer, or whether its handshake fails. */
    const seenBy =
      (name: string, authority = ca) =>
      async (socket: Socket) => {
        try {
          const visitor = await visitorOver(socket, name, authority)
          const { status, text } = await visitor.ask()
          visitor.close()
          return status === 200 ? text : String(status)
        } catch {
          return 'nothing'
        }
      }
    /** Whether an agent with this authtoken is let in, and may bind a name of its own below another. */
    const agentSees = (authtoken: string, below?: string) => async (socket: Socket) => {
      const agent = new TestAgent({ port: socket })
      const name = `${socket.localPort}.${below}`
      const entered = async () => {
        const auth = await agent.authenticate({ authtoken: new Secret(authtoken) })
        return 'ngrok' in auth || below === undefined ? auth : agent.bind({ opts: { Hostname: name } })
      }
      const outcome = await Promise.race([entered(), agent.closed.then(() => assert.fail('its connection is over'))])
      await agent.leave()
      return 'ngrok' in outcome ? 'refused' : 'in'
    }

    test(`edges, routes, modules, certificates, reservations and credentials are met in ${ROUNDS} rounds`, async (t) => {
      const say = async (body: string): Promise<string> => (await api.create('/backends/http_response', { body })).id
      const [one, two] = [await say('one'), await say('two')]
      for (let cycle = 0; looks.done < ROUNDS; cycle++) {
        const name = `round-${cycle}.in-force.test`
        const look = seenBy(name)
        const edge = await round('a new edge', [['POST', '/edges/https', { hostports: [`${name}:443`] }]], {
          ...{ look, wanted: '404' },
        })
        const path = `/edges/https/${edge.id}`
        const all = { match_type: 'path_prefix', match: '/' }
        const route = await round(
          'a new route',
          [['POST', `${path}/routes`, { ...all, backend: { backend_id: one } }]],
          { look, wanted: 'one' },
        )
        const at = `${path}/routes/${route.id}`
        await round('another backend', [['PUT', `${at}/backend`, { backend_id: two }]], { look, wanted: 'two' })
        const policy = { inbound: [{ expressions: ["req.url.path == '/'"], actions: [{ type: 'deny' }] }] }
        await round('a policy', [['PUT', `${at}/policy`, policy]], { look, wanted: '403' })
        await round('no policy', [['DELETE', `${at}/policy`]], { look, wanted: 'two' })

        const identity = await tlsIdentity([name])
        const uploaded = { certificate_pem: identity.cert, private_key_pem: identity.key }
        const { id } = await round('a certificate', [['POST', '/tls_certificates', uploaded]], {
          ...{ look: seenBy(name, identity.ca), wanted: 'two' },
        })
        await round('no certificate', [['DELETE', `/tls_certificates/${id}`]], { look, wanted: 'two' })
        await round('no route', [['DELETE', at]], { look, wanted: '404' })
        await round('no edge', [['DELETE', path]], { look, wanted: 'nothing' })

        const below = `held-${cycle}.in-force.test`
        const binds = { at: server.agents, look: agentSees(AUTHTOKEN, below) }
        const domain = await round('a reservation', [['POST', '/reserved_domains', { domain: `*.${below}` }]], {
          ...{ ...binds, wanted: 'refused' },
        })
        await round('no reservation', [['DELETE', `/reserved_domains/${domain.id}`]], { ...binds, wanted: 'in' })
        const made = await api.create('/credentials', { acl: [`bind:*.${below}`] })
        const enters = { at: server.agents, look: agentSees(made.token, below) }
        await round('a credential', [['PATCH', `/credentials/${made.id}`, { acl: [] }]], { ...enters, wanted: 'in' })
        const other = { acl: ['bind:other.in-force.test'] }
        await round('its rules', [['PATCH', `/credentials/${made.id}`, other]], { ...enters, wanted: 'refused' })
        await round('no credential', [['DELETE', `/credentials/${made.id}`]], {
          ...{ at: server.agents, look: agentSees(made.token), wanted: 'refused' },
        })
      }
      t.diagnostic(`${looks.done} rounds at ${WORKERS} workers, ${looks.pending} of them pending`)
    })
  })
})
