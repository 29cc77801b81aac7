/** Policies and modules with special rules: wrong values are refused, and the message names the field (D35, D37, D40). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { HostKind } from './module-table.ts'
import { eachTarget } from './target.ts'
import { unknownId, World } from './world.ts'

const deny = { type: 'deny', config: {} }
const log = { type: 'log', config: { metadata: { a: 'b' } } }
const rule = (...actions: unknown[]) => ({ inbound: [{ actions: [log] }, { actions }] })
const when = (expression: unknown) => ({ inbound: [{ expressions: ['true', expression], actions: [deny] }] })

interface Bad {
  readonly what: string
  readonly policy: Readonly<Record<string, unknown>>
  /** The path that the message must name. */
  readonly at: string
  readonly hosts?: readonly HostKind[]
}

const route: readonly HostKind[] = ['https_edge_route']
const edges: readonly HostKind[] = ['tcp_edge', 'tls_edge']

const bad: readonly Bad[] = [
  { what: 'an unknown action', policy: rule({ type: 'explode' }), at: 'inbound[1].actions[0].type' },
  { what: 'an action without a type', policy: rule(log, { config: {} }), at: 'inbound[1].actions[1].type' },
  { what: 'a type that is not a string', policy: rule({ type: 7 }), at: 'inbound[1].actions[0].type' },
  { what: 'a rule without actions', policy: { inbound: [{ name: 'a' }] }, at: 'inbound[0].actions' },
  { what: 'a rule with an empty list of actions', policy: rule(), at: 'inbound[1].actions' },
  { what: 'an unknown field of a rule', policy: { inbound: [{ actions: [deny], when: 'x' }] }, at: 'inbound[0].when' },
  { what: 'an unknown field of an action', policy: rule({ ...deny, confg: {} }), at: 'inbound[1].actions[0].confg' },
  { what: 'settings other than an object', policy: rule({ ...deny, config: 'x' }), at: 'inbound[1].actions[0].config' },
  { what: 'rules that are not a list', policy: { inbound: 'deny' }, at: 'inbound' },
  {
    what: 'expressions that are not a list',
    policy: { inbound: [{ expressions: 'true', actions: [deny] }] },
    at: 'inbound[0].expressions',
  },
  { what: 'an expression that is not a string', policy: when(true), at: 'inbound[0].expressions[1]' },
  { what: 'an expression that does not parse', policy: when('conn.client_ip =='), at: 'inbound[0].expressions[1]' },
  { what: 'an expression with an open string', policy: when("conn.client_ip == 'a"), at: 'inbound[0].expressions[1]' },
  { what: 'an unknown variable', policy: when("nobody == 'a'"), at: 'inbound[0].expressions[1]' },
  { what: 'an unknown field of a variable', policy: when("conn.client_up == 'a'"), at: 'inbound[0].expressions[1]' },
  { what: 'an unknown function', policy: when('explode(conn.client_ip)'), at: 'inbound[0].expressions[1]' },
  { what: 'an expression that is not a condition', policy: when("'a'"), at: 'inbound[0].expressions[1]' },
  {
    what: 'unknown settings',
    policy: rule({ type: 'deny', config: { status: 403 } }),
    at: 'inbound[1].actions[0].config.status',
  },
  {
    what: 'a status out of range',
    policy: rule({ type: 'deny', config: { status_code: 200 } }),
    at: 'inbound[1].actions[0].config.status_code',
  },
  {
    what: 'a network with host bits',
    policy: rule({ type: 'restrict-ips', config: { allow: ['::/0', '10.0.0.1/8'] } }),
    at: 'inbound[1].actions[0].config.allow[1]',
  },
  { what: 'required settings left out', policy: rule({ type: 'log' }), at: 'inbound[1].actions[0].config.metadata' },
  {
    what: 'an action for requests among responses',
    policy: { outbound: [{ actions: [{ type: 'redirect', config: { to: '/' } }] }] },
    at: 'outbound[0].actions[0].type',
    hosts: route,
  },
  {
    what: 'a variable of the response among requests',
    policy: when('res.status_code == 200'),
    at: 'inbound[0].expressions[1]',
    hosts: route,
  },
  {
    what: 'a header of the connection',
    policy: rule({ type: 'add-headers', config: { headers: { Connection: 'x' } } }),
    at: 'inbound[1].actions[0].config.headers["Connection"]',
    hosts: route,
  },
  {
    what: 'a broken pattern',
    policy: rule({ type: 'url-rewrite', config: { from: '(', to: '/' } }),
    at: 'inbound[1].actions[0].config.from',
    hosts: route,
  },
  {
    what: 'a broken placeholder',
    policy: rule({ type: 'add-headers', config: { headers: { a: '${nobody}' } } }),
    at: 'inbound[1].actions[0].config.headers["a"]',
    hosts: route,
  },
  {
    what: 'an action of HTTP',
    policy: rule({ type: 'redirect', config: { to: '/' } }),
    at: 'inbound[1].actions[0].type',
    hosts: edges,
  },
  { what: 'a variable of HTTP', policy: when("req.method == 'GET'"), at: 'inbound[0].expressions[1]', hosts: edges },
  { what: 'outbound rules', policy: { outbound: [{ actions: [log] }] }, at: 'outbound', hosts: edges },
]

