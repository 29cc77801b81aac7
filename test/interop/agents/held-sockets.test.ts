/**
 * The official SDK reconnects at once, after 2.55 s, and then only after two minutes (D50). Where the supervisor or a service manager
 * holds the sockets, its first try is never in vain, whatever process was killed.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, type TestContext, test } from 'node:test'
import { childrenOf } from '../../chaos/children.ts'
import { portToKeep } from '../../support/free-port.ts'
import { serve, serveArgs } from '../../support/server-process.ts'
import { openSocket, serviceManager } from '../../support/service-manager.ts'
import { openGate } from '../../support/tcp-gate.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import { sdkDriver } from './sdk-driver.ts'

const env = {
  POSTERN_BOOTSTRAP_API_KEY: 'held_api_key_of_the_first_admin_0001',
  POSTERN_BOOTSTRAP_AUTHTOKEN: 'held_authtoken_of_the_first_admin_01',
}
const root = mkdtempSync(join(tmpdir(), 'postern-held-'))
after(() => rmSync(root, { recursive: true, force: true }))

/** Starts an agent behind a gate that counts its connections; it is back when visitors are served through another one. */
async function startAgent(
  t: TestContext,
  agentPort: number,
  { ca, port, authtoken }: { ca: string; port: number; authtoken: string },
) {
  const gate = await openGate(agentPort)
  t.after(() => gate.shut())
  const service = await httpUpstream(t, (_, response) => response.end('served'))

  const agent = await sdkDriver.connect({ server: `127.0.0.1:${gate.port}`, ca, authtoken })
  t.after(() => agent.close())
  const { url } = await agent.open({ addr: `http://${service.address}`, domain: 'held.example.com' })
  const { hostname } = new URL(url)
  const isServed = () =>
    visit(`https://${hostname}:${port}`, { ca }).then(
      ({ text }) => text === 'served',
      () => false,
    )
  await until('it is served', isServed)
  return {
    /** Does something to the server, after which the agent must be back over as many new connections. */
    async survives(what: string, does: () => unknown, { connections }: { readonly connections: number }) {
      const before = gate.reached
      const begun = performance.now()
      await does()
      await until('it has connected again', () => gate.reached >= before + connections)
      await until('it is served again', isServed)
      t.diagnostic(`${what}: served again after ${((performance.now() - begun) / 1000).toFixed(1)} s`)
      assert.equal(gate.reached, before + connections, 'no try was in vain')
    },
  }
}

const portOf = (address: string): number => Number(address.split(':').at(-1))

test('an SDK agent is back on its first try after its worker was killed or upgraded, and the control process costs it nothing', async (t) => {
  const dataDir = mkdtempSync(join(root, 'supervised-'))
  // An agent that cannot move is disconnected at the end of this time.
  const flags = { workers: '1', 'drain-timeout': '1s', 'https-listen': `127.0.0.1:${await portToKeep()}` }
  const server = await serve({ dataDir, env, flags })
  t.after(() => server.stop())
  const ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
  const agent = await startAgent(t, portOf(server.agents), {
    ca,
    port: portOf(server.https),
    authtoken: env.POSTERN_BOOTSTRAP_AUTHTOKEN,
  })
  const supervisor = server.child.pid ?? 0
  const children = () => until('all processes run', () => childrenOf(supervisor, 1))
  const kill = async (which: 'control' | 'worker'): Promise<void> => {
    const { control, workers } = await children()
    const pid = which === 'control' ? control : workers[0]
    process.kill(pid ?? assert.fail(), 'SIGKILL')
    await until('another process is there', () => {
      const now = childrenOf(supervisor, 1)
      return now !== undefined && ![now.control, ...now.workers].includes(pid ?? 0)
    })
  }
  await agent.survives('kill -9 of the control process', () => kill('control'), { connections: 0 })
  await agent.survives('kill -9 of its worker', () => kill('worker'), { connections: 1 })
  await agent.survives('upgrade', () => server.kill('SIGUSR2'), { connections: 1 })
})

test('an SDK agent is back on its first try when all was killed, but a service manager holds the sockets', async (t) => {
  const dataDir = mkdtempSync(join(root, 'handed-'))
  const open = await Promise.all([openSocket('agent'), openSocket('https')])
  const [agents, https] = open
  const elsewhere = { 'agent-listen': '192.0.2.1:1', 'https-listen': '192.0.2.1:1', 'drain-timeout': '1s' }
  const manager = serviceManager(open, serveArgs({ dataDir, flags: elsewhere }))
  t.after(() => manager.end())
  for (const each of open) each.close()
  let pid = await manager.start()
  const isReady = (starts: number) =>
    until('the server is ready', () => manager.printed().split('\nListening: ').length > starts)
  await isReady(1)
  const [, authtoken = ''] = /^ +Agent authtoken +(\S+)$/m.exec(manager.printed()) ?? []

  const ca = readFileSync(join(dataDir, 'ca.pem'), 'utf8')
  const agent = await startAgent(t, agents?.port ?? 0, { ca, port: https?.port ?? 0, authtoken })
  for (const [starts, signal] of [[2, 'SIGKILL'] as const, [3, 'SIGTERM'] as const]) {
    const restart = async (): Promise<void> => {
      process.kill(pid, signal)
      await manager.ended()
      pid = await manager.start()
      await isReady(starts)
    }
    await agent.survives(`${signal} and a start under a socket unit`, restart, { connections: 1 })
  }
})
