/** What a bind costs: the questions of a data plane to its control plane, whose answers agents wait for one after the other. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { connect, type TunnelOptions } from '../../src/agent/library.ts'
import { ControlLink } from '../../src/link/planes/control-link.ts'
import { dearPatterns } from '../support/dear-documents.ts'
import { type Platform, startPlatform } from '../support/platform.ts'

let platform: Platform
before(async () => {
  platform = await startPlatform({ planeCount: 2 })
})
after(() => platform.stop())

const binds: Readonly<Record<string, Omit<TunnelOptions, 'addr'>>> = {
  'of a random name': {},
  'of a name': { domain: 'a.binds.test' },
  'of a random port': { proto: 'tcp' },
  'with options that are costly to check': { domain: 'b.binds.test', user_agent_filter: { deny: dearPatterns } },
  'with a policy': { domain: 'c.binds.test', traffic_policy: { on_http_request: [{ actions: [{ type: 'deny' }] }] } },
  'into a pool': { domain: 'd.binds.test', pooling: true },
}

for (const [name, options] of Object.entries(binds)) {
  test(`a bind ${name} is one question, and one to tell that the tunnel is online`, async (t) => {
    const agent = await connect({ server: platform.agents, ca: platform.ca, authtoken: platform.authtoken })
    t.after(() => agent.close())
    const { mock } = t.mock.method(ControlLink.prototype, 'ask')
    await agent.forward({ addr: 1, ...options })
    assert.deepEqual(
      mock.calls.map((call) => call.arguments[0]),
      ['bind', 'tunnelStarted'],
    )
  })
}

test('a bind that is refused is one question; only for an address that is taken are its holders asked, and then again', async (t) => {
  const agent = await connect({ server: platform.agents, ca: platform.ca, authtoken: platform.authtoken })
  t.after(() => agent.close())
  const { mock } = t.mock.method(ControlLink.prototype, 'ask')
  const refused = async (options: Omit<TunnelOptions, 'addr'>, text: RegExp) => {
    mock.resetCalls()
    await assert.rejects(agent.forward({ addr: 1, ...options }), text)
    return mock.calls.map((call) => call.arguments[0])
  }
  assert.deepEqual(await refused({ user_agent_filter: { deny: ['('] } }, /not a valid RE2/), ['bind'])
  const { body } = await platform.admin.send('POST', '/edges/https', { body: { hostports: ['e.binds.test:443'] } })
  const isHeld = await refused({ domain: 'e.binds.test' }, new RegExp(`belongs to the edge ${body.id}`))
  assert.deepEqual(isHeld, ['bind', 'proveAlive', 'bind'])
})
