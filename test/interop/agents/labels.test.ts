/** Labelled tunnels: edges reach them through tunnel groups, and the API shows which tunnels serve a group. */
import assert from 'node:assert/strict'
import type { Platform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { http2Upstream, httpUpstream, tcpUpstream } from '../../support/upstream.ts'
import { dialTcp, exchange, visit } from '../../support/visitor.ts'
import { eachAgent } from './each-agent.ts'

eachAgent((stage, test) => {
  test('an HTTPS edge reaches the tunnels of a group', async (t) => {
    const { url, group } = await httpsEdge(stage.platform, 'web.example.com', { app: 'web' })
    const { address } = await httpUpstream(t, (_, response) => response.end('labelled'))
    const offline = await visit(url, stage.platform)
    assert.deepEqual([offline.status, offline.headers['postern-error-code']], [503, 'ERR_BACKEND_OFFLINE'])

    const tunnel = await stage.open(t, { labels: { app: 'web', zone: 'a' }, addr: address, metadata: 'of labels' })
    assert.equal(tunnel.url, '')
    assert.equal((await visit(url, stage.platform)).text, 'labelled')

    const { admin } = stage.platform
    const backend = await admin.get(`/backends/tunnel_group/${group}`)
    assert.equal(backend.tunnels.length, 1)
    const shown = await admin.get(`/tunnels/${backend.tunnels[0].id}`)
    assert.deepEqual(shown.labels, { app: 'web', zone: 'a' })
    assert.deepEqual(shown.backends, [{ id: group, uri: backend.uri }])
    assert.equal(shown.metadata, 'of labels')
    assert.equal(shown.forwards_to.includes(address), stage.driver.tellsServices)
    for (const absent of ['public_url', 'proto', 'endpoint']) assert.equal(shown[absent], undefined)
    const { endpoints } = await admin.get('/endpoints')
    assert.ok(!endpoints.some((each: { tunnel?: { id: string } }) => each.tunnel?.id === shown.id))

    await tunnel.close()
    assert.equal((await visit(url, stage.platform)).status, 503)
    assert.deepEqual((await admin.get(`/backends/tunnel_group/${group}`)).tunnels, [])
  })

  test('a TCP edge reaches the tunnels of a group', async (t) => {
    const { admin } = stage.platform
    const group = await admin.create('/backends/tunnel_group', { labels: { app: 'bytes' } })
    const hostport = `localhost:${stage.tcpPort()}`
    await admin.create('/edges/tcp', { hostports: [hostport], backend: { backend_id: group.id } })
    const { address } = await tcpUpstream(t)
    await stage.open(t, { labels: { app: 'bytes' }, addr: address })
    const url = `tcp://${hostport}`
    await until('the edge listens', () =>
      dialTcp(url).then(
        (socket) => socket.destroy(),
        () => false,
      ),
    )
    assert.equal(await exchange(await dialTcp(url), 'through an edge'), 'through an edge')
  })

  test('two agents of one group share its visitors, and one takes over when the other leaves', async (t) => {
    const { url, group } = await httpsEdge(stage.platform, 'both.example.com', { app: 'both' })
    const agents = []
    for (const name of ['one', 'two']) {
      const agent = await stage.connect(t)
      const { address } = await httpUpstream(t, (_, response) => response.end(name))
      agents.push(await agent.open({ labels: { app: 'both' }, addr: address }))
    }
    const backend = await stage.platform.admin.get(`/backends/tunnel_group/${group}`)
    assert.equal(backend.tunnels.length, 2)
    const ask = async () => (await visit(url, stage.platform)).text
    const answers = new Set<string>()
    for (let i = 0; i < 8; i++) answers.add(await ask())
    assert.deepEqual([...answers].sort(), ['one', 'two'])
    await agents[0]?.close()
    for (let i = 0; i < 4; i++) assert.equal(await ask(), 'two')
  })

  test('a tunnel that lacks a label of the group does not serve it', async (t) => {
    const { url } = await httpsEdge(stage.platform, 'strict.example.com', { app: 'strict', zone: 'a' })
    const { address } = await httpUpstream(t)
    await stage.open(t, { labels: { app: 'strict' }, addr: address })
    await stage.open(t, { labels: { app: 'strict', zone: 'b' }, addr: address })
    assert.equal((await visit(url, stage.platform)).status, 503)
  })

  test('a labelled tunnel that requests HTTP/2 gets it', async (t) => {
    const { url } = await httpsEdge(stage.platform, 'h2.example.com', { app: 'h2' })
    const { address } = await http2Upstream(t, (stream) => {
      stream.respond({ ':status': 200 })
      stream.end('two')
    })
    await stage.open(t, { labels: { app: 'h2' }, addr: address, app_protocol: 'http2' })
    assert.equal((await visit(url, stage.platform)).text, 'two')
  })
})

/** An edge whose only route is served by the tunnels with these labels; resolves once it is served. */
async function httpsEdge(platform: Platform, name: string, labels: Record<string, string>) {
  const { admin, httpsPort, ca } = platform
  const group = await admin.create('/backends/tunnel_group', { labels })
  const edge = await admin.create('/edges/https', { hostports: [`${name}:443`] })
  await admin.create(`/edges/https/${edge.id}/routes`, {
    match_type: 'path_prefix',
    match: '/',
    backend: { backend_id: group.id },
  })
  const url = `https://${name}:${httpsPort}`
  await until(`${name} has its route`, async () => {
    const { status } = await visit(url, { ca }).catch(() => ({ status: 0 }))
    return status !== 0 && status !== 404
  })
  return { url, group: group.id as string }
}
