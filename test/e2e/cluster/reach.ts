/** Three nodes on one PostgreSQL: every address is served at every node, wherever its agent is. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { Channel } from 'ssh2'
import { clientKey, TestClient } from '../../../src/data-plane/ssh/testing/test-gateway.ts'
import { startOfficialAgent } from '../../chaos/official-agent.ts'
import { AUTHTOKEN, agentAt, type TestCluster } from '../../support/cluster.ts'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { until } from '../../support/until.ts'
import { http2Upstream, httpUpstream, tcpUpstream, tlsUpstream } from '../../support/upstream.ts'
import { dialTcp, dialTls, exchange, visit } from '../../support/visitor.ts'
import { echoMessages, WebSocketVisitor } from '../../support/websocket.ts'

const LARGE_BYTES = 20_000_000

export function reachTests(cluster: () => TestCluster): void {
  test('serve HTTP of an agent at any of them', async (t) => {
    const web = await httpUpstream(t, (_, response) => response.end('hello'), echoMessages)
    const { nodes, ca } = cluster()
    for (const home of nodes) {
      const agent = await agentAt(t, cluster(), home)
      const { urls } = await agent.forward({ addr: web.port, schemes: ['http', 'https'] })
      const of = (scheme: string): string => urls.find((url) => url.startsWith(`${scheme}:`)) ?? ''
      for (const node of nodes) {
        const where = `${home.name}, ${node.name}`
        for (const version of ['1.1', '2'] as const) {
          const { status, text } = await visit(node.at(of('https')), { ca }, { version })
          assert.deepEqual([status, text], [200, 'hello'], `${where}, HTTP/${version}`)
        }
        const { status, text } = await visit(node.at(of('http')), { ca })
        assert.deepEqual([status, text], [200, 'hello'], `${where}, plain`)
        const socket = await WebSocketVisitor.open(node.at(of('https')), { ca })
        t.after(() => socket.close())
        for (const message of ['one', 'two']) {
          socket.send(Buffer.from(message))
          assert.equal((await socket.receive()).toString(), message, where)
        }
      }
    }
  })

  test('serve TCP, and TLS that is passed through', async (t) => {
    const echo = await tcpUpstream(t)
    const { nodes } = cluster()
    for (const home of nodes) {
      const name = `own-${home.name}.example.com`
      const identity = await tlsIdentity([name])
      const secure = await tlsUpstream(t, identity)
      const agent = await agentAt(t, cluster(), home)
      const tcp = await agent.forward({ addr: echo.port, proto: 'tcp' })
      const tls = await agent.forward({ addr: secure.port, proto: 'tls', domain: name })
      for (const node of nodes) {
        const plain = await until('the port is open', () => dialTcp(node.at(tcp.url)).catch(() => undefined))
        assert.equal(await exchange(plain, 'abc'), 'abc', `${home.name}, ${node.name}`)
        const encrypted = await dialTls(node.at(tls.url), { ca: identity.ca })
        assert.equal(await exchange(encrypted, 'def'), 'def', `${home.name}, ${node.name}`)
      }
    }
  })

  test('carry large bodies whole, in both directions', async (t) => {
    const large = randomBytes(LARGE_BYTES)
    const web = await httpUpstream(t, (request, response) => {
      if (request.method === 'GET') return void response.end(large)
      const hash = createHash('sha256')
      request.on('data', (chunk: Buffer) => hash.update(chunk)).on('end', () => response.end(hash.digest('hex')))
    })
    const echo = await tcpUpstream(t)
    const [home, ...others] = cluster().nodes
    const agent = await agentAt(t, cluster(), home)
    const { url } = await agent.forward({ addr: web.port })
    const tcp = await agent.forward({ addr: echo.port, proto: 'tcp' })
    for (const [i, node] of others.entries()) {
      const version = i === 0 ? '1.1' : '2'
      const up = await visit(node.at(url), cluster(), { version, method: 'POST', body: large })
      assert.deepEqual([up.status, up.text], [200, sha256(large)], `up, HTTP/${version}`)
      const down = await visit(node.at(url), cluster(), { version })
      assert.deepEqual([down.status, sha256(down.body)], [200, sha256(large)], `down, HTTP/${version}`)
    }
    const [node] = others
    const socket = await until('the port is open', () => dialTcp(node.at(tcp.url)).catch(() => undefined))
    const hash = createHash('sha256')
    socket.end(large)
    for await (const chunk of socket) hash.update(chunk as Buffer)
    assert.equal(hash.digest('hex'), sha256(large), 'TCP')
  })

  test('speak HTTP/2 to a service that does', async (t) => {
    const web = await http2Upstream(t, (stream, headers) => {
      stream.respond({ ':status': 200 })
      stream.end(`${String(headers[':method'])} over HTTP/2`)
    })
    const { nodes } = cluster()
    const agent = await agentAt(t, cluster(), nodes[2])
    const { url } = await agent.forward({ addr: web.port, app_protocol: 'http2' })
    for (const node of nodes) {
      const { status, text } = await visit(node.at(url), cluster(), { version: '2' })
      assert.deepEqual([status, text], [200, 'GET over HTTP/2'], node.name)
    }
  })

  test('tell the service the address of the visitor', async (t) => {
    const web = await httpUpstream(t)
    const { nodes } = cluster()
    const agent = await agentAt(t, cluster(), nodes[0])
    const { url } = await agent.forward({ addr: web.port })
    for (const node of nodes) {
      const { text } = await visit(node.at(url), cluster(), { from: '127.0.0.77' })
      const { headers } = JSON.parse(text) as { headers: Record<string, string> }
      assert.deepEqual([headers['x-forwarded-for'], headers['x-forwarded-proto']], ['127.0.0.77', 'https'], node.name)
    }
  })

  test('serve the official agent', async (t) => {
    const web = await httpUpstream(t, (_, response) => response.end('hello'))
    const { nodes, ca } = cluster()
    const server = nodes[1].server.agents
    const order = { server, ca, authtoken: AUTHTOKEN, addr: `http://${web.address}` }
    const { url } = await startOfficialAgent(t, order)
    for (const node of nodes) assert.equal((await visit(node.at(url), cluster())).text, 'hello', node.name)
  })

  test('serve plain ssh', async (t) => {
    const web = await httpUpstream(t, (_, response) => response.end('hello'))
    const { nodes } = cluster()
    const home = nodes[2]
    await nodes[0].api.create('/ssh_credentials', { public_key: clientKey.publicLine })
    const port = Number(home.server.ssh.slice(home.server.ssh.lastIndexOf(':') + 1))
    const client = await new TestClient(port).login()
    t.after(() => client.leave())
    client.ssh.on('tcp connection', (_details: unknown, accept: () => Channel) => {
      const channel = accept()
      const socket = connect(web.port, '127.0.0.1').on('error', () => {})
      channel.on('error', () => {})
      channel.pipe(socket).pipe(channel)
    })
    const run = await client.exec('http')
    await client.forward('ssh.example.com', 80)
    const url = await until('it prints its address', () => /Forwarding +(\S+)/.exec(run.out)?.[1])
    for (const node of nodes) assert.equal((await visit(node.at(url), cluster())).text, 'hello', node.name)
  })

  test('answer that a name is not in use', async () => {
    const { nodes } = cluster()
    for (const node of nodes) {
      const { status } = await visit(node.at('http://nobody.cluster.localhost'), cluster())
      assert.equal(status, 404, node.name)
    }
  })
}

function sha256(bytes: Buffer): string {
  return createHash('sha256').update(bytes).digest('hex')
}