/** Values of other modules of a route. */
const badValues: readonly (readonly [string, Record<string, unknown>, string])[] = [
  ['user_agent_filter', { allow: ['ok', '('] }, 'allow[1]'],
  ['user_agent_filter', { deny: ['(?=a)'] }, 'deny[0]'],
  ['user_agent_filter', { deny: ['(a)\\1'] }, 'deny[0]'],
  ['user_agent_filter', { deny: ['a'.repeat(1025)] }, 'deny[0]'],
  ['user_agent_filter', { allow: Array(101).fill('a') }, 'allow'],
  ['user_agent_filter', { allow: ['(?:[ab]{100}){1000}'] }, 'allow[0]'],
  ['request_headers', { add: { 'user-agent': 'x' } }, 'add["user-agent"]'],
  ['request_headers', { add: { 'Content-Length': '1' } }, 'add["Content-Length"]'],
  ['request_headers', { add: { 'Transfer-Encoding': 'chunked' } }, 'add["Transfer-Encoding"]'],
  ['request_headers', { add: { Connection: 'close' } }, 'add["Connection"]'],
  ['request_headers', { add: { 'a b': 'x' } }, 'add["a b"]'],
  ['request_headers', { add: { a: 'x\r\ny: z' } }, 'add["a"]'],
  ['request_headers', { add: { a: 'x\ny' } }, 'add["a"]'],
  ['request_headers', { add: { a: 'x\u0000y' } }, ''],
  ['request_headers', { remove: ['ok', 'User-Agent'] }, 'remove[1]'],
  ['request_headers', { remove: ['upgrade'] }, 'remove[0]'],
  ['request_headers', { add: { a: 1 } }, 'add["a"]'],
  ['request_headers', { remove: 'a' }, 'remove'],
  ['response_headers', { add: { 'Content-Length': '1' } }, 'add["Content-Length"]'],
  ['response_headers', { add: { a: 'x\r\ny: z' } }, 'add["a"]'],
  ['response_headers', { add: { 'Postern-Error-Code': 'x' } }, 'add["Postern-Error-Code"]'],
  ['response_headers', { remove: ['ok', 'postern-error-code'] }, 'remove[1]'],
  ['response_headers', { remove: ['ok', 'Transfer-Encoding'] }, 'remove[1]'],
  ['circuit_breaker', { tripped_duration: 0 }, 'tripped_duration'],
  ['circuit_breaker', { rolling_window: 0 }, 'rolling_window'],
  ['circuit_breaker', { num_buckets: 129 }, 'num_buckets'],
  ['circuit_breaker', { volume_threshold: -1 }, 'volume_threshold'],
  ['circuit_breaker', { error_threshold_percentage: 50 }, 'error_threshold_percentage'],
  ['webhook_verification', { provider: 'sns', secret: 'x' }, 'provider'],
  ['webhook_verification', { provider: 'github' }, 'secret'],
  ['webhook_verification', { provider: 'github', secret: '' }, 'secret'],
]

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  describe('a policy is refused for', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    for (const { what, policy, at, hosts = [...edges, ...route] } of bad) {
      for (const host of hosts) {
        test(`${what} (${host}), naming rule and field, and nothing changes`, async () => {
          const { path } = await world.make(host, { policy: { inbound: [{ actions: [deny] }] } })
          const before = await target.api.get(path)
          await refuses('PUT', `${path}/policy`, policy, `\`${at}\``)
          await refuses('PATCH', path, { description: 'new', policy }, `\`policy.${at}\``)
          // A disabled policy is checked too: enabling it later must not make it invalid.
          await refuses('PUT', `${path}/policy`, { ...policy, enabled: false }, `\`${at}\``)
          assert.deepEqual(await target.api.get(path), before)
        })
      }
    }
  })

  describe('a value of a module is refused', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    for (const [module, body, at] of badValues) {
      test(`${module} ${JSON.stringify(body).slice(0, 60)}`, async () => {
        const { path } = await world.shared('https_edge_route')
        await refuses('PUT', `${path}/${module}`, body, at && `\`${at}\``)
        await refuses('PATCH', path, { [module]: body }, at && `\`${module}.${at}\``)
        await target.api.refused('ERR_MODULE_NOT_SET', 'GET', `${path}/${module}`)
      })
    }
  })

  test('for an unknown action the nearest known one is suggested', async () => {
    const { path } = await world.make('https_edge_route')
    await refuses('PUT', `${path}/policy`, rule({ type: 'add-header' }), '`add-headers`')
  })

  test('an IP policy that a rule refers to must exist, and cannot be deleted', async () => {
    const using = (id: string) => ({
      inbound: [{ actions: [{ type: 'restrict-ips', config: { ip_policies: [id] } }] }],
    })
    const ipPolicy = await world.make('ip_policy')
    for (const host of ['tcp_edge', 'tls_edge', 'https_edge_route'] as const) {
      const { path } = await world.make(host)
      const missing = unknownId('ipp_')
      const { msg } = await target.api.refused('ERR_UNKNOWN_REFERENCE', 'PUT', `${path}/policy`, {
        body: using(missing),
      })
      assert.ok(msg.includes(missing) && msg.includes('inbound[0].actions[0].config.ip_policies[0]'), msg)
      await target.api.put(`${path}/policy`, using(ipPolicy.id))
      await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', ipPolicy.path)
      await target.api.put(`${path}/policy`, { inbound: [{ actions: [deny] }] })
    }
    await target.api.delete(ipPolicy.path)
  })

  async function refuses(method: string, path: string, body: object, ...names: readonly string[]): Promise<void> {
    const { status, body: answer, text } = await target.api.send(method, path, { body })
    assert.equal(status, 400, text)
    for (const name of names) assert.ok(answer.msg.includes(name), `${name} is not in: ${answer.msg}`)
  }
})
