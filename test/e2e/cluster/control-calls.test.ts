/** Control planes call each other past the data planes of the caller, and are told in time of one that is not there. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Children, childPids, childrenOf } from '../../chaos/children.ts'
import type { Json } from '../../support/api-client.ts'
import { agentAt, type ClusterNode, startCluster, type TestCluster } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'

/** How long a call between nodes may take, and how long until its answer is here, in milliseconds. */
const CALL_MS = 12_000
const SLACK_MS = 5000

/** What a node answers whose agent is part of this test, which takes no commands. */
const ANSWERED = 'ERR_COMMAND_UNSUPPORTED'

const supervisor = ({ server }: ClusterNode): number => server.child.pid ?? assert.fail()

/** Has processes stand still until the test ends, or is done with them. */
function freeze(owner: Owner, pids: readonly number[]): () => void {
  const signal = (name: NodeJS.Signals) => {
    for (const pid of pids) process.kill(pid, name)
  }
  signal('SIGSTOP')
  let isFrozen = true
  const thaw = () => {
    if (isFrozen) signal('SIGCONT')
    isFrozen = false
  }
  owner.after(thaw)
  return thaw
}

describe('control planes of nodes whose workers are processes', () => {
  eachStore(
    (store) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let cluster: TestCluster
      before(async () => {
        cluster = await startCluster(owner, { databaseUrl: await store.url(), flags: { workers: '1' } })
      })
      after(async () => {
        for (const close of closers) await close()
      })

      const children = (node: ClusterNode): Promise<Children> =>
        until(`${node.name} has its processes`, () => childrenOf(supervisor(node), 1) ?? false)

      /** An agent at a node, with its session as the API lists it there. */
      const agentOf = async (t: Owner, node: ClusterNode) => {
        const { port } = await httpUpstream(t, (_, response) => response.end('hello'))
        const agent = await agentAt(t, cluster, node)
        const { url, id } = await agent.forward({ addr: port })
        const tunnel = await until('it is listed', async () =>
          (await node.api.get('/tunnels')).tunnels.find((each: Json) => each.id === id),
        )
        return { agent, url, sessionId: tunnel.tunnel_session.id as string }
      }
      /** Sends a command to an agent, and gives the code of the error that is answered. */
      const commanded = async ({ api }: ClusterNode, sessionId: string): Promise<string> =>
        (await api.send('POST', `/tunnel_sessions/${sessionId}/stop`, { body: {} })).body.error_code

      test('answer each other while no data plane of the caller runs', async (t) => {
        const [here, there] = cluster.nodes
        const { url, sessionId } = await agentOf(t, there)
        await visit(there.at(url), cluster, { path: '/seen' })
        const { workers } = await children(here)
        freeze(t, workers)
        const found = await until('its exchange is listed', async () => {
          const { exchanges } = await here.api.get('/exchanges?path=/seen')
          return exchanges.length > 0 && exchanges
        })
        assert.equal(found[0].node, (await there.api.get('/exchanges?path=/seen')).exchanges[0].node)
        assert.equal((await here.api.get(`/exchanges/${found[0].id}`)).path, '/seen')
        assert.equal(await commanded(here, sessionId), ANSWERED)
      })

      test('call again when the control process that they called is replaced', async (t) => {
        const [here, there] = cluster.nodes
        const { sessionId } = await agentOf(t, there)
        const { control } = await children(there)
        process.kill(control, 'SIGKILL')
        assert.equal(await commanded(here, sessionId), ANSWERED)
        assert.notEqual((await children(there)).control, control)
      })

      for (const what of ['a control process', 'a node']) {
        test(`are told in time of ${what} that stands still`, async (t) => {
          const [here, there] = cluster.nodes
          const { sessionId } = await agentOf(t, there)
          const { control } = await children(there)
          // The row of its session counts as long as the lease of its node.
          const thaw = freeze(t, what === 'a node' ? [supervisor(there), ...childPids(supervisor(there))] : [control])
          const begun = performance.now()
          assert.equal(await commanded(here, sessionId), 'ERR_INTERNAL')
          assert.ok(performance.now() - begun < CALL_MS + SLACK_MS)
          thaw()
          await until('it answers again', async () => (await commanded(here, sessionId)) === ANSWERED)
        })
      }
    },
    ['postgres'],
  )
})
