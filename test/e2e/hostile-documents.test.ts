/** Hostile documents are refused by their price or checked on another thread, and delay no other request. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { TestAgent } from '../../src/data-plane/tunnel/testing/raw-agent.ts'
import { Secret } from '../../src/lib/secrets/secret.ts'
import type { Json } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { dearDocuments, dearPatterns } from '../support/dear-documents.ts'
import { until } from '../support/until.ts'
import { World } from './edges/world.ts'

const rule = (expressions: readonly string[]): Json => ({ inbound: [{ expressions, actions: [{ type: 'deny' }] }] })

eachStore((store) => {
  let world: World
  let route = ''
  before(async () => {
    world = await World.start({ databaseUrl: await store.url() })
    const edge = await world.httpsEdge({ routes: [{ backend: await answering('served') }] })
    route = edge.routes[0]?.path ?? ''
  })
  after(() => world.stop())
  const answering = (body: string) => world.toBackend('http_response', { body })

  describe('a document that would block the server is refused by its price', () => {
    for (const [what, [path, body, code, message]] of Object.entries(dearDocuments)) {
      test(what, async () => {
        const { msg } = await world.api.refused(code, 'PUT', `${route}/${path}`, { body })
        assert.match(msg, message)
      })
    }

    test('half a million numbers', async () => {
      const body = `{"hostports":[${'1,'.repeat(500_000)}1]}`
      const { msg } = await world.api.refused('ERR_BODY_MALFORMED', 'POST', '/edges/https', { body })
      assert.match(msg, /over 5000 values and keys/)
    })

    test('a key as long as a body, in both dialects', async () => {
      const body = JSON.stringify({ [`${'k'.repeat(500_000)}!`]: 1 })
      const headers = { 'service-version': '', 'ngrok-version': '2' }
      const { status, body: answer } = await world.api.send('POST', '/edges/https', { body, headers })
      assert.equal(status, 400)
      assert.ok(answer.msg.length < 1000)
    })
  })

  test('while a policy is checked, others are answered', async () => {
    const slow = world.api.send('PUT', `${route}/traffic_policy`, { body: { value: '- a\n'.repeat(8000) } })
    const order: string[] = []
    const quick = world.api.send('GET', '/healthz').then(({ status }) => order.push(`health ${status}`))
    await Promise.all([slow.then(({ status }) => order.push(`policy ${status}`)), quick])
    assert.deepEqual(order, ['health 200', 'policy 400'])
  })

  test('while one member sends more than can wait, another is served', async () => {
    const [busy, other] = [await world.platform.member(), await world.platform.member()]
    const value = '- a\n'.repeat(1500)
    const many = Array.from({ length: 40 }, () => busy.api.send('PUT', `${route}/traffic_policy`, { body: { value } }))
    const { status } = await other.api.send('PUT', `${route}/policy`, { body: { enabled: false, ...rule(['true']) } })
    assert.equal(status, 200)
    for (const answer of await Promise.all(many)) {
      assert.ok(['ERR_BAD_POLICY', 'ERR_TOO_COSTLY', 'ERR_CHECKS_BUSY'].includes(answer.body.error_code), answer.text)
      if (answer.status === 429) assert.ok(Number(answer.headers.get('retry-after')) > 0)
    }
  })

  test('a costly filter is in force once it is compiled, and until then the edge is served as before', async () => {
    const edge = await world.httpsEdge({ routes: [{ backend: await answering('served') }] })
    assert.equal((await world.ask(edge.name)).text, 'served')
    await world.api.put(`${edge.routes[0]?.path}/user_agent_filter`, { deny: [...dearPatterns, 'curl'] })
    const seen = new Set<string>()
    await until('the filter is in force', async () => {
      const { code, text } = await world.ask(edge.name, { headers: { 'user-agent': 'curl/8' } })
      seen.add(code ?? text)
      return code === 'ERR_USER_AGENT_REFUSED'
    })
    assert.deepEqual(
      [...seen].filter((each) => each !== 'served' && each !== 'ERR_USER_AGENT_REFUSED'),
      [],
    )
    assert.equal((await world.ask(edge.name, { headers: { 'user-agent': 'other' } })).text, 'served')
  })

  test('a bind with costly patterns is served, and one that is too costly is refused', async () => {
    const port = Number(world.platform.agents.split(':').at(-1))
    const agent = new TestAgent({ port })
    await agent.authenticate({ authtoken: new Secret(world.platform.authtoken) })
    const bound = await agent.bind({ opts: { UserAgentFilter: { Deny: dearPatterns } } })
    assert.ok(!('ngrok' in bound), JSON.stringify(bound))
    const costly = Array.from({ length: 50 }, () => `[${'\\pL'.repeat(340)}]`)
    const refused = await agent.bind({ opts: { UserAgentFilter: { Deny: costly } } })
    assert.ok('ngrok' in refused && refused.ngrok === 2090, JSON.stringify(refused))
    assert.match(refused.message, /too costly/)
    const wide = Object.fromEntries(Array.from({ length: 2000 }, (_, i) => [`Option${i}`, 1]))
    const tooWide = await agent.bind({ opts: wide })
    assert.ok('ngrok' in tooWide && /2000 options/.test(tooWide.message), JSON.stringify(tooWide))
    await agent.leave()
  })

  test('after a restart an edge that is costly to compile is guarded as before, and delays no other', async (t) => {
    const databaseUrl = await store.url()
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-test-'))
    t.after(() => rm(dataDir, { recursive: true, force: true }))
    const first = await World.start({ databaseUrl, dataDir })
    const { id } = await first.api.create('/backends/http_response', { body: 'served' })
    const backend = { backend_id: id }
    const guarded = await first.httpsEdge({
      routes: [{ backend, user_agent_filter: { deny: [...dearPatterns, 'curl'] } }],
    })
    const plain = await first.httpsEdge({ routes: [{ backend }] })
    await first.stop()
    const again = await World.startAgain(first, { databaseUrl, dataDir })
    t.after(() => again.stop())
    const visitors = Array.from({ length: 5 }, () => again.ask(guarded.name, { headers: { 'user-agent': 'curl/8' } }))
    assert.equal((await again.ask(plain.name)).text, 'served')
    // They waited for the guard, and none bypassed it.
    for (const { code } of await Promise.all(visitors)) assert.equal(code, 'ERR_USER_AGENT_REFUSED')
    assert.equal((await again.ask(guarded.name, { headers: { 'user-agent': 'other' } })).text, 'served')
  })
})
