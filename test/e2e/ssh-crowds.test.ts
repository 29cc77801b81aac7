/** Crowds at the SSH gateway that are silent or fail to log in: a client with a valid key still gets in and is served. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import type { Channel } from 'ssh2'
import { clientKey, TestClient } from '../../src/data-plane/ssh/testing/test-gateway.ts'
import { keyLogin, makeKey, messages, RawClient } from '../../src/data-plane/ssh/testing/test-raw.ts'
import { metric } from '../support/metrics.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { httpUpstream } from '../support/upstream.ts'
import { visit } from '../support/visitor.ts'

const CROWD = 1000
const CROWD_FROM = '127.0.0.2'
const ELSEWHERE = '127.0.0.3'

/** Failing logins at once. */
const AT_ONCE = 25

/** The most unauthenticated connections that one address may have. */
const PER_ADDRESS = 256

describe(`a crowd of ${CROWD}`, () => {
  for (const [where, from] of [
    ['another address', ELSEWHERE],
    ['the same address', CROWD_FROM],
  ] as const) {
    test(`says nothing: from ${where} a client logs in and serves`, async (t) => {
      const platform = await start(t)
      const before = await online(t, platform, from, 'before.localhost')
      const crowd: Socket[] = []
      t.after(() => {
        for (const socket of crowd) socket.destroy()
      })
      for (let i = 0; i < CROWD; i++) {
        const socket = connect({ port: platform.sshPort, host: '127.0.0.1', localAddress: CROWD_FROM })
        crowd.push(socket.on('error', () => {}))
      }
      await Promise.all(crowd.map((socket) => once(socket, 'connect')))
      await until('the crowd is connected', async () => (await unproven(platform)) >= PER_ADDRESS)
      const amid = await online(t, platform, from, 'amid.localhost')
      await serves(platform, before, amid)
      assert.ok((await unproven(platform)) >= PER_ADDRESS - 2, 'the crowd is still connected')
      assertUnharmed(platform)
    })

    test(`fails to log in: from ${where} a client logs in and serves`, async (t) => {
      const platform = await start(t)
      const before = await online(t, platform, from, 'before.localhost')
      const crowd = failingLogins(platform)
      await until('many logins have failed', async () => (await failures(platform)) > 100, { limitMs: 60_000 })
      const amid = await online(t, platform, from, 'amid.localhost')
      await serves(platform, before, amid)
      assert.equal(await crowd, CROWD, 'none was let in')
      const after = await online(t, platform, from, 'after.localhost')
      await serves(platform, before, amid, after)
      assert.ok((await failures(platform)) >= CROWD * 0.9)
      assertUnharmed(platform)
    })
  }
})

async function start(t: TestContext): Promise<Platform> {
  const platform = await startPlatform()
  t.after(() => platform.stop())
  await platform.admin.create('/ssh_credentials', { public_key: clientKey.publicLine })
  return platform
}

/** Logs in from an address and serves under a name; returns the URL. */
async function online(t: TestContext, platform: Platform, from: string, name: string): Promise<string> {
  const service = await httpUpstream(t)
  const client = await new TestClient(platform.sshPort).login({ localAddress: from })
  t.after(() => client.leave())
  client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => {
    const channel = accept()
    const socket = connect(service.port, '127.0.0.1').on('error', () => {})
    channel.on('error', () => {})
    channel.pipe(socket).pipe(channel)
  })
  const run = await client.exec('http')
  await client.forward(name, 80)
  return until('it prints its address', () => /Forwarding +(\S+)/.exec(run.out)?.[1])
}

async function serves(platform: Platform, ...urls: readonly string[]): Promise<void> {
  for (const url of urls) assert.equal((await visit(url, platform)).status, 200)
}

/** Resolves with the number of refused clients, once all have tried. */
async function failingLogins(platform: Platform): Promise<number> {
  const { blob, sign } = makeKey()
  let next = 0
  let refused = 0
  const lane = async (): Promise<void> => {
    while (next < CROWD) {
      const i = next++
      const raw = await RawClient.atLogin(platform.sshPort, { from: CROWD_FROM })
      const login = keyLogin(raw, { blob, algorithm: 'ssh-ed25519', signer: (data) => sign(data) })
      let answer = await raw.login(login)
      // Some try as often as they may, and are then answered late.
      for (let again = 0; i % 50 === 0 && answer !== 0 && again < 10; again++) answer = await raw.login(login)
      if (raw.answers(messages.authSuccess).length === 0) refused++
      raw.leave()
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
  return refused
}

function unproven(platform: Platform): Promise<number> {
  return metric(platform.metricsUrl, 'postern_agents_unproven')
}

function failures(platform: Platform): Promise<number> {
  return metric(platform.metricsUrl, 'postern_agent_login_failures_total')
}

/** Asserts that nothing broke, and that the log has a few lines about it, not thousands. */
function assertUnharmed({ log }: Platform): void {
  assert.deepEqual(
    log.filter((line) => /"level":"(error|fatal)"/.test(line)),
    [],
  )
  assert.ok(log.length < 300, `${log.length} lines`)
}
