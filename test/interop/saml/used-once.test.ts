/** An identity provider's answer is used once: at any worker, and after processes or the whole server ended. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { TestIdp } from '../../../src/modules/saml/testing/test-idp.ts'
import { childrenOf } from '../../chaos/children.ts'
import { ApiClient } from '../../support/api-client.ts'
import { portToKeep } from '../../support/free-port.ts'
import { type ServerProcess, serve } from '../../support/server-process.ts'
import { until } from '../../support/until.ts'
import { type Answered, type Ask, visit } from '../../support/visitor.ts'
import { JarClient } from '../oidc/jar-client.ts'

const NAME = 'once.saml.test'
const API_KEY = 'test_api_key_of_the_first_admin_0001'
const WORKERS = 2
/** Concurrent new connections: enough that each worker gets some of them. */
const TRIES = 24
const REPEATED = 'ERR_LOGIN_ANSWER_REPEATED'

async function allAtOnce(send: () => Promise<Answered>): Promise<{ answers: Answered[]; outcomes: string[] }> {
  const answers = await Promise.all(Array.from({ length: TRIES }, send))
  const outcomes = answers.map(({ status, headers }) => String(headers['postern-error-code'] ?? status))
  return { answers, outcomes: outcomes.sort() }
}

const skip = process.platform !== 'linux' && 'processes are found in /proc'

test("an identity provider's answer is used once, whatever happens to processes", { skip }, async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-used-once-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const port = await portToKeep()
  const origin = `https://${NAME}:${port}`
  const flags = { workers: String(WORKERS), 'https-listen': `127.0.0.1:${port}`, 'drain-timeout': '1s' }
  const start = async (): Promise<ServerProcess> => {
    const started = await serve({ dataDir, env: { POSTERN_BOOTSTRAP_API_KEY: API_KEY }, flags })
    t.after(() => started.kill('SIGKILL'))
    return started
  }
  const server = await start()
  const trust = { ca: await readFile(join(dataDir, 'ca.pem'), 'utf8') }
  const send = (path: string, ask: Ask = {}) => visit(origin, trust, { path, ...ask })

  const idp = await TestIdp.make()
  const api = new ApiClient(server.url, API_KEY)
  const backend = await api.create('/backends/http_response', { body: 'inside' })
  const edge = await api.create('/edges/https', { hostports: [`${NAME}:${port}`] })
  const { id } = await api.create(`/edges/https/${edge.id}/routes`, {
    match_type: 'path_prefix',
    match: '/',
    backend: { backend_id: backend.id },
    saml: { idp_metadata: idp.metadata },
  })
  const inForce = () =>
    until('every worker serves it', async () => {
      const tries = Array.from({ length: TRIES }, () => send('/').catch(() => undefined))
      return (await Promise.all(tries)).every((each) => each?.status === 302)
    })
  await inForce()

  const browser = new JarClient(trust, '1.1')
  const begun = await browser.get(`${origin}/page`)
  const asked = await idp.read(String(begun.headers.location), (await send(`/postern/saml/${id}/metadata`)).text)
  const form = new URLSearchParams({ SAMLResponse: btoa(await idp.answer(asked)), RelayState: asked.relayState })
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const post = () => send(`/postern/saml/${id}/acs`, { method: 'POST', headers, body: form.toString() })

  const posted = await allAtOnce(post)
  const onlyFirst = (status: number) => [String(status), ...Array.from({ length: TRIES - 1 }, () => REPEATED)]
  assert.deepEqual(posted.outcomes, onlyFirst(303))
  const location = String(posted.answers.find(({ status }) => status === 303)?.headers.location)
  const finish = () => {
    // Each call has its own copy of the browser's cookies, so that the login can be finished repeatedly.
    const copy = new JarClient(trust, '1.1')
    for (const [host, jar] of browser.jars) copy.jars.set(host, new Map(jar))
    return copy.get(new URL(location, origin).href)
  }
  assert.deepEqual((await allAtOnce(finish)).outcomes, onlyFirst(302))
  const logout = idp.logoutQuery(`${origin}/postern/saml/${id}/slo`, { logoutNameID: 'ada' })
  const logOut = () => send(`/postern/saml/${id}/slo?${logout}`)
  assert.deepEqual((await allAtOnce(logOut)).outcomes, onlyFirst(303))

  const areRefused = async () => {
    await inForce()
    for (const again of [post, finish, logOut]) {
      assert.deepEqual([...new Set((await allAtOnce(again)).outcomes)], [REPEATED])
    }
  }
  const children = () => childrenOf(server.child.pid ?? 0, WORKERS)
  const before = children()
  assert.ok(before)
  const gone = [before.control, ...before.workers]
  for (const pid of gone) process.kill(pid, 'SIGKILL')
  await until('all are replaced', () => {
    const now = children()
    return now && [now.control, ...now.workers].every((pid) => !gone.includes(pid))
  })
  await areRefused()

  await server.stop()
  await start()
  await areRefused()
})
