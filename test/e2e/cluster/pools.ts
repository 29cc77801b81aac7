/** A pool of agents at three nodes: every node serves all of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TunnelOptions } from '../../../src/agent/library.ts'
import { agentAt, type ClusterNode, listed, type TestCluster } from '../../support/cluster.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, visit } from '../../support/visitor.ts'

export function poolTests(cluster: () => TestCluster): void {
  const member = async (by: Owner, node: ClusterNode, options: TunnelOptions) => {
    const web = await httpUpstream(by, (_, response) => response.end(node.name))
    // One tunnel for each agent, so that requests can be counted; by default it would have two, at two nodes.
    const agent = await agentAt(by, cluster(), node, { connections: 1 })
    return { agent, tunnel: await agent.forward({ pooling: true, ...options, addr: web.port }) }
  }
  /** How often each member answered. */
  const counted = async (node: ClusterNode, url: string, times: number) => {
    const answers = new Map<string, number>()
    for (let i = 0; i < times; i++) {
      const { status, text } = await visit(node.at(url), cluster())
      assert.equal(status, 200, text)
      answers.set(text, (answers.get(text) ?? 0) + 1)
    }
    return answers
  }

  test('is served by all members at every node, and by the rest when one goes', async (t) => {
    const domain = 'all.pool.test'
    const members = []
    for (const node of cluster().nodes) members.push(await member(t, node, { domain }))
    const url = members[0]?.tunnel.url ?? ''
    for (const node of cluster().nodes) {
      await until('all are known', async () => (await counted(node, url, 6)).size === 3)
      const answers = await counted(node, url, 40)
      // About half of the requests go to its own member, and a quarter to each of the others.
      for (const [name, times] of answers) {
        assert.ok(name === node.name ? times < 30 : times >= 5, JSON.stringify([...answers]))
      }
      const endpoints = (await listed(node, 'endpoints')).filter(({ hostport }) => hostport.startsWith(domain))
      assert.equal(endpoints.length, 3)
    }
    await members[0]?.agent.close()
    for (const node of cluster().nodes) {
      await until('two are left', async () => (await counted(node, url, 6)).size === 2)
    }
    await members[1]?.agent.close()
    for (const node of cluster().nodes) {
      await until('one is left', async () => (await counted(node, url, 3)).size === 1)
    }
  })

  test('refuses a member at another node that differs', async (t) => {
    const domain = 'differs.pool.test'
    const [first, second] = cluster().nodes
    await member(t, first, { domain })
    await assert.rejects(member(t, second, { domain, basic_auth: ['ada:engine-no-1'] }), /guards/)
    await assert.rejects(member(t, second, { domain, pooling: false }), /already online/)
  })

  test('shares a TCP port at all nodes', async (t) => {
    const [first, second] = cluster().nodes
    const tunnel = async (node: ClusterNode, url?: string) => {
      const say = await tcpUpstream(t, (socket) => socket.end(node.name))
      const agent = await agentAt(t, cluster(), node)
      return agent.forward({ addr: say.port, proto: 'tcp', pooling: true, url })
    }
    const { url } = await tunnel(first)
    await tunnel(second, url)
    for (const node of cluster().nodes) {
      const heard = new Set<string>()
      await until('both were reached', async () => {
        const socket = await dialTcp(node.at(url)).catch(() => undefined)
        const text = socket && (await new Promise((resolve) => socket.once('data', resolve).once('close', resolve)))
        if (text instanceof Buffer) heard.add(text.toString())
        return heard.size === 2
      })
    }
  })
}
