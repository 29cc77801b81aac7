/** Public addresses that agents request: of every kind, by name and at random, and how the API shows them. */
import assert from 'node:assert/strict'
import { tlsIdentity } from '../../support/tls-identity.ts'
import { httpUpstream, nobody, type Seen, tcpUpstream, tlsUpstream } from '../../support/upstream.ts'
import { dialTcp, dialTls, exchange, visit } from '../../support/visitor.ts'
import { eachAgent, refusal, tunnelAt } from './each-agent.ts'

eachAgent((stage, test) => {
  test('https: a random name, served with a certificate for it', async (t) => {
    const { address } = await httpUpstream(t)
    const { url } = await stage.open(t, { addr: address })
    assert.match(url, /^https:\/\/[a-z]+-[a-z]+-[0-9a-f]{4}\.localhost:\d+$/)
    const answer = await visit(url, stage.platform, {
      method: 'POST',
      path: '/a/b?c=d',
      headers: { 'x-mine': 'yes' },
      body: 'hello',
    })
    assert.equal(answer.status, 200)
    const seen: Seen = JSON.parse(answer.text)
    assert.deepEqual([seen.method, seen.url, seen.body], ['POST', '/a/b?c=d', 'hello'])
    const { host } = new URL(url)
    assert.equal(seen.headers.host, host)
    assert.equal(seen.headers['x-mine'], 'yes')
    assert.equal(seen.headers['x-forwarded-proto'], 'https')
    assert.equal(seen.headers['x-forwarded-for'], '127.0.0.1')
    assert.equal(seen.headers['x-forwarded-host'], host)
  })

  test('http: served on the plain listener, not redirected', async (t) => {
    const { address } = await httpUpstream(t)
    const { url } = await stage.open(t, { addr: address, schemes: ['http'] })
    assert.match(url, new RegExp(`^http://.*\\.localhost:${stage.platform.httpPort}$`))
    const answer = await visit(url, stage.platform, { path: '/plain' })
    assert.equal(answer.status, 200)
    const seen: Seen = JSON.parse(answer.text)
    assert.equal(seen.url, '/plain')
    assert.equal(seen.headers['x-forwarded-proto'], 'http')
  })

  test('tcp: a port of the range', async (t) => {
    const { address } = await tcpUpstream(t)
    const { url } = await stage.open(t, { proto: 'tcp', addr: address })
    const { ports } = stage.range
    assert.ok(
      ports.some((port) => url === `tcp://localhost:${port}`),
      url,
    )
    assert.equal(await exchange(await dialTcp(url), 'over and back'), 'over and back')
  })

  test('tcp: a requested port, which is then taken', async (t) => {
    const { address } = await tcpUpstream(t)
    const first = await stage.open(t, { proto: 'tcp', addr: address })
    const { host } = new URL(first.url)
    await assert.rejects(stage.open(t, { proto: 'tcp', addr: address, remote_addr: host }), refusal(334))
    await first.close()
    const second = await stage.open(t, { proto: 'tcp', addr: address, remote_addr: host })
    assert.equal(second.url, `tcp://${host}`)
    assert.equal(await exchange(await dialTcp(second.url), 'again'), 'again')
  })

  test('tls: passed through, so that visitors see the certificate of the service', async (t) => {
    const identity = await tlsIdentity(['pass.example.com'])
    const { address } = await tlsUpstream(t, identity)
    const { url } = await stage.open(t, { proto: 'tls', addr: address, domain: 'pass.example.com' })
    assert.equal(url, `tls://pass.example.com:${stage.platform.httpsPort}`)
    // Trusts only the CA of the service: if anything else had ended TLS, this would fail.
    const socket = await dialTls(url, { ca: identity.ca })
    assert.equal(await exchange(socket, 'sealed'), 'sealed')
  })

  test('tls: ended at the edge with a certificate of the agent', async (t) => {
    const identity = await tlsIdentity(['ended.example.com'])
    const { address } = await tcpUpstream(t)
    const { url } = await stage.open(t, {
      proto: 'tls',
      addr: `tcp://${address}`,
      domain: 'ended.example.com',
      terminate_at: 'edge',
      crt: identity.cert,
      key: identity.key,
    })
    const socket = await dialTls(url, { ca: identity.ca })
    assert.equal(await exchange(socket, 'in the open behind it'), 'in the open behind it')
  })

  test('tls: ended at the edge and encrypted again for a service that wants TLS', async (t) => {
    const edge = await tlsIdentity(['again.example.com'])
    const service = await tlsIdentity(['inside.example.com'])
    const { address } = await tlsUpstream(t, service)
    const { url } = await stage.open(t, {
      proto: 'tls',
      addr: `tls://${address}`,
      domain: 'again.example.com',
      terminate_at: 'edge',
      crt: edge.cert,
      key: edge.key,
    })
    assert.equal(await exchange(await dialTls(url, { ca: edge.ca }), 'twice'), 'twice')
  })

  test('a chosen name, which is free again when the tunnel is closed', async (t) => {
    const { address } = await httpUpstream(t)
    const first = await stage.open(t, { addr: address, domain: 'app.example.com' })
    const { url } = first
    assert.equal(url, `https://app.example.com:${stage.platform.httpsPort}`)
    assert.equal((await visit(url, stage.platform)).status, 200)
    await first.close()
    assert.equal(await tunnelAt(stage.platform, url), undefined)
    const again = await stage.open(t, { addr: address, domain: 'app.example.com' })
    assert.equal(again.url, url)
    assert.equal((await visit(url, stage.platform)).status, 200)
  })

  test('a service with TLS of its own', async (t) => {
    const identity = await tlsIdentity()
    const { address } = await tlsUpstream(t, identity, (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret'))
    })
    const { url } = await stage.open(t, { addr: `https://${address}` })
    const { status, text } = await visit(url, stage.platform)
    assert.deepEqual([status, text], [200, 'secret'])
  })

  test('a service that is down is a 502', async (t) => {
    const { address } = await nobody()
    const { url } = await stage.open(t, { addr: address })
    assert.equal((await visit(url, stage.platform)).status, 502)
  })

  test('an address whose tunnel is closed says so', async (t) => {
    const { address } = await httpUpstream(t)
    const tunnel = await stage.open(t, { addr: address, schemes: ['http'] })
    await tunnel.close()
    const answer = await visit(tunnel.url, stage.platform)
    assert.deepEqual([answer.status, answer.headers['postern-error-code']], [404, 'ERR_ENDPOINT_OFFLINE'])
  })

  test('the API shows what the agent reports of itself and its tunnels', async (t) => {
    const { address } = await httpUpstream(t)
    const { driver } = stage
    const credential = await driver.credential(stage.platform)
    const agent = await stage.connect(t, { authtoken: credential.authtoken, metadata: '{"of":"the session"}' })
    const { url } = await agent.open({ addr: address, metadata: '{"of":"the tunnel"}', domain: 'shown.example.com' })
    const { admin, url: api } = stage.platform

    const tunnel = await tunnelAt(stage.platform, url)
    const session = await admin.get(`/tunnel_sessions/${tunnel.tunnel_session.id}`)
    assert.match(session.agent_version, driver.shown.version)
    assert.deepEqual(
      [session.ip, session.os, session.region, session.transport],
      ['127.0.0.1', driver.shown.os, 'local', driver.shown.transport],
    )
    assert.equal(session.metadata, driver.hasSession ? '{"of":"the session"}' : '')
    assert.equal(session.credential.id, credential.id)
    assert.equal(tunnel.metadata, '{"of":"the tunnel"}')
    assert.equal(tunnel.proto, 'https')
    assert.match(tunnel.forwards_to, driver.tellsServices ? new RegExp(`^http://${address}/?$`) : /^$/)
    assert.deepEqual(tunnel.tunnel_session, { id: session.id, uri: `${api}/tunnel_sessions/${session.id}` })
    assert.deepEqual(await admin.get(`/tunnels/${tunnel.id}`), tunnel)

    const endpoint = await admin.get(`/endpoints/${tunnel.endpoint.id}`)
    assert.equal(endpoint.public_url, url)
    assert.equal(endpoint.hostport, `shown.example.com:${stage.platform.httpsPort}`)
    assert.deepEqual([endpoint.proto, endpoint.type, endpoint.metadata], ['https', 'ephemeral', '{"of":"the tunnel"}'])
    assert.equal(endpoint.tunnel.id, tunnel.id)
    assert.ok((await admin.get('/endpoints')).endpoints.some(({ id }: { id: string }) => id === endpoint.id))
  })
})
