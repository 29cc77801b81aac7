/** A node that is stopped while its control process stands still: its agents move all the same, and visitors do not notice. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { childPids, childrenOf } from '../../chaos/children.ts'
import { agentAt, listed, startCluster } from '../../support/cluster.ts'
import { Crowd } from '../../support/crowd.ts'
import { eachStore } from '../../support/databases.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { answerOf, beginVisit, dialTcp, visit } from '../../support/visitor.ts'

const WORKERS = 2

/** Requests of all visitors of a node per second. */
const PER_SECOND = 60

eachStore(
  (store) => {
    test('a node stops whose control process stands still: agents move, answers end, and no request fails', async (t) => {
      const closers: (() => unknown)[] = []
      const owner: Owner = { after: (close) => void closers.unshift(close) }
      t.after(async () => {
        for (const close of closers) await close()
      })
      // Longer than the test: an agent that is cut after the drain time does not make it pass.
      const flags = { 'drain-timeout': '10m', workers: String(WORKERS) }
      const cluster = await startCluster(owner, { databaseUrl: await store.url(), flags })
      const [stopping, other, third] = cluster.nodes
      assert.equal((await third.server.stop()).code, 0)
      const waiting: ServerResponse[] = []
      const service = await httpUpstream(owner, ({ url }, response) => {
        if (url !== '/long') return response.end('served')
        response.write('begun ')
        waiting.push(response)
      })
      const echo = await tcpUpstream(owner)
      const agent = await agentAt(owner, cluster, stopping)
      const { url } = await agent.forward({ addr: service.port })
      const { url: tcp } = await agent.forward({ addr: echo.port, proto: 'tcp' })
      const crowds: Crowd[] = []
      for (const node of [stopping, other]) {
        await until('it is served', async () => (await visit(node.at(url), cluster)).status === 200)
        const isOpen = () => dialTcp(node.at(tcp)).catch(() => undefined)
        await until('the port is open', isOpen).then((it) => it.destroy())
        const crowd = new Crowd(node, { webs: [url], tcps: [tcp] }, { ca: cluster.ca, perSecond: PER_SECOND })
        owner.after(() => crowd.stop())
        crowds.push(crowd)
      }
      const settle = async (): Promise<void> => {
        await Promise.all(crowds.map((crowd) => crowd.goOn()))
        assert.deepEqual(
          crowds.flatMap(({ failed }) => failed),
          [],
        )
      }
      const long = [stopping, other].map((node) => answerOf(beginVisit(node.at(url), cluster, { path: '/long' })))
      await until('the long answers have begun', () => waiting.length === long.length)
      await settle()

      const supervisor = stopping.server.child.pid ?? 0
      const control = childrenOf(supervisor, WORKERS)?.control ?? assert.fail('it has no control process')
      process.kill(control, 'SIGSTOP')
      owner.after(() => {
        for (const pid of childPids(supervisor)) process.kill(pid, 'SIGCONT')
      })
      const ended = stopping.server.stop()
      // Like a balancer to which `/readyz` does not answer: it sends no new visitors there.
      const [left] = crowds.splice(0, 1)
      await left?.stop()
      assert.deepEqual(left?.failed, [])
      const isThere = async () => (await listed(other, 'tunnel_sessions')).some(({ region }) => region === 'r2')
      await until(
        'the agent is at the other node',
        async () => (await isThere()) || (crowds[0]?.failed.length ?? 0) > 0,
      )
      await settle()
      for (const response of waiting) response.end('and finished')
      for (const answer of await Promise.all(long)) assert.equal(answer.text, 'begun and finished')
      await until('its workers have ended', () => childPids(supervisor).every((pid) => pid === control))
      await settle()
      process.kill(control, 'SIGCONT')
      assert.equal((await ended).code, 0)
      await settle()
      t.diagnostic(`requests served: ${(left?.served ?? 0) + (crowds[0]?.served ?? 0)}`)
    })
  },
  ['postgres'],
)
