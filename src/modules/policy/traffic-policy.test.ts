import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check } from '../../lib/shape/check.ts'
import type { ModuleConfig, Place } from '../module.ts'
import { policy, policyMentions } from './form.ts'
import { trafficPolicy } from './traffic-policy.ts'

function put(value: unknown, place: Place = 'route', at = ''): ModuleConfig {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return trafficPolicy.read(check(trafficPolicy.form, { value: text }) as ModuleConfig, { place, at })
}

const log = { type: 'log', config: { metadata: { a: 'b' } } }
const deny = { type: 'deny' }
const rules = [{ name: 'n', expressions: ['true'], actions: [deny] }]

const documents: Readonly<Record<string, readonly [Place, unknown, Record<string, unknown>]>> = {
  'the older names on a route': ['route', { inbound: rules, outbound: [] }, { inbound: rules, outbound: [] }],
  'the older names on a TCP edge': ['tcp', { inbound: rules }, { inbound: rules }],
  'phases of a route': ['route', { on_http_request: rules, on_http_response: [] }, { inbound: rules, outbound: [] }],
  'one phase of a route': ['route', { on_http_response: [] }, { outbound: [] }],
  'the phase of a TCP edge': ['tcp', { on_tcp_connect: rules }, { inbound: rules }],
  'the phase of a TLS edge': ['tls', { on_tcp_connect: rules }, { inbound: rules }],
  'no rules': ['tls', {}, {}],
  'null for what is left out': ['route', { inbound: null, on_http_request: rules }, { inbound: rules }],
  YAML: ['route', 'inbound:\n- name: n\n  expressions: ["true"]\n  actions:\n  - type: deny\n', { inbound: rules }],
  'a single rule and action for a list of one': [
    'route',
    { on_http_request: { name: 'n', expressions: ['true'], actions: deny } },
    { inbound: rules },
  ],
}

for (const [what, [place, document, expected]] of Object.entries(documents)) {
  test(`reads ${what} into the rules of \`policy\``, () => {
    const { written: _, ...stored } = put(document, place)
    assert.deepEqual(stored, { enabled: true, ...expected })
  })
}

const refused: readonly (readonly [string, Place, unknown, string, RegExp])[] = [
  ['both kinds of names', 'route', { inbound: [], on_http_request: [] }, 'value: on_http_request', /keep to one kind/],
  ['connections on a route', 'route', { on_tcp_connect: [] }, 'value: on_tcp_connect', /use `on_http_request` or/],
  [
    'requests on a TCP edge',
    'tcp',
    { on_http_request: [] },
    'value: on_http_request',
    /TCP edge; use `on_tcp_connect`/,
  ],
  ['responses on a TLS edge', 'tls', { on_http_response: [] }, 'value: on_http_response', /use `on_tcp_connect`/],
  ['outbound rules on a TCP edge', 'tcp', { outbound: [{ actions: [log] }] }, 'value: outbound', /takes no rules/],
  ['an unknown name', 'route', { inbuond: [] }, 'value: inbuond', /did you mean `(traffic_policy\.)?value: inbound`/],
  ['what stands beside it elsewhere', 'route', { enabled: true }, 'value: enabled', /not a known field/],
  ['text alone', 'route', 'deny everything', 'value', /must hold an object/],
  ['a list', 'route', '[]', 'value', /must hold an object/],
  ['nothing', 'route', '# only a comment', 'value', /must hold an object/],
  ['broken YAML', 'route', 'inbound: [', 'value', /not valid YAML at line 1/],
  ['broken JSON', 'route', '{"inbound": [}', 'value', /not valid YAML at line 1/],
  ['JSON with a key twice', 'route', '{"inbound": [], "inbound": []}', 'value', /twice/],
  ['JSON that is deep', 'route', `{"inbound":${'['.repeat(40)}${']'.repeat(40)}}`, 'value', /deeper than 32/],
  ['JSON with __proto__', 'route', '{"__proto__": {"inbound": []}}', 'value', /`__proto__`/],
  ['JSON with NUL', 'route', '{"inbound": [{"name": "\\u0000"}]}', 'value', /NUL/],
  [
    'an unknown action',
    'route',
    { on_http_request: [{ actions: [{ type: 'denny' }] }] },
    'value: on_http_request[0].actions[0].type',
    /did you mean `deny`/,
  ],
  [
    'an action elsewhere',
    'route',
    { on_http_response: [{ actions: [deny] }] },
    'value: on_http_response[0].actions[0].type',
    /works in `on_http_request` only/,
  ],
  [
    'a variable elsewhere',
    'route',
    { on_http_request: [{ expressions: ['res.status_code == 1'], actions: [deny] }] },
    'value: on_http_request[0].expressions[0]',
    /move the rule to `on_http_response`/,
  ],
  [
    'a function elsewhere',
    'route',
    { on_http_request: [{ expressions: ["hasResHeader('a')"], actions: [deny] }] },
    'value: on_http_request[0].expressions[0]',
    /in `on_http_response` of routes/,
  ],
  [
    'bad settings',
    'tcp',
    { on_tcp_connect: [{ actions: [{ ...deny, config: { status_code: 200 } }] }] },
    'value: on_tcp_connect[0].actions[0].config.status_code',
    /between 400 and 599/,
  ],
  ['a rule without actions', 'tcp', { inbound: [{}] }, 'value: inbound[0].actions', /is required/],
]

