/** Names below a wildcard of an edge or a reserved domain: only for credentials whose ACL names them (D66). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { AgentRefusal, type ConnectedAgent } from '../interop/agents/driver.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { eachStore } from '../support/databases.ts'
import { startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'
import { recorder } from './edges/upstreams.ts'
import { World } from './edges/world.ts'

eachStore((store) => {
  async function start(t: TestContext): Promise<World> {
    const world = await World.start({ databaseUrl: await store.url() })
    t.after(() => world.stop())
    return world
  }

  /** An agent whose credential has this ACL. */
  async function agentWith(t: TestContext, { platform, api }: World, acl: readonly string[]): Promise<ConnectedAgent> {
    const { token } = await api.create('/credentials', { acl })
    const agent = await ownDriver.connect({ server: platform.agents, ca: platform.ca, authtoken: token })
    t.after(() => agent.close())
    return agent
  }

  const held = (error: unknown): boolean =>
    error instanceof AgentRefusal && /stands below \*\.shop\.test/.test(error.message)

  test('an authtoken without an ACL cannot take a name below the wildcard of an edge', async (t) => {
    const world = await start(t)
    const web = await recorder(world)
    await world.httpsEdge({ names: ['*.shop.test'], routes: [{ backend: await world.toAddress(web) }] })
    for (const acl of [[], ['*'], ['bind:*'], ['bind:*', 'bind:other.test']]) {
      const agent = await agentWith(t, world, acl)
      for (const options of [
        { url: 'https://login.shop.test' },
        { url: 'https://a.b.shop.test' },
        { url: 'https://*.b.shop.test' },
        { url: 'http://x.shop.test' },
        { proto: 'tls', domain: 'x.shop.test' },
      ] as const) {
        await assert.rejects(agent.open({ addr: 1, ...options }), held, JSON.stringify({ acl, options }))
      }
      await agent.open({ addr: 1, url: 'https://other.test' })
      await agent.close()
    }
    assert.equal((await world.ask('login.shop.test')).status, 200)
    // Its ACL has the name, or the wildcard.
    for (const acl of [['bind:login.shop.test'], ['bind:*.shop.test']]) {
      const agent = await agentWith(t, world, acl)
      await agent.open({ addr: 1, url: 'https://login.shop.test' })
      await agent.close()
    }
  })

  test('a reserved wildcard covers the names below it, except those with their own reservation', async (t) => {
    const world = await start(t)
    await world.api.create('/reserved_domains', { domain: '*.shop.test' })
    const agent = await agentWith(t, world, [])
    await assert.rejects(agent.open({ addr: 1, url: 'https://login.shop.test' }), held)
    await world.api.create('/reserved_domains', { domain: 'login.shop.test' })
    await agent.open({ addr: 1, url: 'https://login.shop.test' })
    // The wildcard itself may be bound, since it was reserved.
    await agent.open({ addr: 1, url: 'https://*.shop.test' })
  })

  test('an edge cannot take a wildcard while an agent without an ACL serves a name below it', async (t) => {
    const world = await start(t)
    const agent = await agentWith(t, world, [])
    const tunnel = await agent.open({ addr: 1, url: 'https://login.shop.test' })
    const body = { hostports: ['*.shop.test:443'] }
    const refused = await world.api.refused('ERR_HOSTPORT_SERVED_BY_AGENT', 'POST', '/edges/https', { body })
    assert.match(refused.msg, /endpoint `ep_/)
    await tunnel.close()
    await until(
      'the edge can be created',
      async () => (await world.api.send('POST', '/edges/https', { body })).status === 201,
    )
    await assert.rejects(agent.open({ addr: 1, url: 'https://login.shop.test' }), held)
  })

  test('an agent whose credential names its address keeps it when an edge takes the wildcard above it', async (t) => {
    const world = await start(t)
    const agent = await agentWith(t, world, ['bind:login.shop.test'])
    await agent.open({ addr: 1, url: 'https://login.shop.test' })
    const web = await recorder(world)
    await world.httpsEdge({ names: ['*.shop.test'], routes: [{ backend: await world.toAddress(web) }] })
    assert.equal((await world.api.get('/tunnels')).tunnels.length, 1)
    assert.equal((await world.ask('other.shop.test')).status, 200)
  })

  if (store.name === 'postgres') {
    test('an edge that another server creates takes the names below its wildcard from agents here', async (t) => {
      const databaseUrl = await store.url()
      // The agent cannot move to the other server, which has another port, so draining must not wait for that.
      const flags = { 'drain-timeout': '1s' }
      const here = await startPlatform({ databaseUrl, flags })
      t.after(() => here.stop())
      const there = await startPlatform({ databaseUrl, flags: { ...flags, 'key-file': `${here.dataDir}/secret.key` } })
      t.after(() => there.stop())
      const { agents: server, ca, authtoken } = here
      const agent = await ownDriver.connect({ server, ca, authtoken })
      t.after(() => agent.close())
      await agent.open({ addr: 1, url: 'https://login.shop.test' })
      await agent.open({ addr: 1, url: 'https://other.test' })
      await there.admin.create('/edges/https', { hostports: ['*.shop.test:443'] })
      const tunnels = async (): Promise<string[]> =>
        (await here.admin.get('/tunnels')).tunnels.map(({ public_url }: { public_url: string }) => public_url)
      await until('one tunnel is left', async () => (await tunnels()).length === 1)
      assert.match(String(await tunnels()), /other\.test/)
    })
  }
})
