/** Agents that lose their server come back with the same session and the same addresses (D46). */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { Json } from '../../support/api-client.ts'
import { portToKeep, tcpRange } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { openGate } from '../../support/tcp-gate.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'
import type { AgentDriver, ConnectedAgent } from './driver.ts'
import { drivers, eachAgent } from './each-agent.ts'

eachAgent((stage, test) => {
  test('after its connection was cut, twice', async (t) => {
    const { server } = await stage.driver.access(stage.platform)
    const gate = await openGate(portOf(server))
    const agent = await stage.connect(t, { server: `127.0.0.1:${gate.port}`, metadata: 'cut' })
    t.after(() => gate.shut())
    const opened = await openAll(t, agent, { ...stage.driver, tcpPort: stage.tcpPort() })
    const before = await shown(stage.platform, stage.driver)
    assert.equal(before.tunnels.length, 4)
    for (let i = 0; i < 2; i++) {
      await gate.shut()
      await until('the session is gone', async () => (await shown(stage.platform, stage.driver)).tunnels.length === 0)
      await gate.open()
      await until('all is back', async () => (await shown(stage.platform, stage.driver)).tunnels.length === 4)
      assert.deepEqual(await shown(stage.platform, stage.driver), before)
      await opened.areServed(stage.platform)
    }
  })
})

for (const driver of drivers) {
  describe(driver.name, { skip: driver.missing }, () => {
    test('after the server restarted on the same data', async (t) => {
      const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'))
      t.after(() => rm(dataDir, { recursive: true, force: true }))
      const range = await tcpRange(20)
      const flags = {
        ...range.flags,
        'drain-timeout': '1s',
        'agent-listen': `127.0.0.1:${await portToKeep()}`,
        'ssh-listen': `127.0.0.1:${await portToKeep()}`,
        'https-listen': `127.0.0.1:${await portToKeep()}`,
        'http-listen': `127.0.0.1:${await portToKeep()}`,
      }
      const first = await startPlatform({ dataDir, flags })
      let running = first
      t.after(() => running.stop())
      const agent = await driver.connect({ ...(await driver.access(first)), metadata: 'restarted' })
      t.after(() => agent.close())
      const opened = await openAll(t, agent, { ...driver, tcpPort: range.from })
      const before = await shown(first, driver)

      await first.stop()
      running = await startPlatform({ dataDir, flags })
      await until('all is back', async () => (await shown(running, driver)).tunnels.length === before.tunnels.length)
      const after = await shown(running, driver)
      assert.deepEqual(after.sessions, before.sessions)
      // A forgotten label tunnel comes back as a new one, since labels are not requested by id.
      assert.deepEqual(after.tunnels.filter(hasUrl), before.tunnels.filter(hasUrl))
      await opened.areServed(running)
    })
  })
}

interface Opening extends Pick<AgentDriver, 'hasSession'> {
  /** The port to request for an agent that would not get the same random port again. */
  readonly tcpPort: number
}

/** Opens a tunnel of every kind, with addresses chosen by the server if they stay the same, and a label tunnel. */
async function openAll(t: TestContext, agent: ConnectedAgent, { hasSession, tcpPort }: Opening) {
  const chosen = hasSession ? {} : { domain: 'chosen.example.com' }
  const port = hasSession ? {} : { remote_addr: `localhost:${tcpPort}` }
  const web = await httpUpstream(t, (_, response) => response.end('web'))
  const bytes = await tcpUpstream(t)
  const https = await agent.open({ addr: web.address, metadata: 'of https', ...chosen })
  const named = await agent.open({ addr: web.address, domain: 'back.example.com', schemes: ['http'] })
  const tcp = await agent.open({ proto: 'tcp', addr: bytes.address, ...port })
  await agent.open({ labels: { app: 'back' }, addr: web.address })
  return {
    async areServed(platform: Platform): Promise<void> {
      for (const { url } of [https, named]) assert.equal((await visit(url, platform)).text, 'web')
      assert.equal(await exchange(await dialTcp(tcp.url), 'bytes'), 'bytes')
    },
  }
}

/** All that the API shows of online agents; for an agent without its own session, its tunnels. */
async function shown(
  { admin, url }: Platform,
  { hasSession }: AgentDriver,
): Promise<{ sessions: Json[]; tunnels: Json[] }> {
  const { tunnel_sessions: sessions } = await admin.get('/tunnel_sessions')
  const { tunnels } = await admin.get('/tunnels')
  if (!hasSession) {
    const served = tunnels.map(({ public_url, metadata, labels }: Json) => ({ public_url, metadata, labels }))
    return {
      sessions: [],
      tunnels: served.sort((a: Json, b: Json) => (String(a.public_url) < String(b.public_url) ? -1 : 1)),
    }
  }
  // The API has another port each time.
  const text = JSON.stringify({ sessions, tunnels }).replaceAll(url, '')
  return JSON.parse(text)
}

function hasUrl({ public_url }: Json): boolean {
  return public_url !== undefined
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(':') + 1))
}
