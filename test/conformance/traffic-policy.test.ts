/** `traffic_policy`, the second spelling of `policy`: both read and write the same value (R-4.1, R-4.2). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Json } from '../support/api-client.ts'
import { databaseContents } from '../support/database-contents.ts'
import { type HostKind, spellingCases } from './module-table.ts'
import { eachTarget, unique } from './target.ts'
import { isModuleOn } from './ways-to-the-store.ts'
import { unknownId, World } from './world.ts'

const rules = [{ name: 'n', expressions: ['true'], actions: [{ type: 'deny', config: {} }] }]
const text = (first: string) =>
  `# kept\n${first}:\n- {name: n, expressions: ["true"], actions: [{type: deny, config: {}}]}\n`
const phase: Readonly<Record<string, string>> = {
  tcp_edge: 'on_tcp_connect',
  tls_edge: 'on_tcp_connect',
  https_edge_route: 'on_http_request',
}
const plain = (value: Record<string, unknown>) => ({ enabled: true, inbound: null, outbound: null, ...value })

/** What was done to an edge or route, and what the two spellings then show; null when unset. */
interface Case {
  readonly steps: readonly (readonly [method: string, part: string, body?: unknown])[]
  readonly policy: unknown
  readonly value: string | null
}

const cases = (first: string): Readonly<Record<string, Case>> => ({
  'set as traffic_policy': {
    steps: [['PUT', '/traffic_policy', { value: text(first) }]],
    policy: plain({ inbound: rules }),
    value: text(first),
  },
  'set as traffic_policy under the older names': {
    steps: [['PUT', '/traffic_policy', { value: text('inbound'), enabled: false }]],
    policy: plain({ enabled: false, inbound: rules }),
    value: text('inbound'),
  },
  'set as policy': {
    steps: [['PUT', '/policy', { inbound: rules }]],
    policy: plain({ inbound: rules }),
    value: JSON.stringify({ inbound: rules }),
  },
  'set as traffic_policy, then as policy': {
    steps: [
      ['PUT', '/traffic_policy', { value: text(first) }],
      ['PUT', '/policy', { outbound: [] }],
    ],
    policy: plain({ outbound: [] }),
    value: '{"outbound":[]}',
  },
  'set as policy, then as traffic_policy': {
    steps: [
      ['PUT', '/policy', { inbound: rules, outbound: [] }],
      ['PUT', '/traffic_policy', { value: text(first) }],
    ],
    policy: plain({ inbound: rules }),
    value: text(first),
  },
  'updated as traffic_policy': {
    steps: [
      ['PUT', '/policy', { outbound: [] }],
      ['PATCH', '', { traffic_policy: { value: text(first) }, policy: null }],
    ],
    policy: plain({ inbound: rules }),
    value: text(first),
  },
  'updated as policy': {
    steps: [
      ['PUT', '/traffic_policy', { value: text(first) }],
      ['PATCH', '', { policy: { inbound: [] }, traffic_policy: null }],
    ],
    policy: plain({ inbound: [] }),
    value: '{"inbound":[]}',
  },
  'unchanged by an update without it': {
    steps: [
      ['PUT', '/traffic_policy', { value: text(first) }],
      ['PATCH', '', { description: 'new', traffic_policy: null }],
    ],
    policy: plain({ inbound: rules }),
    value: text(first),
  },
  'set as traffic_policy, deleted as policy': {
    steps: [
      ['PUT', '/traffic_policy', { value: text(first) }],
      ['DELETE', '/policy'],
    ],
    policy: null,
    value: null,
  },
  'set as policy, deleted as traffic_policy': {
    steps: [
      ['PUT', '/policy', { inbound: rules }],
      ['DELETE', '/traffic_policy'],
      ['DELETE', '/traffic_policy'],
    ],
    policy: null,
    value: null,
  },
})

/** Ten aliases of ten aliases of ten …. */
const laughs = Array.from({ length: 9 }, (_, i) => {
  return `a${i}: &a${i} [${Array(10)
    .fill(i === 0 ? 'lol' : `*a${i - 1}`)
    .join(', ')}]`
}).join('\n')

