/** Three nodes, with clocks ten minutes apart, that lose their database, each other, and a minute of their life. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ConnectionEvent } from '../../src/agent/library.ts'
import { openStore, type Store } from '../../src/control-plane/store/store.ts'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import type { AuthAnswer } from '../../src/link/wire/messages/auth.ts'
import { childPids } from '../chaos/children.ts'
import { AUTHTOKEN, agentAt, type ClusterNode, listed } from '../support/cluster.ts'
import { eachStore } from '../support/databases.ts'
import { type GatedCluster, type GatedNode, startGatedCluster } from '../support/gated-cluster.ts'
import { readAll } from '../support/read-all.ts'
import { visitsOfAll } from '../support/test-workers.ts'
import { until } from '../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../support/upstream.ts'
import { dialTcp, visit } from '../support/visitor.ts'

const MINUTE_MS = 60_000

/** How long a visitor waits for the 503 when a node is unreachable: 3 s (D57), and more for a busy machine. */
const UNREACHABLE_MS = 4500

/** An agent with one name, over HTTPS and HTTP, and one port; everything that it serves answers its text. */
interface Served {
  readonly text: string
  readonly urls: readonly string[]
  readonly events: ConnectionEvent[]
  /** The ids of its tunnels. */
  readonly tunnels: readonly string[]
}

