/** Orders of certificates whose server is killed: before each step, and after a step that is not answered yet. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type AcmeServer, type AcmeStep, startAcmeServer } from '../support/acme-server.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { metric } from '../support/metrics.ts'
import { type ServerProcess, serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'

const API_KEY = 'certificate_test_api_key_of_an_admin'

/** The moment of the kill for each name: before or after a step. */
type Deaths = Readonly<Record<string, readonly ['before' | 'after', AcmeStep]>>

interface Mortal {
  readonly acme: AcmeServer
  readonly api: () => ApiClient
  /** How many orders count against the operator's limit. */
  counted(): Promise<number>
  /** Orders certificates for names, and kills the server when each is at its step; a node works on four at a time. */
  dieAt(deaths: Deaths): Promise<void>
  start(): Promise<void>
}

async function mortal(t: TestContext, databaseUrl: string): Promise<Mortal> {
  const acme = await startAcmeServer()
  t.after(() => acme.stop())
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-acme-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  let server: ServerProcess | undefined
  t.after(() => server?.stop())
  const api = () => new ApiClient(server?.url ?? '', API_KEY)
  return {
    acme,
    api,
    counted: () => metric(server?.metricsUrl ?? '', 'postern_acme_orders_last_hour'),
    async start() {
      const flags = { 'acme-directory': acme.directory, workers: '0' }
      server = await serve({ dataDir, databaseUrl, flags, env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY } })
      acme.mood.nodes = [{ httpPort: portOf(server.http), httpsPort: portOf(server.https) }]
    },
    async dieAt(deaths) {
      const reached = new Set<string>()
      let killing: Promise<unknown> | undefined
      const hook = (when: 'before' | 'after') => async (step: AcmeStep, name: string) => {
        if (deaths[name]?.join() !== `${when},${step}` || reached.has(name)) return
        reached.add(name)
        await until('every name is at its step', () => reached.size === Object.keys(deaths).length)
        server?.kill('SIGKILL')
        killing ??= server?.ended
        await killing
        // No server waits for the answer any more.
        throw new Error('the server was killed')
      }
      acme.mood.before = hook('before')
      acme.mood.after = hook('after')
      // The step of creating an account has no name.
      for (const name of Object.keys(deaths).filter((each) => each !== '')) {
        await api().create('/edges/https', { hostports: [`${name}:443`] })
      }
      await until('it was killed', () => killing !== undefined)
      await killing
      acme.mood.after = undefined
    },
  }
}

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

/** Resolves once each of these names has a certificate. */
const issued = ({ api }: Mortal, names: readonly string[]) =>
  until('every name has its certificate', async () => {
    const { tls_certificates: all } = await api().get('/tls_certificates')
    const found: string[] = all.flatMap((each: Json) => each.subject_alternative_names.dns_names)
    assert.equal(new Set(found).size, found.length, 'one certificate for each name')
    return names.every((name) => found.includes(name))
  })

/** How many orders the authority has for each name. */
const ordered = ({ acme }: Mortal, names: readonly string[]) =>
  names.map((name) => [name, acme.orders.filter((each) => each.name === name).length])

const beforeSteps: Deaths = {
  'order.example.com': ['before', 'order'],
  'challenge.example.com': ['before', 'challenge'],
  'finalize.example.com': ['before', 'finalize'],
  'download.example.com': ['before', 'download'],
}

// Side by side: one of them waits for a lease most of the time.
describe('killed', { concurrency: true }, () => {
  eachStore((store) => {
    test('before any step, the server continues the same order', async (t) => {
      const server = await mortal(t, await store.url())
      await server.start()
      await server.dieAt(beforeSteps)
      await server.start()
      const names = Object.keys(beforeSteps)
      await issued(server, names)
      assert.deepEqual(
        ordered(server, names),
        names.map((name) => [name, 1]),
      )
      assert.equal(server.acme.accounts, 1)
    })
  })

  eachStore(
    (store) => {
      test('after a step whose answer was lost, the server repeats nothing that it can learn from the authority', async (t) => {
        const server = await mortal(t, await store.url())
        const { mood } = server.acme
        await server.start()
        // Nothing is counted before there is an account.
        await server.api().create('/edges/https', { hostports: ['account.example.com:443'] })
        await server.dieAt({ '': ['before', 'account'] })
        await server.start()
        await issued(server, ['account.example.com'])

        // Orders that the authority has and the server does not know.
        mood.reused.add('reused.example.com')
        for (const name of ['one', 'two', 'three', 'listed']) mood.listed.add(`${name}.example.com`)
        const first = ['one', 'two', 'three'].map((name) => `${name}.example.com`)
        for (const name of first) await server.api().create('/edges/https', { hostports: [`${name}:443`] })
        await issued(server, first)
        const lost: Deaths = {
          'listed.example.com': ['after', 'order'],
          'reused.example.com': ['after', 'order'],
          'unknown.example.com': ['after', 'order'],
          'finalized.example.com': ['after', 'finalize'],
        }
        await server.dieAt(lost)
        await server.start()
        await issued(server, Object.keys(lost))
        assert.deepEqual(ordered(server, Object.keys(lost)), [
          ['listed.example.com', 1],
          ['reused.example.com', 1],
          // An authority that neither lists orders nor returns the same one again gets two.
          ['unknown.example.com', 2],
          ['finalized.example.com', 1],
        ])
        // Two for each order that the server could not know of, and one for each other.
        const counted = await server.counted()
        assert.equal(counted, 4 + 1 + 2 + 2 + 1)

        const further: Deaths = {
          'proven.example.com': ['after', 'challenge'],
          'asked.example.com': ['before', 'authorization'],
          'looked.example.com': ['before', 'look'],
        }
        await server.dieAt(further)
        await server.start()
        await issued(server, Object.keys(further))
        assert.deepEqual(
          ordered(server, Object.keys(further)),
          Object.keys(further).map((name) => [name, 1]),
        )
        assert.equal(await server.counted(), counted + 3)
        assert.equal(server.acme.accounts, 1)
      })
    },
    ['sqlite'],
  )
})
