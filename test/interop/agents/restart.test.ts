/**
 * The official SDK reconnects 0.05 s and 2.55 s after it lost its server, and then only after two minutes (D50). A try
 * that finds the door of a starting server open must be served, since the next one comes too late.
 *
 * How early the door opens depends on the machine: `npm run bench -- edge --only start` measures it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { ApiClient } from '../../support/api-client.ts'
import { portToKeep } from '../../support/free-port.ts'
import { serve } from '../../support/server-process.ts'
import { openGate } from '../../support/tcp-gate.ts'
import { until } from '../../support/until.ts'
import { sdkDriver } from './sdk-driver.ts'

const API_KEY = 'restart_api_key_of_the_first_admin_1'
const AUTHTOKEN = 'restart_authtoken_of_the_first_admin'

/** In milliseconds: beyond its third try, since a busy machine may not start a server in time for the first two. */
const BACK_MS = 300_000

test('after a server restart, an SDK agent is back on its first try that finds the door open', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-restart-'))
  t.after(() => rmSync(dataDir, { recursive: true, force: true }))
  const env = { POSTERN_BOOTSTRAP_API_KEY: API_KEY, POSTERN_BOOTSTRAP_AUTHTOKEN: AUTHTOKEN }
  const agentPort = await portToKeep()
  const flags = { 'agent-listen': `127.0.0.1:${agentPort}`, 'https-listen': `127.0.0.1:${await portToKeep()}` }
  const first = await serve({ dataDir, env, flags })
  let running = first
  t.after(() => running.stop())
  const ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
  const gate = await openGate(agentPort)
  t.after(() => gate.shut())
  const agent = await sdkDriver.connect({ server: `127.0.0.1:${gate.port}`, ca, authtoken: AUTHTOKEN })
  t.after(() => agent.close())
  const { url } = await agent.open({ addr: 'http://127.0.0.1:1' })

  for (let restart = 0; restart < 2; restart++) {
    assert.equal((await running.stop()).code, 0)
    running = await serve({ dataDir, env, flags })
    const api = new ApiClient(running.url, API_KEY)
    const isBack = async () =>
      (await api.get('/tunnels')).tunnels.some((tunnel: { public_url?: string }) => tunnel.public_url === url)
    await until('the agent is back', isBack, { limitMs: BACK_MS })
    assert.equal(gate.reached, restart + 2, 'no try that found the door open was in vain')
  }
})
