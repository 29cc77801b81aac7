/** Visitors of a route with a login while the database does not answer are told to retry, and nobody is let in. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storeLimits } from '../../src/control-plane/store/limits.ts'
import { startPostgres } from '../support/postgres.ts'
import { openGate } from '../support/tcp-gate.ts'
import { until } from '../support/until.ts'
import { recorder } from './edges/upstreams.ts'
import { versions } from './edges/visitor.ts'
import { World } from './edges/world.ts'

/** Short, so that the test is quick; long enough for a busy machine that does answer. */
const limits = { ...storeLimits, connectionMs: 1000, statementMs: 1500, pollMs: 500 }

test('while the database does not answer, a login can begin, and a visitor with a cookie gets 503', async (t) => {
  const postgres = await startPostgres()
  t.after(() => postgres.stop())
  const url = new URL(await postgres.createDatabase())
  const gate = await openGate(Number(url.port))
  t.after(() => gate.shut())
  url.port = String(gate.port)
  const world = await World.start({ databaseUrl: url.href, storeLimits: limits })
  t.after(() => world.stop())
  t.after(() => gate.speak())
  const service = await recorder(world)
  const application = { client_id: 'app', client_secret: 'hush-hush' }
  const { name } = await world.httpsTo(service, { oauth: { provider: { github: application } } })
  const ask = async (path: string, secret?: string, version: (typeof versions)[number] = '1.1') => {
    const headers = { ...(secret !== undefined && { cookie: `__Host-postern.session=${secret.repeat(43)}` }) }
    const answer = await world.ask(name, { version, path, headers })
    return { ...answer, outcome: answer.code ?? answer.status }
  }
  assert.equal((await ask('/', 'a')).outcome, 302)

  gate.hush()
  for (const version of versions) {
    assert.equal((await ask('/', undefined, version)).outcome, 302)
    for (const path of ['/', '/postern/logout']) {
      const { status, outcome, headers } = await ask(path, 'b', version)
      assert.deepEqual([status, outcome], [503, 'ERR_LOGIN_STORE_DOWN'], path)
      assert.match(String(headers['retry-after']), /^\d+$/)
      assert.equal(headers['set-cookie'], undefined)
    }
  }
  assert.equal(service.seen.length, 0)

  gate.speak()
  await until('logins can be read again', async () => (await ask('/', 'c')).outcome === 302)
  assert.equal((await ask('/postern/logout', 'c')).outcome, 302)
})
