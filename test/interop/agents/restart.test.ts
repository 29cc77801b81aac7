/**
 * The official SDK asks again 0.05 s and 2.55 s after it lost its server, and then only after two minutes. A server that is
 * stopped by a signal and started again must be there for the first or the second time (D50).
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ApiClient } from '../../support/api-client.ts'
import { portToKeep } from '../../support/free-port.ts'
import { serve } from '../../support/server-process.ts'
import { until } from '../../support/until.ts'
import { sdkDriver } from './sdk-driver.ts'

const API_KEY = 'restart_api_key_of_the_first_admin_1'
const AUTHTOKEN = 'restart_authtoken_of_the_first_admin'

/** Long for a busy machine; its third try comes after twice that, in milliseconds. */
const BACK_MS = 60_000

test('an agent of the SDK is back on its second try at most when the server restarts', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-restart-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN }
  const flags = { 'agent-listen': `127.0.0.1:${await portToKeep()}`, 'https-listen': `127.0.0.1:${await portToKeep()}` }
  const first = await serve({ dataDir, env, flags })
  let running = first
  t.after(() => running.stop())
  const ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
  const agent = await sdkDriver.connect({ server: first.agents, ca, authtoken: AUTHTOKEN })
  t.after(() => agent.close())
  const { url } = await agent.open({ addr: 'http://127.0.0.1:1' })

  for (let restart = 0; restart < 2; restart++) {
    assert.equal((await running.stop()).code, 0)
    running = await serve({ dataDir, env, flags })
    const api = new ApiClient(running.url, API_KEY)
    const isBack = async () =>
      (await api.get('/tunnels')).tunnels.some((tunnel: { public_url?: string }) => tunnel.public_url === url)
    await until('the agent is back', isBack, { limitMs: BACK_MS })
  }
})
