/** What is online on three nodes, as the API of each lists, commands and ends it. */
import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { ConnectionEvent } from '../../../src/agent/library.ts'
import { startAgent } from '../../support/agent-process.ts'
import type { Json } from '../../support/api-client.ts'
import { AUTHTOKEN, agentAt, type ClusterNode, listed, type TestCluster } from '../../support/cluster.ts'
import { openLogins } from '../../support/logins.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'

export function presenceTests(cluster: () => TestCluster): void {
  const web = (t: TestContext) => httpUpstream(t, (_, response) => response.end('hello'))
  const ids = (all: readonly Json[]): string[] => all.map(({ id }) => id)
  /** All pages of a list, with two items each, followed as by a client. */
  const paged = async (node: ClusterNode, kind: 'tunnel_sessions' | 'tunnels' | 'endpoints'): Promise<Json[]> => {
    const all: Json[] = []
    let path: string | null = `/${kind}?limit=2`
    while (path !== null) {
      const page: Json = await node.api.get(path)
      assert.ok(page[kind].length <= 2)
      all.push(...page[kind])
      const next: string | null = page.next_page_uri
      // Each node links to its own next page.
      if (next !== null) assert.ok(next.startsWith(node.server.url), next)
      path = next === null ? null : next.slice(node.server.url.length)
    }
    return all
  }

  test('list all that is online, in one order, page by page', async (t) => {
    const { nodes } = cluster()
    const { port } = await web(t)
    const opened = []
    for (const node of [...nodes, ...nodes]) {
      opened.push(await (await agentAt(t, cluster(), node)).forward({ addr: port, metadata: node.name }))
    }
    const newestFirst = opened.map(({ id }) => id).toReversed()
    for (const node of nodes) {
      const tunnels = await until(`${node.name} lists all`, async () => {
        const all = await listed(node, 'tunnels')
        return all.length === opened.length && all
      })
      assert.deepEqual(ids(tunnels), newestFirst, node.name)
      assert.deepEqual(ids(await paged(node, 'tunnels')), newestFirst, node.name)
      assert.deepEqual(
        tunnels.map(({ metadata, region }) => [metadata, region]),
        tunnels.map(({ metadata }) => [metadata, metadata.replace('node-', 'r')]),
        'each has the region of its own node',
      )
      for (const kind of ['tunnel_sessions', 'endpoints'] as const) {
        const all = await listed(node, kind)
        assert.equal(all.length, opened.length, kind)
        assert.deepEqual(ids(await paged(node, kind)), ids(all), kind)
        assert.deepEqual(await paged(node, kind), await sameAt(nodes, node, kind), kind)
        for (const { id } of all) assert.equal((await node.api.get(`/${kind}/${id}`)).id, id)
      }
    }
  })

  /** The lists of the other nodes, with addresses as this node shows them. */
  const sameAt = async (
    nodes: readonly ClusterNode[],
    node: ClusterNode,
    kind: 'tunnel_sessions' | 'endpoints',
  ): Promise<Json[]> => {
    const lists = await Promise.all(
      nodes.map(async (each) => {
        const text = JSON.stringify(await listed(each, kind)).replaceAll(each.server.url, node.server.url)
        return JSON.parse(text) as Json[]
      }),
    )
    for (const list of lists) assert.deepEqual(list, lists[0])
    return lists[0] ?? []
  }

  test('show at every node what comes and goes', async (t) => {
    const { nodes } = cluster()
    const agent = await agentAt(t, cluster(), nodes[1])
    const tunnel = await agent.forward({ addr: (await web(t)).port })
    const { id } = tunnel
    const { tunnel_session: session } = await nodes[1].api.get(`/tunnels/${id}`)
    const there = async (path: string): Promise<boolean[]> =>
      Promise.all(nodes.map(async ({ api }) => (await api.send('GET', path)).status === 200))
    await until('the tunnel is there', async () => (await there(`/tunnels/${id}`)).every((isThere) => isThere))
    assert.deepEqual(await there(`/tunnel_sessions/${session.id}`), [true, true, true])
    await tunnel.close()
    await until('the tunnel is gone', async () => (await there(`/tunnels/${id}`)).every((isThere) => !isThere))
    assert.deepEqual(await there(`/tunnel_sessions/${session.id}`), [true, true, true])
    await agent.close()
    await until('the session is gone', async () =>
      (await there(`/tunnel_sessions/${session.id}`)).every((isThere) => !isThere),
    )
  })

  test('pass commands to an agent at another node', async (t) => {
    const { nodes, caFile } = cluster()
    const { address } = await web(t)
    const agent = await startAgent(t, {
      ...{ server: nodes[0].server.agents, caFile, authtoken: AUTHTOKEN, metadata: 'commanded' },
      tunnels: { web: { addr: address, domain: 'commanded.example.com' } },
    })
    const find = async (node: ClusterNode): Promise<Json> =>
      (await listed(node, 'tunnel_sessions')).find(({ metadata }) => metadata === 'commanded')
    const first = await find(nodes[1])
    const update = await nodes[1].api.send('POST', `/tunnel_sessions/${first.id}/update`)
    assert.deepEqual([update.status, update.body.error_code], [400, 'ERR_COMMAND_UNSUPPORTED'])
    assert.match(update.body.msg, /no source of updates/)

    assert.equal((await nodes[1].api.send('POST', `/tunnel_sessions/${first.id}/restart`)).status, 204)
    const second = await until('the agent is back', async () => {
      const found = await find(nodes[2])
      return found !== undefined && found.id !== first.id && found
    })
    await until('its tunnel is back', async () => {
      const url = nodes[2].at('https://commanded.example.com')
      return (await visit(url, cluster()).catch(() => undefined))?.text === 'hello'
    })
    await nodes[1].api.refused('ERR_NOT_FOUND', 'POST', `/tunnel_sessions/${first.id}/stop`)
    assert.equal((await nodes[2].api.send('POST', `/tunnel_sessions/${second.id}/stop`)).status, 204)
    assert.equal((await agent.ended).code, 0)
    const nobody = `ts_${'1'.repeat(second.id.length - 3)}`
    for (const { api } of nodes) await api.refused('ERR_NOT_FOUND', 'POST', `/tunnel_sessions/${nobody}/stop`)
  })

  test('end the sessions of a credential that is deleted at another node', async (t) => {
    const { nodes } = cluster()
    const credential = await nodes[0].api.create('/credentials')
    const events: ConnectionEvent[] = []
    const agent = await agentAt(t, cluster(), nodes[1], {
      authtoken: credential.token,
      session_metadata: 'short-lived',
      onEvent: (event) => void events.push(event),
    })
    const { url } = await agent.forward({ addr: (await web(t)).port })
    assert.equal((await visit(nodes[2].at(url), cluster())).text, 'hello')
    await nodes[0].api.delete(`/credentials/${credential.id}`)
    await until('the agent is told', () => events.some(({ type }) => type === 'offline'))
    for (const node of nodes) {
      const isGone = async (): Promise<boolean> =>
        (await listed(node, 'tunnel_sessions')).every(({ metadata }) => metadata !== 'short-lived')
      await until(`it is gone at ${node.name}`, isGone)
      assert.notEqual((await visit(node.at(url), cluster()).catch(() => undefined))?.text, 'hello')
    }
  })

  test('refuse a login that is revoked at another node', async (t) => {
    const { nodes, databaseUrl, keyFile } = cluster()
    const logins = await openLogins({ databaseUrl, dataDir: dirname(keyFile) })
    t.after(() => logins.close())
    await logins.logIn({ secret: 'a' })
    assert.equal(await logins.isLoggedIn('a'), true)
    const sessions = async ({ api }: ClusterNode): Promise<Json[]> =>
      (await api.get('/app/sessions')).application_sessions
    const [login] = await sessions(nodes[1])
    for (const node of nodes) assert.deepEqual(ids(await sessions(node)), [login.id])
    await nodes[0].api.delete(`/app/sessions/${login.id}`)
    await until('it does not count', async () => !(await logins.isLoggedIn('a')))
    for (const node of nodes) assert.deepEqual(await sessions(node), [])
  })

  test('end the agents of a bot that is deleted at another node', async (t) => {
    const { nodes } = cluster()
    const bot = await nodes[2].api.create('/bot_users', { name: 'robot' })
    const credential = await nodes[2].api.create('/credentials', { owner_id: bot.id })
    const agent = await agentAt(t, cluster(), nodes[0], { authtoken: credential.token })
    const { id } = await agent.forward({ addr: (await web(t)).port })
    await until('it is listed', async () => (await nodes[1].api.send('GET', `/tunnels/${id}`)).status === 200)
    await nodes[2].api.update(`/bot_users/${bot.id}`, { active: false })
    await until('it is gone', async () => (await nodes[1].api.send('GET', `/tunnels/${id}`)).status === 404)
  })
}