for (const [what, place, document, field, message] of refused) {
  test(`refuses ${what}, by name`, () => {
    for (const at of ['', 'traffic_policy.']) {
      assert.throws(
        () => put(document, place, at),
        (error) => {
          assert.ok(error instanceof Error && /Refusal|BadValue/.test(error.name), String(error))
          assert.ok(error.message.startsWith(`\`${at}${field}\``), error.message)
          assert.match(error.message, message)
          return true
        },
      )
    }
  })
}

test('needs a value that is text, of bounded length', () => {
  const bad = (body: unknown, kind: string) =>
    assert.throws(() => check(trafficPolicy.form, body), { field: 'value', kind })
  bad({}, 'required')
  bad({ value: '' }, 'value')
  bad({ value: { inbound: [] } }, 'type')
  bad({ value: ' '.repeat(512 * 1024 + 1) }, 'too_long')
})

test('JSON may be longer than YAML', () => {
  const actions = [{ type: 'custom-response', config: { body: 'x'.repeat(60_000) } }]
  const long = [1, 2, 3].map((n) => ({ expressions: [`req.content_length == ${n}`], actions }))
  const { value } = trafficPolicy.show(put({ inbound: long }))
  put(value)
  assert.throws(() => put(`# ${String(value)}`), { code: 'BAD_POLICY', message: /too long for YAML/ })
})

test('shows the text it was read from, and otherwise compact JSON', () => {
  const text = '# ours\ninbound:   [ {actions: {type: deny}} ]\n'
  assert.deepEqual(trafficPolicy.show(put(text)), { enabled: true, value: text })
  assert.deepEqual(trafficPolicy.show({ enabled: false, inbound: rules }), {
    enabled: false,
    value: JSON.stringify({ inbound: rules }),
  })
  assert.deepEqual(trafficPolicy.show({ enabled: true }), { enabled: true, value: '{}' })
})

test('what it shows reads back as the same rules', () => {
  const before = { enabled: true, inbound: rules, outbound: [] }
  const { written: _, ...after } = put(trafficPolicy.show(before).value)
  assert.deepEqual(after, before)
})

test('names the IP policies by their place in the text', () => {
  const restrict = [{ actions: [{ type: 'restrict-ips', config: { ip_policies: ['ipp_1'] } }] }]
  const [mention] = policyMentions(put({ on_tcp_connect: restrict }, 'tls'))
  assert.equal(mention?.field, 'value: on_tcp_connect[0].actions[0].config.ip_policies[0]')
})

test('the text is sealed with the rules, since it holds the same secrets', () => {
  for (const field of Object.keys(put({ inbound: [], outbound: [] }))) {
    assert.ok(field === 'enabled' || policy.secrets?.includes(field), field)
  }
})
