/** Nodes that stop or die while others serve: our agents go to another node, and visitors do not notice when one stops. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { after, before, describe, type TestContext, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { agentAt, type ClusterNode, startCluster, type TestCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { answerOf, beginVisit, dialTcp, visit } from '../../support/visitor.ts'
import { type WayToAsk, waysToAskWeb, wayToAskTcp } from '../../support/ways-to-ask.ts'

/** Between two requests of one visitor, in milliseconds. */
const BETWEEN_MS = 50

/** Requests that every visitor must have had answered after a change before it counts as survived. */
const ENOUGH = 10

/** The name of an edge whose visitors go to a tunnel with labels. */
const SHOP = 'shop.cluster.localhost'

interface Visitor {
  readonly name: string
  served: number
}

/** What is visited at each node. */
interface Visited {
  readonly webs: readonly string[]
  readonly tcp: string
}

/** Visitors of one node, who ask again and again: over new connections and over kept ones. */
class Crowd {
  readonly failed: string[] = []
  readonly #node: ClusterNode
  readonly #visitors: Visitor[] = []
  readonly #running: Promise<void>[]
  #isOver = false

  /** `webs` are visited with every version of HTTP. */
  constructor(node: ClusterNode, { webs, tcp }: Visited, ca: string) {
    this.#node = node
    const ways = webs.flatMap((url) => waysToAskWeb(node.at(url), ca))
    this.#running = [...ways, wayToAskTcp(node.at(tcp), 'served')].map((way) => this.#loop(way))
  }

  /** Resolves when all have been served for a while, or one was not. */
  async goOn(): Promise<void> {
    const enough = this.#visitors.map((visitor) => ({ visitor, served: visitor.served + ENOUGH }))
    const isEnough = (): boolean => enough.every(({ visitor, served }) => visitor.served >= served)
    await until(`visitors of ${this.#node.name} are served`, () => this.failed.length > 0 || isEnough())
  }

  /** Nobody asks any more; what was asked is answered. */
  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }

  async #loop(way: WayToAsk): Promise<void> {
    const { name } = way
    const visitor: Visitor = { name, served: 0 }
    this.#visitors.push(visitor)
    while (!this.#isOver) {
      const { status, text } = await way.ask().catch((error: Error) => ({ status: 0, text: error.message }))
      if (status === 200 && text === 'served') visitor.served++
      else this.failed.push(`${this.#node.name}, ${name}: ${status} ${text.slice(0, 300)}`)
      await pause(BETWEEN_MS)
    }
    way.close()
  }
}

describe('a node among others', () => {
  eachStore(
    (store) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: TestCluster
      let nodes: ClusterNode[]
      before(async () => {
        // Longer than any test waits: who is let go only after this time makes a test fail.
        cluster = await startCluster(owner, { databaseUrl: await store.url(), flags: { 'drain-timeout': '10m' } })
        nodes = [...cluster.nodes]
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** Starts it again, and waits until the others know it. */
      const again = async (index: number): Promise<ClusterNode> => {
        const node = await cluster.start(index + 1)
        nodes[index] = node
        await until('it is known', async () => (await node.api.get('/nodes')).nodes.length === nodes.length)
        return node
      }

      /** The agent serves an edge as the only member of its group. */
      const serveGroup = async (agent: Awaited<ReturnType<typeof agentAt>>, addr: number): Promise<void> => {
        const { api } = nodes[0] as ClusterNode
        await agent.forward({ addr, labels: { app: 'shop' } })
        const backend = await api.create('/backends/tunnel_group', { labels: { app: 'shop' } })
        const edge = await api.create('/edges/https', { hostports: [`${SHOP}:443`] })
        const route = { match_type: 'path_prefix', match: '/', backend: { backend_id: backend.id } }
        await api.create(`/edges/https/${edge.id}/routes`, route)
      }

      /** Stops each node and starts it again, while visitors of an agent's addresses come to the others. */
      const stopEach = async (t: TestContext, { isGrouped }: { readonly isGrouped: boolean }): Promise<void> => {
        const waiting: ServerResponse[] = []
        const service = await httpUpstream(t, ({ url }, response) => {
          if (url !== '/long') return response.end('served')
          response.write('begun ')
          waiting.push(response)
        })
        const echo = await tcpUpstream(t)
        const first = nodes[0] as ClusterNode
        const agent = await agentAt(t, cluster, first)
        const { url } = await agent.forward({ addr: service.port })
        const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
        if (isGrouped) await serveGroup(agent, service.port)
        const visited = { webs: [isGrouped ? `https://${SHOP}` : url], tcp }
        for (const node of nodes) {
          const isOpen = async () => (await visit(node.at(visited.webs[0] ?? ''), cluster)).status === 200
          await until('the address is served', isOpen)
          await until('the port is open', () => dialTcp(node.at(tcp)).catch(() => undefined)).then((it) => it.destroy())
        }
        const crowds = nodes.map((node) => new Crowd(node, visited, cluster.ca))
        t.after(() => Promise.all(crowds.map((crowd) => crowd.stop())))
        const failed = (): string[] => crowds.flatMap((crowd) => crowd.failed)
        const settle = async (): Promise<void> => {
          await Promise.all(crowds.map((crowd) => crowd.goOn()))
          assert.deepEqual(failed(), [])
        }
        await settle()
        for (const [index, node] of nodes.entries()) {
          // As a load balancer does that sees a node stop: nobody new is sent there.
          const [left] = crowds.splice(index, 1)
          const other = nodes[(index + 1) % nodes.length] as ClusterNode
          const long = answerOf(beginVisit(other.at(url), cluster, { path: '/long' }))
          await until('the long answer has begun', () => waiting.length === 1)
          const ended = node.server.stop()
          await left?.stop()
          assert.deepEqual(left?.failed, [])
          await settle()
          waiting.pop()?.end('and finished')
          assert.equal((await long).text, 'begun and finished')
          assert.equal((await ended).code, 0)
          await settle()
          crowds.splice(index, 0, new Crowd(await again(index), visited, cluster.ca))
          await settle()
        }
      }

      test('stops while our agents go elsewhere, and no request fails', (t) => stopEach(t, { isGrouped: false }))

      test('dies, and an agent of ours comes back at another with the same URL', async (t) => {
        const service = await httpUpstream(t, (_, response) => response.end('served'))
        const [first, second, third] = nodes as [ClusterNode, ClusterNode, ClusterNode]
        const agent = await agentAt(t, cluster, first)
        const { url } = await agent.forward({ addr: service.port })
        first.server.kill('SIGKILL')
        await first.server.ended
        for (const node of [second, third]) {
          const isServed = async (): Promise<boolean> => (await visit(node.at(url), cluster)).status === 200
          await until('it is served again', isServed, { limitMs: 30_000 })
        }
        await again(0)
      })

      test('stops while members of a group go elsewhere, and no request fails', (t) => stopEach(t, { isGrouped: true }))
    },
    ['postgres'],
  )
})
