/** Three nodes whose database fails over to a standby: what both had continues, what only the first had is given up. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ConnectionEvent } from '../../src/agent/library.ts'
import { agentAt, type ClusterNode, listed, startCluster, type TestCluster } from '../support/cluster.ts'
import { type Postgres, startPostgres } from '../support/postgres.ts'
import { readAll } from '../support/read-all.ts'
import { type Standby, startStandby } from '../support/standby.ts'
import { openGate, type TcpGate } from '../support/tcp-gate.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { dialTcp, visit } from '../support/visitor.ts'

/** An agent with one name and one port; both answer its text. */
interface Served {
  readonly text: string
  readonly urls: readonly string[]
  readonly tunnels: readonly string[]
  readonly events: readonly ConnectionEvent[]
}

describe('a database that fails over', () => {
  const closers: (() => unknown)[] = []
  const owner: Owner = { after: (close) => void closers.unshift(close) }
  let primary: Postgres
  let standby: Standby
  /** Gates between the nodes and the database, and between the standby and the primary. */
  let way: TcpGate
  let replication: TcpGate
  let cluster: TestCluster
  let nodes: readonly ClusterNode[]
  before(async () => {
    primary = await startPostgres({ durable: true })
    owner.after(() => primary.stop())
    const databaseUrl = await primary.createDatabase()
    way = await openGate(portOf(databaseUrl))
    replication = await openGate(portOf(databaseUrl))
    for (const gate of [way, replication]) owner.after(() => gate.shut())
    standby = await startStandby({ ...primary, url: atPort(primary.url, replication.port) })
    owner.after(() => standby.stop())
    cluster = await startCluster(owner, { databaseUrl: atPort(databaseUrl, way.port) })
    nodes = cluster.nodes
  })
  after(async () => {
    for (const close of closers) await close()
  })

  const serveAt = async (node: ClusterNode, text: string): Promise<Served> => {
    const web = await httpUpstream(owner, (_, response) => response.end(text))
    const say = await tcpUpstream(owner, (socket) => socket.end(text))
    const events: ConnectionEvent[] = []
    const agent = await agentAt(owner, cluster, node, { onEvent: (event) => void events.push(event) })
    const named = await agent.forward({ addr: web.port, domain: `${text}.example.com` })
    const numbered = await agent.forward({ addr: say.port, proto: 'tcp' })
    return { text, urls: [named.url, numbered.url], tunnels: [named.id, numbered.id], events }
  }
  const heard = async (node: ClusterNode, url: string): Promise<string> => {
    try {
      if (!url.startsWith('tcp:')) return (await visit(node.at(url), cluster)).text
      const socket = await dialTcp(node.at(url))
      const text = (await readAll(socket)).toString()
      socket.destroy()
      return text
    } catch (error) {
      return String(error)
    }
  }
  const servedEverywhere = async (...all: readonly Served[]): Promise<void> => {
    for (const node of nodes) {
      for (const { text, urls } of all) {
        for (const url of urls) {
          await until(`${text} is served at ${node.name}`, async () => (await heard(node, url)) === text)
        }
      }
    }
  }
  /** Each node writes a policy, and all read it. */
  const writtenEverywhere = async (): Promise<void> => {
    for (const { name, api } of nodes) {
      const policy = await until(`${name} writes`, async () => {
        const answer = await api.send('POST', '/ip_policies', { body: { description: name } })
        return answer.status === 201 && answer.body
      })
      for (const other of nodes) assert.equal((await other.api.get(`/ip_policies/${policy.id}`)).description, name)
    }
  }
  const edgeOf = async ({ api }: ClusterNode, host: string): Promise<string> => {
    const backend = await api.create('/backends/http_response', { body: host, status_code: 200 })
    const edge = await api.create('/edges/https', { hostports: [`${host}:443`] })
    const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
    await api.create(`/edges/https/${edge.id}/routes`, route)
    return edge.id
  }

  test('can be read until the standby is promoted, and then written again', { timeout: 600_000 }, async () => {
    const [first, second, third] = nodes as [ClusterNode, ClusterNode, ClusterNode]
    const early = await Promise.all(nodes.map((node) => serveAt(node, `early-${node.name}`)))
    const kept = await edgeOf(first, 'kept.example.com')
    await servedEverywhere(...early)
    const isThere = async (host: string, at: ClusterNode): Promise<boolean> =>
      (await heard(at, `https://${host}`)) === host
    for (const node of nodes) await until('the edge is served', () => isThere('kept.example.com', node))
    await until('all is written', async () => (await listed(first, 'tunnels')).length === 6)
    await standby.caughtUp()

    // From here on the standby misses all writes: it replicates asynchronously.
    await replication.shut()
    const late = await serveAt(second, 'late')
    const lost = await edgeOf(third, 'lost.example.com')
    for (const node of nodes) await until('the edge is served', () => isThere('lost.example.com', node))
    await servedEverywhere(late)

    await primary.kill()
    way.lead(portOf(standby.url))
    // It can be read, but not written.
    await until('the standby answers', async () => (await first.api.send('GET', `/edges/https/${kept}`)).status === 200)
    const refused = await first.api.send('POST', '/ip_policies', { body: { description: 'refused' } })
    assert.deepEqual([refused.status, refused.body.error_code], [503, 'ERR_STORE_UNAVAILABLE'])
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    await servedEverywhere(...early, late)

    await standby.promote()
    await writtenEverywhere()
    for (const { name, api } of nodes) {
      await until(`${name} knows all nodes`, async () => {
        const { nodes: all } = await api.get('/nodes')
        return all.length === nodes.length && all.every(({ lease }: { lease: number }) => lease > 0)
      })
    }
    // What is online is announced again, even what was announced to the primary only.
    const next = await serveAt(third, 'next')
    const all = [...early, late, next]
    await servedEverywhere(...all)
    for (const node of nodes) {
      const expected = all.flatMap(({ tunnels }) => tunnels).toSorted()
      await until(`${node.name} lists them`, async () => {
        const ids = (await listed(node, 'tunnels')).map(({ id }) => String(id)).toSorted()
        return ids.join() === expected.join()
      })
    }
    // What the standby never had is gone, and no longer served.
    for (const node of nodes) {
      assert.equal((await node.api.send('GET', `/edges/https/${lost}`)).status, 404)
      await until('it is not served any more', async () => !(await isThere('lost.example.com', node)))
      assert.ok(await isThere('kept.example.com', node))
    }
    const { ip_policies: policies } = await first.api.get('/ip_policies')
    assert.ok(!policies.some(({ description }: { description: string }) => description === 'refused'))
    // The feed works from each node to every other.
    for (const node of nodes) {
      const host = `after-${node.name}.example.com`
      await edgeOf(node, host)
      for (const other of nodes) await until('the edge is served', () => isThere(host, other))
    }
    for (const { text, events } of all) {
      assert.ok(!events.some(({ type }) => type === 'offline' || type === 'stopped'), `${text} noticed nothing`)
    }
    for (const { server, name } of nodes) assert.equal(server.child.exitCode, null, name)
  })
})

function portOf(url: string): number {
  return Number(new URL(url).port)
}

function atPort(url: string, port: number): string {
  const at = new URL(url)
  at.port = String(port)
  return at.href
}
