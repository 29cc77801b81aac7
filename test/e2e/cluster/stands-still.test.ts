/** A node whose control process stands still, or which is gone: who gets the names of its agents (D56). */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { queryDatabase } from '../../support/change-database.ts'
import { AUTHTOKEN } from '../../support/cluster.ts'
import { eachStore } from '../../support/databases.ts'
import { agentWith, askFor, isServedAt, signalTo, startTwoNodes, type TwoNodes } from '../../support/two-nodes.ts'
import { until } from '../../support/until.ts'
import type { Owner } from '../../support/upstream.ts'

/** The vendor's number for an address that is online. */
const ALREADY_ONLINE = 'refused: 334'

describe('a node that has lost its lease', () => {
  eachStore(
    (stores) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      let databaseUrl: string
      let world: TwoNodes
      before(async () => {
        databaseUrl = await stores.url()
        world = await startTwoNodes(owner, { databaseUrl, workers: 1 })
      })
      after(async () => {
        for (const close of closers) await close()
      })

      /** As after ten seconds without a renewal. */
      const expire = (): Promise<unknown> =>
        queryDatabase(databaseUrl, "update nodes set expires_at = 1 where name = 'node-1'")
      const nodesAt = async (): Promise<number> => (await world.nodes[1].api.get('/nodes')).nodes.length
      /** Its control process stands still until the end of the test, and its lease is lost. */
      const freeze = async (t: TestContext): Promise<() => void> => {
        const [home] = world.nodes
        const pid = home.control()
        signalTo(pid, 'SIGSTOP')
        t.after(() => signalTo(pid, 'SIGCONT'))
        await expire()
        return () => signalTo(pid, 'SIGCONT')
      }

      test('and whose control process stands still keeps the names of its agents from other owners, and its visitors', async (t) => {
        const [home, away] = world.nodes
        const name = 'kept.example.com'
        const { lost } = await agentWith(t, world, home, [name])
        await until('both nodes serve it', () => isServedAt(away, name, world))
        const thaw = await freeze(t)
        assert.equal(await nodesAt(), 1, 'it is not listed')
        // Until the other node has heard of the lost lease, it waits for the process that stands still.
        await until('another owner is refused', async () => {
          const answer = await askFor(away, name, world.stranger)
          assert.notEqual(answer, 'got')
          return answer === ALREADY_ONLINE
        })
        for (let i = 0; i < 3; i++) assert.equal(await askFor(away, name, world.stranger), ALREADY_ONLINE)
        assert.equal(await isServedAt(away, name, world), true)
        assert.equal(await isServedAt(home, name, world), true)
        thaw()
        await until('it is listed again', async () => (await nodesAt()) === 2)
        assert.equal(await askFor(away, name, world.stranger), ALREADY_ONLINE)
        for (const node of world.nodes) await until('it is served', () => isServedAt(node, name, world))
        assert.deepEqual(lost, [])
      })

      test('and whose control process stands still lets another agent of the same owner have a name', async (t) => {
        const [home, away] = world.nodes
        const name = 'own.example.com'
        const { lost } = await agentWith(t, world, home, [name])
        await until('both nodes serve it', () => isServedAt(away, name, world))
        const thaw = await freeze(t)
        assert.equal(await askFor(away, name, AUTHTOKEN), 'got')
        const { lost: none } = await agentWith(t, world, away, [name])
        thaw()
        await until('the first agent is told', () => lost.length > 0)
        for (const node of world.nodes) await until('the second is served', () => isServedAt(node, name, world))
        assert.deepEqual(none, [])
      })

      // Last, since the node stays away.
      test('because all its processes ended has no names any more', async (t) => {
        const [home, away] = world.nodes
        const name = 'gone.example.com'
        const { agent } = await agentWith(t, world, home, [name])
        await until('both nodes serve it', () => isServedAt(away, name, world))
        for (const pid of home.all()) signalTo(pid, 'SIGKILL')
        await home.server.ended
        await agent.close()
        await expire()
        await until('another owner gets it', async () => (await askFor(away, name, world.stranger)) === 'got')
      })
    },
    ['postgres'],
  )
})
