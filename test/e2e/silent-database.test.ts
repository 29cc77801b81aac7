/** A slow or silent database: calls that need it are refused in time, traffic continues, and all recovers by itself. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { connect } from '../../src/agent/library.ts'
import { storeLimits } from '../../src/control-plane/store/limits.ts'
import { startAgent } from '../support/agent-process.ts'
import type { Answer } from '../support/api-client.ts'
import { startPlatform } from '../support/platform.ts'
import { startPostgres } from '../support/postgres.ts'
import { sessionsOnline } from '../support/presence.ts'
import { openGate } from '../support/tcp-gate.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'

/** Short, so that the tests are quick; long enough for a busy machine that does answer. */
const limits = { ...storeLimits, connectionMs: 1000, statementMs: 1500, pollMs: 500 }

const portOf = (address: string): number => Number(address.slice(address.lastIndexOf(':') + 1))

/** A platform with one agent, whose connection can be cut, and one address that it serves. */
async function startWorld(t: TestContext, databaseUrl?: string) {
  const platform = await startPlatform({
    ...(databaseUrl !== undefined && { databaseUrl }),
    flags: { 'drain-timeout': '1s' },
    storeLimits: limits,
  })
  t.after(() => platform.stop())
  const link = await openGate(portOf(platform.agents))
  t.after(() => link.shut())
  const web = await httpUpstream(t, (_request, response) => response.end('web'))
  const { caFile, authtoken } = platform
  await startAgent(t, {
    server: `127.0.0.1:${link.port}`,
    caFile,
    authtoken,
    tunnels: { web: { addr: web.address, domain: 'served.example.com' } },
  })
  const served = async () => {
    const answer = await visit(`https://served.example.com:${platform.httpsPort}`, platform)
    return `${answer.status} ${answer.text}`
  }
  const servedAgain = () =>
    until('visitors are served again', () =>
      served().then(
        (answer) => answer === '200 web',
        () => false,
      ),
    )
  assert.equal(await served(), '200 web')
  return { platform, link, served, servedAgain }
}

function assertAway({ status, headers, body }: Answer): void {
  assert.equal(status, 503, JSON.stringify(body))
  assert.equal(body.error_code, 'ERR_STORE_UNAVAILABLE')
  assert.match(headers.get('retry-after') ?? '', /^\d+$/)
}

const statusOf = async (url: string) => (await fetch(url)).status

test('a silent PostgreSQL: API and /readyz answer 503 in time, visitors notice nothing, and all recovers', async (t) => {
  const postgres = await startPostgres()
  t.after(() => postgres.stop())
  const url = new URL(await postgres.createDatabase())
  const gate = await openGate(Number(url.port))
  t.after(() => gate.shut())
  url.port = String(gate.port)
  const { platform, link, served, servedAgain } = await startWorld(t, url.href)
  t.after(() => gate.speak())
  const { admin } = platform

  gate.hush()
  const asked = [
    admin.send('GET', '/api_keys'),
    admin.send('POST', '/ip_policies', { body: { description: 'lost' } }),
    admin.send('GET', '/credentials'),
  ]
  assert.equal(await statusOf(`${platform.url}/readyz`), 503)
  assert.equal(await statusOf(`${platform.url}/healthz`), 200)
  assert.equal(await served(), '200 web')
  for (const answer of await Promise.all(asked)) assertAway(answer)
  // By now all former connections were given up, and new ones are accepted but never answered.
  assertAway(await admin.send('GET', '/api_keys'))
  assertAway(await admin.send('POST', '/ip_policies', { body: { description: 'lost' } }))
  assert.equal(await statusOf(`${platform.url}/readyz`), 503)
  assert.equal(await served(), '200 web')

  // An agent that was cut off is let in again by its cookie; a stranger is refused until its credential can be read.
  await link.shut()
  await link.open()
  await servedAgain()
  const stranger = connect({ server: platform.agents, ca: platform.caFile, authtoken: platform.authtoken })
  await assert.rejects(stranger, /cannot reach its database/)

  gate.speak()
  await until('it is ready again', async () => (await statusOf(`${platform.url}/readyz`)) === 200)
  await until('the API is back', async () => (await admin.send('GET', '/api_keys')).status === 200)
  const { ip_policies: policies } = await admin.get('/ip_policies')
  assert.deepEqual(policies, [], 'no refused write was stored')
  await sessionsOnline(platform, 1)
  await servedAgain()
})

test('SQLite locked by another process: writes answer 503 in time, reads and visitors notice nothing', async (t) => {
  const { platform, link, served, servedAgain } = await startWorld(t)
  const { admin } = platform
  const foreign = await lockElsewhere(t, platform.databaseUrl.slice('sqlite:'.length))

  let isAnswered = false
  const writing = Promise.all(
    ['one', 'two'].map((description) => admin.send('POST', '/ip_policies', { body: { description } })),
  ).finally(() => {
    isAnswered = true
  })
  let rounds = 0
  for (; !isAnswered; rounds++) {
    assert.equal(await served(), '200 web')
    assert.equal(await statusOf(`${platform.url}/healthz`), 200)
    assert.equal((await admin.send('GET', '/api_keys')).status, 200)
  }
  assert.ok(rounds > 1, 'reads were answered while the writes waited')
  for (const answer of await writing) assertAway(answer)
  assert.equal(await statusOf(`${platform.url}/readyz`), 503, 'writes fail (D125)')
  assert.equal(await statusOf(`${platform.url}/readyz?for=visitors`), 200)
  await link.shut()
  await link.open()
  await servedAgain()

  foreign.kill()
  await once(foreign, 'exit')
  await until('writes are stored again', async () => {
    const answer = await admin.send('POST', '/ip_policies', { body: { description: 'after' } })
    return answer.status === 201
  })
  assert.equal(await statusOf(`${platform.url}/readyz`), 200)
  const { ip_policies: policies } = await admin.get('/ip_policies')
  assert.deepEqual(
    policies.map(({ description }: { description: string }) => description),
    ['after'],
  )
})

/** Another process that holds the write lock until it is killed. */
async function lockElsewhere(t: TestContext, path: string) {
  const script = `const { DatabaseSync } = require('node:sqlite')
    const db = new DatabaseSync(${JSON.stringify(path)}, { timeout: 5000 })
    db.exec('begin exclusive')
    process.stdout.write('locked')
    setInterval(() => db, 1000)`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'ignore'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}
