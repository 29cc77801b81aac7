/** The log has every operation and no secrets, and callers never see the cause of an internal error. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Client } from 'pg'
import { ApiClient } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { head, sendRaw } from '../support/raw-http.ts'
import { assertEnvelope } from './envelope.ts'
import { sampleModule } from './samples.ts'

eachStore((store) => {
  let platform: Platform
  before(async () => {
    platform = await startPlatform({ databaseUrl: await store.url(), flags: { 'log-level': 'trace' } })
  })
  after(() => platform.stop())

  test('the log has the operation of every refusal', async () => {
    const { admin, url } = platform
    const anonymous = new ApiClient(url, null)
    const operations = [
      assertEnvelope(await admin.send('GET', '/nowhere'), 404),
      assertEnvelope(await admin.send('PUT', '/api_keys'), 405),
      assertEnvelope(await admin.send('POST', '/api_keys', { body: '{' }), 400),
      assertEnvelope(await anonymous.send('GET', '/api_keys'), 401),
      assertEnvelope(await sendRaw(url, 'GARBAGE\r\n\r\n'), 400),
    ]
    for (const operation of operations) await logged(platform, operation)
  })

  test('no line of the log holds a secret', async () => {
    const { admin, url, apiKey, authtoken } = platform
    const secrets = ['hush-client-secret', 'hush-oauth-secret', 'wrong_token_of_somebody_0123456789', apiKey, authtoken]
    const { token, id } = await admin.create('/api_keys', { metadata: 'hush-metadata' })
    const credential = await admin.create('/credentials')
    secrets.push(token, credential.token)
    const mine = new ApiClient(url, token)
    await mine.get(`/api_keys/${id}`)
    const edge = await admin.create('/edges/https')
    const oidc = { ...(await sampleModule(admin, 'oidc')), client_secret: 'hush-client-secret' }
    const route = { match_type: 'path_prefix', match: '/', oidc }
    const { id: routeId } = await admin.create(`/edges/https/${edge.id}/routes`, route)
    await admin.put(`/edges/https/${edge.id}/routes/${routeId}/oidc`, oidc)
    await admin.send('PUT', `/edges/https/${edge.id}/routes/${routeId}/oidc`, { body: { ...oidc, scopes: 'x' } })
    const github = { client_id: 'app', client_secret: 'hush-oauth-secret' }
    const oauth = { enabled: false, provider: { github } }
    await admin.put(`/edges/https/${edge.id}/routes/${routeId}/oauth`, oauth)
    const wrongly = { body: { provider: { github, google: github } } }
    await admin.refused('ERR_SEVERAL_PROVIDERS', 'PUT', `/edges/https/${edge.id}/routes/${routeId}/oauth`, wrongly)

    const wrong = new ApiClient(url, 'wrong_token_of_somebody_0123456789')
    await wrong.send('GET', '/api_keys')
    await mine.send('GET', `/api_keys?token=${token}`)
    await mine.send('GET', `/api_keys/${token}`)
    await mine.send('GET', `/${token}`)
    await mine.send('POST', '/api_keys', { body: `{"description":"${token}"` })
    await mine.send('POST', '/api_keys', { body: { [token]: 1 } })
    const lines = [`Authorization: Bearer ${token}`, 'Service-Version: 2']
    await sendRaw(url, head(['GET /api_keys HTTP/1.1', 'Host: a/b', ...lines]))
    await sendRaw(url, head(['GET /api_keys HTTP/1.1', 'Host: a', ...lines, 'bad header']))
    await brokenStore(platform.databaseUrl, async () => assertEnvelope(await mine.send('GET', '/api_keys'), 500))
    await mine.delete(`/api_keys/${id}`)

    const last = assertEnvelope(await mine.send('GET', '/api_keys'), 401)
    await logged(platform, last)
    for (const secret of secrets) {
      const found = platform.log.filter((line) => line.includes(secret))
      assert.deepEqual(found, [], `${secret} is in the log`)
    }
  })

  test('an internal error is a 500 without details, its cause is in the log, and it is gone once repaired', async () => {
    const { admin, databaseUrl } = platform
    await brokenStore(databaseUrl, async () => {
      for (const [method, path] of [
        ['GET', '/api_keys'],
        ['POST', '/ip_policies'],
      ] as const) {
        const answer = await admin.send(method, path)
        const operation = assertEnvelope(answer, 500, 'ERR_INTERNAL')
        assert.doesNotMatch(answer.text, /claims|select|sql|table|relation|\.ts|node:|\bat /i)
        const lines = await logged(platform, operation)
        assert.ok(
          lines.some((line) => line.level === 'error'),
          'the log has the cause',
        )
      }
    })
    await admin.get('/api_keys')
  })

  if (store.name === 'postgres') {
    test('without its database the API answers 503 with Retry-After, and recovers once it is back', async () => {
      const { admin, databaseUrl, url } = platform
      await admin.create('/ip_policies', { description: 'kept' })
      const name = new URL(databaseUrl).pathname.slice(1)
      const server = new URL(databaseUrl)
      server.pathname = '/postgres'
      const client = new Client({ connectionString: server.href })
      await client.connect()
      try {
        await client.query(`alter database ${name} with allow_connections false`)
        await client.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [name])
        for (const [method, path] of [
          ['GET', '/ip_policies'],
          ['POST', '/ip_policies'],
        ] as const) {
          const answer = await admin.send(method, path)
          const operation = assertEnvelope(answer, 503, 'ERR_STORE_UNAVAILABLE')
          assert.match(answer.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
          assert.doesNotMatch(answer.text, /postgres|sql|ECONN|\.ts|\bat /i)
          await logged(platform, operation)
        }
        const anonymous = new ApiClient(url, null)
        assert.equal((await anonymous.send('GET', '/healthz')).status, 200, 'the process is healthy')
        assert.equal((await anonymous.send('GET', '/readyz')).status, 503, 'but cannot serve')
      } finally {
        await client.query(`alter database ${name} with allow_connections true`)
        await client.end()
      }
      const { ip_policies } = await admin.get('/ip_policies')
      assert.equal(ip_policies.length, 1)
      assert.equal(ip_policies[0].description, 'kept')
      await admin.create('/ip_policies')
    })
  }
})

/** The log lines of an operation, which may come shortly after its answer. */
async function logged(platform: Platform, operation: string): Promise<{ level: string; operation?: string }[]> {
  for (let turn = 0; turn < 10_000; turn++) {
    const lines = platform.log.filter((line) => line.includes(operation))
    if (lines.length > 0) return lines.map((line) => JSON.parse(line))
    await setImmediate()
  }
  throw new Error(`the log has no line of ${operation}`)
}

/** Renames a table that every call needs while `meanwhile` runs. */
async function brokenStore(databaseUrl: string, meanwhile: () => Promise<unknown>): Promise<void> {
  const run = await opened(databaseUrl)
  try {
    await run('alter table claims rename to gone')
    await meanwhile()
    await run('alter table gone rename to claims')
  } finally {
    await run(null)
  }
}

/** Opens a second connection that runs statements; null closes it. */
async function opened(url: string): Promise<(statement: string | null) => Promise<void>> {
  if (url.startsWith('sqlite:')) {
    const database = new DatabaseSync(url.slice('sqlite:'.length))
    return async (statement) => (statement === null ? database.close() : database.exec(statement))
  }
  const client = new Client({ connectionString: url })
  await client.connect()
  return async (statement) => {
    if (statement === null) await client.end()
    else await client.query(statement)
  }
}