describe('bad days of three nodes', () => {
  eachStore(
    (stores) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: GatedCluster
      let nodes: readonly GatedNode[]
      let store: Store
      before(async () => {
        const databaseUrl = await stores.url()
        cluster = await startGatedCluster(owner, { databaseUrl, clocks: [0, 5 * MINUTE_MS, -5 * MINUTE_MS] })
        nodes = cluster.nodes
        store = await openStore(databaseUrl)
        owner.after(() => store.close())
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** Starts an agent that is connected through the gate of its node. */
      const serveAt = async (
        by: Owner,
        node: GatedNode,
        text: string,
        { domain = `${text}.example.com`, port = cluster.tcpPort(), wait = false } = {},
      ): Promise<Served> => {
        const web = await httpUpstream(by, (_, response) => response.end(text))
        const say = await tcpUpstream(by, (socket) => socket.end(text))
        const events: ConnectionEvent[] = []
        const onEvent = (event: ConnectionEvent): void => void events.push(event)
        const agent = await agentAt(by, cluster, node, { server: node.agentsGate, onEvent, wait })
        const named = await agent.forward({ addr: web.port, domain, schemes: ['http', 'https'] })
        const numbered = await agent.forward({ addr: say.port, proto: 'tcp', remote_addr: `tcp.example.com:${port}` })
        return { text, urls: [...named.urls, numbered.url], events, tunnels: [named.id, numbered.id] }
      }

      /** What a visitor gets: a text, or an error code. */
      const visited = async (node: ClusterNode, url: string): Promise<string> => {
        try {
          if (url.startsWith('tcp:')) {
            const socket = await dialTcp(node.at(url))
            const bytes = await readAll(socket)
            // The socket's own side is still open, and would keep this process from ending.
            socket.destroy()
            return bytes.toString()
          }
          const { status, text, headers } = await visit(node.at(url), cluster)
          return status === 200 ? text : String(headers['postern-error-code'] ?? status)
        } catch (error) {
          return String((error as NodeJS.ErrnoException).code)
        }
      }
      const heard = (node: ClusterNode, { urls }: Pick<Served, 'urls'>): Promise<string[]> =>
        Promise.all(urls.map((url) => visited(node, url)))
      /** Asserts that every visitor is served at once. */
      const servedAt = async (at: readonly ClusterNode[], ...all: readonly Served[]): Promise<void> => {
        for (const node of at) {
          for (const served of all) {
            const expected = served.urls.map(() => served.text)
            assert.deepEqual(await heard(node, served), expected, `${served.text} at ${node.name}`)
          }
        }
      }
      const willBeServedAt = async (at: readonly ClusterNode[], ...all: readonly Served[]): Promise<void> => {
        for (const node of at) {
          for (const served of all) {
            let last: readonly string[] = []
            const isServed = async (): Promise<boolean> => {
              // Each worker finds out by itself who holds an address.
              for (let i = 0; i < visitsOfAll(); i++) {
                last = await heard(node, served)
                if (!last.every((text) => text === served.text)) return false
              }
              return true
            }
            await until(`${served.text} at ${node.name}`, isServed).catch((error: Error) =>
              assert.fail(`${error.message}, but ${last.join()}`),
            )
          }
        }
      }
      const isBack = ({ events }: Served): boolean => {
        const last = (type: ConnectionEvent['type']): number => events.findLastIndex((event) => event.type === type)
        return last('offline') >= 0 && last('online') > last('offline')
      }
      /** Names of the nodes with a valid lease, by the database's clock. */
      const leased = async (): Promise<string[]> =>
        (await store.read(({ online }) => online.nodes())).map(({ name }) => name)
      const loseLease = (...names: readonly string[]): Promise<true> =>
        until('leases have run out', async () => !(await leased()).some((name) => names.includes(name)))
      /** The nodes that hold each address of an agent, by the stored rows of all nodes. */
      const holdersOf = async ({ urls }: Served): Promise<string[]> => {
        const places = urls.map((url) => {
          const { protocol, hostname, port } = new URL(url)
          return protocol === 'tcp:' ? `:${port}` : `${protocol === 'http:' ? 'plain' : 'secure'}:${hostname}`
        })
        const [rows, all] = await store.read(async ({ online }) => [await online.holders(places), await online.nodes()])
        return rows.flatMap(({ holders }) =>
          holders.map(({ nodeId }) => all.find(({ id }) => id === nodeId)?.name ?? ''),
        )
      }
      /** Waits until every node lists these tunnels, and no others. */
      const listedEverywhere = async (...all: readonly Served[]): Promise<void> => {
        const expected = all.flatMap(({ tunnels }) => tunnels)
        for (const node of nodes) {
          await until(`${node.name} lists them`, async () => {
            const ids: string[] = (await listed(node, 'tunnels')).map(({ id }) => id)
            return expected.every((id) => ids.includes(id)) && ids.length === all.length * 3
          })
        }
      }

      test('clocks differ: leases, sessions and logins under way move between nodes', async (t) => {
        for (const { api } of nodes) {
          const { nodes: all } = await api.get('/nodes')
          assert.deepEqual(
            all.map(({ lease }: { lease: number }) => lease > 0 && lease <= 10),
            [true, true, true],
          )
        }
        const all = await Promise.all(nodes.map((node) => serveAt(t, node, `clock-${node.name}`)))
        await willBeServedAt(nodes, ...all)
        await listedEverywhere(...all)

        // An agent moves from a node that is ahead to one that is behind, and back.
        const [, ahead, behind] = nodes as [GatedNode, GatedNode, GatedNode]
        const hostname = 'wanderer.example.com'
        let former: AuthAnswer | undefined
        let token: Secret | undefined
        for (const node of [ahead, behind, ahead]) {
          const agent = new TestAgent({ port: node.gates.agents.port })
          t.after(() => agent.leave())
          const { cookie = new Secret(''), clientId = '' } = former ?? {}
          const auth = await agent.authenticate({ authtoken: new Secret(AUTHTOKEN), cookie, clientId })
          assert.ok('sessionId' in auth, JSON.stringify(auth))
          if (former) assert.equal(auth.sessionId, former.sessionId)
          const bound = await agent.bind({ opts: { Hostname: hostname }, ...(token && { token }) })
          assert.ok('tunnelId' in bound, JSON.stringify(bound))
          former = auth
          token = bound.token
        }

        // A visitor begins a login at one node, and comes back from the provider at another whose clock differs.
        const provider = { gitlab: { client_id: 'app', client_secret: 'hush-hush' } }
        const edge = await ahead.api.create('/edges/https', { hostports: ['login.example.com:443'] })
        await ahead.api.create(`/edges/https/${edge.id}/routes`, {
          match_type: 'path_prefix',
          match: '/',
          oauth: { provider },
        })
        const url = 'https://login.example.com'
        for (const [from, to] of [
          [behind, ahead],
          [ahead, behind],
        ] as const) {
          const begin = async (at: ClusterNode) => {
            const answer = await visit(at.at(url), cluster)
            return answer.status === 302 && answer
          }
          for (let i = 0; i < visitsOfAll(); i++) await until('it is served', () => begin(to))
          const begun = await until('it is served', () => begin(from))
          const asked = new URL(String(begun.headers.location)).searchParams
          const back = new URL(asked.get('redirect_uri') ?? '')
          const cookie = String(begun.headers['set-cookie']).replace(/;.*/, '')
          const query = new URLSearchParams({ state: asked.get('state') ?? '', error: 'access_denied' })
          const denied = await visit(to.at(url), cluster, {
            path: `${back.pathname}?${query.toString()}`,
            headers: { cookie, host: back.host },
          })
          assert.equal(denied.headers['postern-error-code'], 'ERR_LOGIN_DENIED')
        }
        await ahead.api.delete(`/edges/https/${edge.id}`)
      })

      test('the database is down: known addresses are served, and nothing is lost when it is back', async (t) => {
        const [first, second, third] = nodes as [GatedNode, GatedNode, GatedNode]
        const all = await Promise.all(nodes.map((node) => serveAt(t, node, `away-${node.name}`)))
        const [one, two, three] = all as [Served, Served, Served]
        await willBeServedAt(nodes, ...all)
        const sessions = all.map(({ events }) =>
          events.flatMap((event) => (event.type === 'online' ? event.session : [])),
        )
        // To one node it refuses connections, to the others it is silent.
        await first.gates.database.shut()
        second.gates.database.hush()
        third.gates.database.hush()
        t.after(() => first.gates.database.open().catch(() => {}))
        t.after(() => [second, third].map(({ gates }) => gates.database.speak()))
        await servedAt(nodes, ...all)
        const write = await first.api.send('POST', '/ip_policies', { body: { description: 'refused' } })
        assert.deepEqual([write.status, write.body.error_code], [503, 'ERR_STORE_UNAVAILABLE'])

        // Agents whose connection broke come back to their own node; new ones must wait.
        const stranger = serveAt(t, first, 'away-stranger', { wait: true })
        let isOnline = false
        void stranger.then(() => {
          isOnline = true
        })
        for (const { gates } of nodes) await gates.agents.shut()
        for (const { gates } of [first, second]) await gates.agents.open()
        t.after(() => third.gates.agents.open().catch(() => {}))
        // Other nodes reach them by what they knew before.
        await willBeServedAt(nodes, one, two)
        await loseLease(...nodes.map(({ name }) => name))
        await servedAt([first], one)
        await servedAt([second], two)
        assert.deepEqual([isBack(one), isBack(two), isBack(three), isOnline], [true, true, false, false])

        await first.gates.database.open()
        for (const { gates } of [second, third]) gates.database.speak()
        await until('all nodes are back', async () => (await leased()).length === nodes.length)
        await until('the third agent is back', () => isBack(three))
        const late = await stranger
        await willBeServedAt(nodes, ...all, late)
        await listedEverywhere(...all, late)
        for (const [i, { events, text }] of all.entries()) {
          const [session, ...others] = new Set([
            ...(sessions[i] ?? []),
            ...events.flatMap((event) => (event.type === 'online' ? event.session : [])),
          ])
          assert.ok(session !== undefined && others.length === 0, `${text} has its former session`)
          assert.ok(!events.some(({ type }) => type === 'stopped'), text)
        }
        for (const each of [...all, late]) assert.equal((await holdersOf(each)).length, 3, each.text)
        const { ip_policies: policies } = await third.api.get('/ip_policies')
        assert.deepEqual(policies, [], 'the refused write is not stored')
        // Writes and the feed work again, from each node to every other.
        for (const node of nodes) {
          const policy = await until('it is written', async () => {
            const answer = await node.api.send('POST', '/ip_policies', { body: { description: node.name } })
            return answer.status === 201 && answer.body
          })
          for (const { api } of nodes) assert.equal((await api.get(`/ip_policies/${policy.id}`)).description, node.name)
        }
      })

      test('a node is cut off from the database: it gives up what others hold by the end', async (t) => {
        const [first, second, cut] = nodes as [GatedNode, GatedNode, GatedNode]
        const port = cluster.tcpPort()
        const domain = 'cut.example.com'
        const loser = await serveAt(t, cut, 'cut-loser', { domain, port })
        const keeper = await serveAt(t, cut, 'cut-keeper')
        const other = await serveAt(t, first, 'cut-other')
        await willBeServedAt(nodes, loser, keeper, other)
        await cut.gates.database.shut()
        t.after(() => cut.gates.database.open().catch(() => {}))
        await loseLease(cut.name)
        await servedAt([cut], loser, keeper, other)
        await until('the others know', async () => (await first.api.get('/nodes')).nodes.length === 2)
        const winner = await serveAt(t, first, 'cut-winner', { domain, port })
        await willBeServedAt([first, second], winner)
        await servedAt([cut], loser, keeper, other)

        await cut.gates.database.open()
        const stopped = (): string[] => loser.events.flatMap((event) => (event.type === 'stopped' ? event.url : []))
        await until('its agent is told', () => stopped().length === loser.urls.length)
        assert.deepEqual(stopped().toSorted(), loser.urls.toSorted())
        await willBeServedAt(nodes, winner, keeper, other)
        assert.deepEqual(
          keeper.events.map(({ type }) => type),
          ['online'],
        )
        assert.deepEqual(await holdersOf(winner), [first.name, first.name, first.name])
        assert.deepEqual(await holdersOf(keeper), [cut.name, cut.name, cut.name])
        await listedEverywhere(winner, keeper, other)
      })

      test('a node is frozen: its agents have moved elsewhere when it is back', async (t) => {
        const [first, frozen, third] = nodes as [GatedNode, GatedNode, GatedNode]
        const mover = await serveAt(t, frozen, 'frozen-mover')
        const other = await serveAt(t, first, 'frozen-other')
        await willBeServedAt(nodes, mover, other)
        const { pid = 0 } = frozen.server.child
        const signal = (name: NodeJS.Signals): void => {
          for (const each of [pid, ...childPids(pid)]) process.kill(each, name)
        }
        signal('SIGSTOP')
        t.after(() => signal('SIGCONT'))
        await frozen.gates.agents.shut()
        t.after(() => frozen.gates.agents.open().catch(() => {}))
        await until('the agent has moved elsewhere', () => isBack(mover))
        await willBeServedAt([first, third], mover, other)
        await loseLease(frozen.name)
        await servedAt([first, third], mover, other)

        signal('SIGCONT')
        await willBeServedAt(nodes, mover, other)
        await until('it has its lease', async () => (await leased()).length === nodes.length)
        await servedAt(nodes, mover, other)
        const holders = await holdersOf(mover)
        assert.ok(holders.length === 3 && !holders.includes(frozen.name), holders.join())
        await listedEverywhere(mover, other)
        assert.ok(!mover.events.some(({ type }) => type === 'stopped'))
        await frozen.gates.agents.open()
        await willBeServedAt(nodes, await serveAt(t, frozen, 'frozen-again'))
      })

      for (const how of ['refuse', 'silent'] as const) {
        test(`nodes are cut off from each other (${how}): visitors get an error until it heals`, async (t) => {
          const [first, second, third] = nodes as [GatedNode, GatedNode, GatedNode]
          const near = await serveAt(t, first, `split-${how}-near`)
          const far = await serveAt(t, third, `split-${how}-far`)
          await willBeServedAt(nodes, near, far)
          const { others } = third.gates
          if (how === 'refuse') await others.shut()
          else others.hush()
          t.after(() => (how === 'refuse' ? others.open().catch(() => {}) : others.speak()))
          for (const node of [first, second]) {
            const began = performance.now()
            assert.deepEqual(
              await heard(node, far),
              ['ERR_NODE_UNREACHABLE', 'ERR_NODE_UNREACHABLE', 'ECONNRESET'],
              node.name,
            )
            assert.ok(performance.now() - began < UNREACHABLE_MS, 'the error comes in time')
          }
          const { status } = await visit(first.at(far.urls[0] ?? ''), cluster)
          assert.equal(status, 503)
          // Other addresses are not affected.
          await servedAt(nodes, near)
          await servedAt([third], far)
          if (how === 'refuse') await others.open()
          else others.speak()
          await willBeServedAt(nodes, near, far)
        })
      }

      test('nothing is left over', async () => {
        for (const node of nodes) {
          await until(`no agent is online at ${node.name}`, async () => {
            const kinds = ['tunnel_sessions', 'tunnels', 'endpoints'] as const
            return (await Promise.all(kinds.map((kind) => listed(node, kind)))).every((list) => list.length === 0)
          })
        }
      })
    },
    ['postgres'],
  )
})
