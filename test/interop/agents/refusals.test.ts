/** What agents are refused, with the numbers that SDKs check: bad credentials, and disallowed or taken addresses. */
import assert from 'node:assert/strict'
import { describe } from 'node:test'
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import type { Json } from '../../support/api-client.ts'
import { until } from '../../support/until.ts'
import { httpUpstream } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import type { Credential } from './driver.ts'
import { eachAgent, refusal, tunnelAt } from './each-agent.ts'

/** D25 */
const CREDENTIAL_GONE_MS = 5000

eachAgent((stage, test) => {
  describe('a session is refused', () => {
    const cases: [what: string, authtoken: () => string, ngrok: number][] = [
      ['with an invalid authtoken', () => 'short', 105],
      ['with an unknown authtoken', () => 'nobody_has_this_authtoken_0123456789', 107],
      ['with an API key', () => stage.platform.apiKey, 107],
    ]
    for (const [what, authtoken, ngrok] of cases) {
      test(what, async (t) => {
        await assert.rejects(stage.connect(t, { authtoken: authtoken() }), refusal(ngrok, /authtoken/))
      })
    }

    test('with more metadata than is kept', async (t) => {
      await assert.rejects(stage.connect(t, { metadata: 'x'.repeat(4097) }), refusal(100, /4096/))
    })
  })

  describe('a name is refused', () => {
    test('that another agent has, until that agent closes it', async (t) => {
      const { address } = await httpUpstream(t)
      const [one, other] = [await stage.connect(t), await stage.connect(t)]
      const first = await one.open({ addr: address, domain: 'wanted.example.com' })
      await assert.rejects(other.open({ addr: address, domain: 'WANTED.example.com' }), refusal(334, /already online/))
      assert.equal((await visit(first.url, stage.platform)).status, 200)
      await first.close()
      const second = await other.open({ addr: address, domain: 'wanted.example.com' })
      assert.equal(second.url, first.url)
    })

    test('that an edge has', async (t) => {
      const edge = await stage.platform.admin.create('/edges/https', { hostports: ['edge.example.com:443'] })
      const bind = stage.open(t, { addr: 1, domain: 'edge.example.com' })
      await assert.rejects(bind, refusal(381, new RegExp(edge.id)))
    })

    const bad: [name: string, ngrok: number][] = [
      ['under_score.example.com', 355],
      ['-dash.example.com', 328],
      ['double..dot.example.com', 327],
    ]
    for (const [name, ngrok] of bad) {
      test(`such as ${name}`, async (t) => {
        await assert.rejects(stage.open(t, { addr: 1, domain: name }), refusal(ngrok))
      })
    }

    test('a TCP port outside of the range', async (t) => {
      const bind = stage.open(t, { proto: 'tcp', addr: 1, remote_addr: 'localhost:22' })
      await assert.rejects(bind, refusal(307, new RegExp(`${stage.range.from} to ${stage.range.to}`)))
    })
  })

  describe('an ACL', () => {
    const restricted = (...acl: string[]): Promise<Credential> => stage.driver.credential(stage.platform, { acl })

    const refused: [what: string, acl: string, tunnel: () => Promise<TunnelOptions>, ngrok: number][] = [
      ['another name', 'bind:mine.example.com', async () => ({ domain: 'yours.example.com' }), 316],
      ['a name beneath', 'bind:mine.example.com', async () => ({ domain: 'a.mine.example.com' }), 316],
      ['the same name over tls', 'bind:mine.example.com', async () => ({ domain: 'x.example.com', proto: 'tls' }), 316],
      ['a random name', 'bind:*.example.com', async () => ({}), 316],
      ['a random port', 'bind:*.localhost', async () => ({ proto: 'tcp' }), 356],
      [
        'another port',
        'bind:localhost:20001',
        async () => ({ proto: 'tcp', remote_addr: `localhost:${stage.tcpPort()}` }),
        308,
      ],
      ['another label', 'bind:app=web', async () => ({ labels: { app: 'api' } }), 399],
      ['one label of two', 'bind:app=web', async () => ({ labels: { app: 'web', zone: 'a' } }), 399],
      ['labels', 'bind:*.example.com', async () => ({ labels: { app: 'web' } }), 399],
    ]
    for (const [what, acl, tunnel, ngrok] of refused) {
      test(`of ${acl} does not allow ${what}`, async (t) => {
        const { id, authtoken } = await restricted(acl)
        const agent = await stage.connect(t, { authtoken })
        await assert.rejects(agent.open({ addr: 1, ...(await tunnel()) }), refusal(ngrok, new RegExp(id)))
      })
    }

    const allowed: [acl: string, tunnel: TunnelOptions][] = [
      ['bind:mine.example.com', { domain: 'mine.example.com' }],
      ['bind:*.team.example.com', { domain: 'a.team.example.com' }],
      ['bind:*.localhost', {}],
      ['bind:*', { proto: 'tcp' }],
      ['bind:app=*', { labels: { app: 'any' } }],
    ]
    for (const [acl, tunnel] of allowed) {
      test(`of ${acl} allows ${JSON.stringify(tunnel)}`, async (t) => {
        const { authtoken } = await restricted(acl)
        const agent = await stage.connect(t, { authtoken })
        await agent.open({ addr: 1, ...tunnel })
      })
    }

    test('that changes applies to the next bind, not to open tunnels', async (t) => {
      const { id, authtoken } = await restricted('bind:*.old.example.com')
      const agent = await stage.connect(t, { authtoken })
      const { url } = await agent.open({ addr: 1, domain: 'a.old.example.com' })
      await stage.platform.admin.update(`${stage.driver.credentials}/${id}`, { acl: ['bind:*.new.example.com'] })
      await assert.rejects(agent.open({ addr: 1, domain: 'b.old.example.com' }), refusal(316))
      await agent.open({ addr: 1, domain: 'b.new.example.com' })
      assert.ok(await tunnelAt(stage.platform, url))
    })
  })

  test('a deleted credential ends its sessions within five seconds, and no others', async (t) => {
    const { admin } = stage.platform
    const { id, authtoken } = await stage.driver.credential(stage.platform, { description: 'to be deleted' })
    const { address } = await httpUpstream(t)
    const doomed = await stage.connect(t, { authtoken })
    const spared = await stage.connect(t)
    const gone = await doomed.open({ addr: address, domain: 'doomed.example.com' })
    const kept = await spared.open({ addr: address, domain: 'spared.example.com' })
    const { id: sessionId } = (await tunnelAt(stage.platform, gone.url)).tunnel_session
    const { id: sparedId } = (await tunnelAt(stage.platform, kept.url)).tunnel_session
    await admin.delete(`${stage.driver.credentials}/${id}`)
    await until(
      'the session is gone',
      async () => (await admin.send('GET', `/tunnel_sessions/${sessionId}`)).status === 404,
      { limitMs: CREDENTIAL_GONE_MS },
    )
    assert.equal(await tunnelAt(stage.platform, gone.url), undefined)
    assert.equal((await visit(kept.url, stage.platform)).status, 200)
    // Its agent reconnects on its own, and is refused.
    await until('its agent was refused', () => stage.platform.log.some((line) => stage.driver.refusedInLog.test(line)))
    const { tunnel_sessions } = await admin.get('/tunnel_sessions')
    assert.deepEqual(
      tunnel_sessions.filter((each: Json) => each.credential.id === id),
      [],
    )
    assert.ok(tunnel_sessions.some((each: Json) => each.id === sparedId))
  })
})
