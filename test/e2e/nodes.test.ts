/** The nodes that share a database, as the API and the command line show them to admins. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connect } from 'node:tls'
import { connect as connectAgent } from '../../src/agent/library.ts'
import { run } from '../../src/cli/program.ts'
import { testTerminal } from '../../src/cli/testing/test-terminal.ts'
import { packageVersion } from '../../src/lib/files/package-file.ts'
import { childrenOf } from '../chaos/children.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { serve } from '../support/server-process.ts'
import { until } from '../support/until.ts'

describe('nodes in the API', () => {
  eachStore((store) => {
    let platform: Platform
    const isShared = store.name === 'postgres'
    const nodes = async (): Promise<Json[]> => (await platform.admin.get('/nodes')).nodes

    before(async () => {
      const flags = { node: 'node-1', region: 'eu-1', ...(isShared && { 'agent-address': 'n1.example.com:443' }) }
      platform = await startPlatform({ databaseUrl: await store.url(), flags })
    })
    after(() => platform.stop())

    test('a node that does not share its database is listed alone', async () => {
      const [node, ...others] = await nodes()
      assert.deepEqual(others, [])
      const { id, uri, address, since, lease, ...rest } = node
      assert.deepEqual(rest, { name: 'node-1', region: 'eu-1', version: packageVersion(), sessions: 0 })
      assert.match(id, /^nd_[0-9A-Za-z]{27}$/)
      assert.equal(uri, `${platform.url}/nodes/${id}`)
      assert.ok(Date.parse(since) <= Date.now())
      assert.match(address, isShared ? /^127\.0\.0\.1:[1-9]\d+$/ : /^$/)
      if (!isShared) assert.equal(lease, null)
      assert.equal((await platform.admin.get(`/nodes/${id}`)).id, id)
      await platform.admin.refused('ERR_NOT_FOUND', 'GET', `/nodes/nd_${'1'.repeat(27)}`)
      await platform.admin.refused('ERR_NOT_FOUND', 'GET', '/nodes/ts_1')
    })

    test('its sessions are counted', async (t) => {
      const agent = await connectAgent({ server: platform.agents, ca: platform.caFile, authtoken: platform.authtoken })
      t.after(() => agent.close())
      assert.equal((await nodes())[0].sessions, 1)
    })

    test('members are not told the addresses of machines', async () => {
      const { api } = await platform.member()
      await api.refused('ERR_FORBIDDEN', 'GET', '/nodes')
      await api.refused('ERR_FORBIDDEN', 'GET', `/nodes/${(await nodes())[0].id}`)
    })

    test('the command line lists them', async () => {
      const terminal = testTerminal({ env: { POSTERN_API_URL: platform.url, POSTERN_API_KEY: platform.apiKey } })
      assert.equal(await run(['api', 'nodes', 'list', '--json'], terminal), 0)
      const listed = JSON.parse(terminal.printed.out)
      const [node, ...others] = await nodes()
      // Its lease may have been renewed in between.
      assert.deepEqual(listed, [{ ...node, lease: listed[0].lease }, ...others])
      assert.equal(typeof listed[0].lease, isShared ? 'number' : 'object')
      const table = testTerminal({ env: { POSTERN_API_URL: platform.url, POSTERN_API_KEY: platform.apiKey } })
      assert.equal(await run(['api', 'nodes', 'list'], table), 0)
      const [id, name, address] = table.printed.out.split('\n')[0]?.split('\t') ?? []
      assert.deepEqual([id, name, address], [node.id, node.name, node.address])
    })

    test('several processes are one node, even after the control process was killed', async (t) => {
      const dataDir = await mkdtemp(join(tmpdir(), 'postern-nodes-'))
      const databaseUrl = await store.url()
      const env = { POSTERN_BOOTSTRAP_API_KEY: platform.apiKey }
      const server = await serve({ dataDir, databaseUrl, env, flags: { workers: '2' } })
      t.after(async () => {
        await server.stop()
        await rm(dataDir, { recursive: true })
      })
      const admin = new ApiClient(server.url, platform.apiKey)
      const [node, ...others] = (await admin.get('/nodes')).nodes
      assert.deepEqual(others, [])
      const control = childrenOf(server.child.pid ?? 0, 2)?.control
      assert.ok(control !== undefined)
      process.kill(control, 'SIGKILL')
      await until('another control process is there', () => {
        const now = childrenOf(server.child.pid ?? 0, 2)
        return now !== undefined && now.control !== control
      })
      const again = await until('the API answers', () => admin.get('/nodes').catch(() => false))
      // Its lease may have been renewed in between.
      assert.deepEqual(again.nodes, [{ ...node, lease: again.nodes[0].lease }])
    })

    if (isShared) {
      test('agents can dial the address that they are told, by its name', async () => {
        const [host = '', port = ''] = platform.agents.split(':')
        const socket = connect({ host, port: Number(port), servername: 'n1.example.com', ca: platform.ca })
        await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
        socket.destroy()
      })
    }
  })
})