const hostile: Readonly<Record<string, string>> = {
  'a billion laughs': laughs,
  'lists in lists': '['.repeat(60_000),
  'a megabyte': `# ${'x'.repeat(1_000_000)}\ninbound: []`,
  'a tag of JavaScript': 'inbound: !!js/function "function () { process.exit() }"',
  'an unknown tag': 'inbound: !exec [rm]',
  'a key twice': 'inbound: []\ninbound: []',
  'the prototype': '__proto__:\n  inbound: []',
  'a NUL': 'inbound:\n- name: "a\\0b"\n  actions: {type: deny}',
  'an alias of itself': 'inbound: &a [*a]',
}

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  for (const { host, least, full } of spellingCases.filter((each) => isModuleOn(target, each))) {
    const first = phase[host] ?? ''

    describe(`the policy of ${host}`, () => {
      for (const [what, { steps, policy, value }] of Object.entries(cases(first))) {
        test(what, async () => {
          const { path } = await world.make(host)
          for (const [method, part, body] of steps) {
            const { status, text } = await target.api.send(method, path + part, body === undefined ? {} : { body })
            assert.ok(status < 300, text)
          }
          const shown: Json = await target.api.get(path)
          assert.deepEqual(shown.policy, policy)
          assert.ok(!JSON.stringify(shown).includes('traffic_policy'))
          if (value === null) {
            for (const name of ['policy', 'traffic_policy']) {
              const { msg } = await target.api.refused('ERR_MODULE_NOT_SET', 'GET', `${path}/${name}`)
              assert.match(msg, RegExp(`\`${name}\``))
            }
            return
          }
          const { enabled } = policy as { enabled: boolean }
          assert.deepEqual(await target.api.get(`${path}/policy`), policy)
          assert.deepEqual(await target.api.get(`${path}/traffic_policy`), { enabled, value })
        })
      }

      test('is replaced whole in this spelling too, with defaults', async () => {
        const { path } = await world.make(host)
        for (const example of [full, least, full]) {
          // These examples refer to no resources.
          const { body, answer } = (example as () => ReturnType<typeof example>)()
          assert.deepEqual(await target.api.put(`${path}/traffic_policy`, body), answer)
          assert.deepEqual(await target.api.get(`${path}/traffic_policy`), answer)
        }
      })

      test('can be set at creation in either spelling, but not in both', async () => {
        const made = await world.make(host, { traffic_policy: { value: text(first) } })
        assert.deepEqual(made.body.policy, plain({ inbound: rules }))
        assert.ok(!Object.hasOwn(made.body, 'traffic_policy'))
        const both = { description: 'new', policy: { inbound: [] }, traffic_policy: { value: '{}' } }
        const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PATCH', made.path, { body: both })
        assert.match(msg, /`policy` and `traffic_policy` are two spellings of one value/)
        assert.deepEqual(await target.api.get(made.path), made.body)
      })

      test('is refused with the position in the text, and nothing changes', async () => {
        const { path } = await world.make(host, { traffic_policy: { value: text(first) } })
        const broken = { value: JSON.stringify({ [first]: [{ actions: [{ type: 'denny' }] }] }) }
        const field = `value: ${first}[0].actions[0].type`
        const put = await target.api.refused('ERR_BAD_POLICY', 'PUT', `${path}/traffic_policy`, { body: broken })
        assert.ok(put.msg.includes(`\`${field}\``), put.msg)
        const patch = { description: 'new', traffic_policy: broken }
        const patched = await target.api.refused('ERR_BAD_POLICY', 'PATCH', path, { body: patch })
        assert.ok(patched.msg.includes(`\`traffic_policy.${field}\``), patched.msg)
        assert.equal((await target.api.get(`${path}/traffic_policy`)).value, text(first))
        assert.notEqual((await target.api.get(path)).description, 'new')
      })

      test('protects what it refers to from deletion', async () => {
        const { path } = await world.make(host)
        const restrict = (id: string) => ({
          value: JSON.stringify({ [first]: [{ actions: [{ type: 'restrict-ips', config: { ip_policies: [id] } }] }] }),
        })
        const unknown = { body: restrict(unknownId('ipp_')) }
        const { msg } = await target.api.refused('ERR_UNKNOWN_REFERENCE', 'PUT', `${path}/traffic_policy`, unknown)
        assert.ok(msg.includes(`\`value: ${first}[0].actions[0].config.ip_policies[0]\``), msg)
        const used = await world.make('ip_policy')
        await target.api.put(`${path}/traffic_policy`, restrict(used.id))
        await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', used.path)
        await target.api.put(`${path}/traffic_policy`, { value: '{}' })
        await target.api.delete(used.path)
      })
    })
  }

  describe('phases that do not exist here', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    const elsewhere: readonly (readonly [HostKind, string])[] = [
      ['https_edge_route', 'on_tcp_connect'],
      ['tcp_edge', 'on_http_request'],
      ['tcp_edge', 'on_http_response'],
      ['tls_edge', 'on_http_request'],
      ['tls_edge', 'on_http_response'],
    ]
    for (const [host, name] of elsewhere) {
      test(`${name} of ${host}`, async () => {
        const { path } = await world.make(host)
        const body = { value: `${name}: []` }
        const { msg } = await target.api.refused('ERR_BAD_POLICY', 'PUT', `${path}/traffic_policy`, { body })
        assert.ok(msg.includes(`\`value: ${name}\``), msg)
      })
    }
  })

  test('with TLS passed through, a text that reads the handshake is refused, like rules that do', async () => {
    const { path } = await world.make('tls_edge')
    const body = { value: `on_tcp_connect: [{expressions: ["conn.tls.version == '1.3'"], actions: {type: deny}}]` }
    await target.api.refused('ERR_MODULE_NEEDS_TERMINATION', 'PUT', `${path}/traffic_policy`, { body })
  })

  describe('hostile text is refused', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    for (const [what, value] of Object.entries(hostile)) {
      test(what, async () => {
        const { path } = await world.make('https_edge_route')
        const answer = await target.api.send('PUT', `${path}/traffic_policy`, { body: { value } })
        assert.equal(answer.status, 400, answer.text.slice(0, 200))
        assert.ok(answer.body.msg.includes('`value') && answer.body.msg.length < 500, answer.body.msg)
        await target.api.refused('ERR_MODULE_NOT_SET', 'GET', `${path}/traffic_policy`)
      })
    }
  })

  test('is not shown by edges and routes, which show the older spelling', async () => {
    const { path, body } = await world.make('https_edge_route', { traffic_policy: { value: text('on_http_request') } })
    const edge = `/edges/https/${body.edge_id}`
    const tcp = await world.make('tcp_edge', { traffic_policy: { value: text('on_tcp_connect') } })
    for (const address of [path, `${path}/policy`, edge, '/edges/https', tcp.path, '/edges/tcp']) {
      const answer = await target.api.send('GET', address)
      assert.equal(answer.status, 200)
      assert.doesNotMatch(answer.text, /traffic_policy|# kept|on_http_request|on_tcp_connect/)
    }
  })

  const { platform } = target
  if (platform) {
    test('the text is neither in the database nor in the log', async () => {
      const { databaseUrl, log } = platform()
      const secret = unique('password')
      const value = `inbound: [{actions: {type: basic-auth, config: {credentials: ["ada:${secret}"]}}}]`
      const description = unique('found')
      const { path } = await world.make('https_edge_route', { description, traffic_policy: { value } })
      await target.api.put(`${path}/traffic_policy`, { value })
      assert.equal((await target.api.get(`${path}/traffic_policy`)).value, value)
      const stored = await databaseContents(databaseUrl)
      assert.ok(stored.includes(description), 'the search works')
      assert.ok(!stored.includes(secret))
      assert.ok(!log.join('').includes(secret))
    })
  }
})
