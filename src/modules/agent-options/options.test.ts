import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { type AgentModules, BindRefusal } from '../../model/endpoint.ts'
import { testTools } from '../testing/test-tools.ts'
import { modulesInOrder } from '../traffic.ts'
import { agentModules } from './options.ts'

type Opts = Readonly<Record<string, unknown>>
const protos = ['http', 'https', 'tcp', 'tls'] as const

/** What a bind asks for; fails when it is refused. */
function asked(proto: (typeof protos)[number], opts: Opts): AgentModules {
  const result = agentModules(proto, opts)
  if (result instanceof BindRefusal) assert.fail(result.message)
  // Whatever an agent may ask for can be compiled.
  for (const settings of [result.edge, result.route]) {
    for (const [name, each] of Object.entries(settings)) {
      const tools = testTools()
      const compile = modulesInOrder.find((module) => module.name === name)?.compile
      assert.ok(compile, name)
      compile(each, tools)
      assert.deepEqual(JSON.parse(JSON.stringify(each)), each, 'settings are plain data')
    }
  }
  return result
}

function refused(proto: (typeof protos)[number], opts: Opts, ngrok: number, message: RegExp = /./): void {
  const result = agentModules(proto, opts)
  assert.ok(result instanceof BindRefusal, `not refused: ${Object.keys(opts).join()}`)
  assert.equal(result.ngrok, ngrok, result.message)
  assert.match(result.message, message)
  assert.equal(result.isTaken, false)
}

const nothing = { edge: {}, route: {} }

describe('binds that ask for nothing', () => {
  test('as agents send them', () => {
    const rust = {
      Hostname: '',
      Auth: '',
      Subdomain: '',
      HostHeaderRewrite: false,
      LocalUrlScheme: null,
      ProxyProto: 0,
      Compression: null,
      CircuitBreaker: null,
      IPRestriction: null,
      BasicAuth: null,
      OAuth: null,
      OIDC: null,
      WebhookVerification: null,
      MutualTLSCA: null,
      RequestHeaders: null,
      ResponseHeaders: null,
      WebsocketTCPConverter: null,
      UserAgentFilter: null,
      Policy: null,
      TrafficPolicy: null,
    }
    for (const proto of protos) {
      assert.deepEqual(asked(proto, rust), nothing)
      assert.deepEqual(asked(proto, {}), nothing)
    }
    const tls = { Hostname: 'a', Subdomain: '', ProxyProto: 0, MutualTLSAtAgent: true, MutualTLSAtEdge: null }
    assert.deepEqual(asked('tls', { ...tls, TLSTermination: null }), nothing)
  })

  test('with empty values', () => {
    const empty = {
      OAuth: {},
      OIDC: { issuer_url: '', scopes: [] },
      Policy: { inbound: null, outbound: [] },
      TrafficPolicy: '',
      RequestHeaders: { add: [], remove: null },
      UserAgentFilter: { allow: [], deny: [] },
    }
    assert.deepEqual(asked('https', empty), nothing)
  })

  for (const text of ['', ' \n', '# - type: deny\n\n  # later\n', '---\n', '{}', 'inbound: []', 'on_http_request:\n']) {
    test(`with the policy ${JSON.stringify(text)}`, () =>
      assert.deepEqual(asked('https', { TrafficPolicy: text }), nothing))
  }
})

const web: Record<string, [opts: Opts, route: Opts]> = {
  networks: [
    { IPRestriction: { allow_cidrs: ['10.0.0.0/8', '2001:DB8::/32'], deny_cidrs: ['10.1.0.0/16'] } },
    { ip_restriction: { allow: ['10.0.0.0/8', '2001:db8::/32'], deny: ['10.1.0.0/16'] } },
  ],
  'names in other cases': [
    { ipRestriction: { Allow_CIDRs: ['10.0.0.0/8'], DENY_cidrs: null } },
    { ip_restriction: { allow: ['10.0.0.0/8'], deny: [] } },
  ],
  credentials: [
    {
      BasicAuth: { credentials: [{ username: 'alan', cleartext_password: 'hunter22', hashed_password: '' }] },
      Auth: '',
    },
    { basic_auth: { credentials: [{ username: 'alan', password: 'hunter22' }] } },
  ],
  'the oldest form of credentials': [
    { Auth: 'alan:pass:word' },
    { basic_auth: { credentials: [{ username: 'alan', password: 'pass:word' }] } },
  ],
  'both forms of credentials': [
    {
      Auth: 'alan:hunter22',
      BasicAuth: { credentials: [{ username: 'grace', cleartext_password: 'hopper99' }] },
    },
    {
      basic_auth: {
        credentials: [
          { username: 'alan', password: 'hunter22' },
          { username: 'grace', password: 'hopper99' },
        ],
      },
    },
  ],
  'a circuit breaker': [
    { CircuitBreaker: { error_threshold: 0.25 } },
    {
      circuit_breaker: {
        trippedSeconds: 10,
        windowSeconds: 10,
        buckets: 10,
        volumeThreshold: 20,
        errorThreshold: 0.25,
      },
    },
  ],
  switches: [
    { Compression: {}, WebsocketTCPConverter: {} },
    { compression: {}, websocket_tcp_converter: {} },
  ],
  headers: [
    {
      RequestHeaders: { add: ['x-a:1', 'x-a: 2', 'x-b:a:b', 'host:x.local', 'x-empty:'], remove: ['Host', 'x-c'] },
      ResponseHeaders: { add: ['x-ip:${conn.client_ip}'], remove: ['server'], addParsed: { 'x-ip': 'x' } },
    },
    {
      request_headers: {
        add: [
          ['x-a', '1'],
          ['x-a', '2'],
          ['x-b', 'a:b'],
          ['host', 'x.local'],
          ['x-empty', ''],
        ],
        remove: ['Host', 'x-c'],
      },
      response_headers: { add: [['x-ip', '${conn.client_ip}']], remove: ['server'] },
    },
  ],
  programs: [
    { UserAgentFilter: { allow: ['(?i)good'], deny: ['.*'] } },
    { user_agent_filter: { allow: ['(?i)good'], deny: ['.*'] } },
  ],
  webhooks: [
    { WebhookVerification: { provider: 'github', secret: 's3cret', sealed_secret: '' } },
    { webhook_verification: { provider: 'github', secret: 's3cret' } },
  ],
}

for (const [what, [opts, route]] of Object.entries(web)) {
  test(`an endpoint that speaks HTTP may ask for ${what}`, () => {
    for (const proto of ['http', 'https'] as const) assert.deepEqual(asked(proto, opts), { edge: {}, route })
  })

  test(`a TCP endpoint that asks for ${what} is guarded or refused`, () => {
    const result = agentModules('tcp', opts)
    // An empty object asks for what only HTTP has, so a TCP endpoint ignores it.
    if (what === 'switches') assert.deepEqual(result, nothing)
    else if (route.ip_restriction) assert.deepEqual(result, { edge: route, route: {} })
    else assert.ok(result instanceof BindRefusal && result.ngrok === 301 && /kinds of endpoints/.test(result.message))
  })
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const authority = await makeIdentity({ name: 'CN=ca', isCa: true })
const leaf = await makeIdentity({ name: 'CN=app.example.com', issuer: authority })
const ca = { mutual_tls_ca: base64(authority.certificatePem) }

describe('TLS', () => {
  test('client certificates, for https and for tls', () => {
    const https = asked('https', { MutualTLSCA: ca })
    const tls = asked('tls', { MutualTLSAtEdge: ca })
    assert.deepEqual(https, tls)
    const { authorities } = https.edge.mutual_tls as { authorities: string[] }
    assert.equal(authorities.length, 1)
    assert.match(authorities[0] ?? '', /^-----BEGIN CERTIFICATE-----/)
    const two = { mutual_tls_ca: base64(`${authority.certificatePem}\n${authority.certificatePem}`) }
    assert.equal(
      (asked('https', { MutualTLSCA: two }).edge.mutual_tls as { authorities: string[] }).authorities.length,
      2,
    )
  })

  test('an endpoint without TLS cannot ask for client certificates', () => {
    refused('http', { MutualTLSCA: ca }, 301, /https; this one is http$/)
    refused('tcp', { MutualTLSAtEdge: ca }, 301)
  })

  test('a certificate that is not an authority is refused', () => {
    refused('https', { MutualTLSCA: { mutual_tls_ca: '???' } }, 301, /PEM in base64/)
    refused('https', { MutualTLSCA: { mutual_tls_ca: base64('text') } }, 1920)
    refused('https', { MutualTLSCA: { mutual_tls_ca: base64(leaf.certificatePem) } }, 1920, /not a CA/)
    refused('https', { MutualTLSCA: {} }, 301, /required/)
    refused('https', { MutualTLSCA: { mutual_tls_ca: '' } }, 301, /required/)
  })

  test('TLS that ends here, with a certificate of ours or of the agent', () => {
    const ours = { terminate: 'edge', minVersion: null }
    assert.deepEqual(asked('tls', { TLSTermination: {} }).edge, { tls_termination: ours })
    assert.deepEqual(asked('tls', { TLSTermination: { cert: '', key: null } }).edge, { tls_termination: ours })
    const [cert, key] = [leaf.certificatePem, leaf.privateKeyPem]
    const own = { cert: base64(cert), key: base64(key) }
    assert.deepEqual(asked('tls', { TLSTermination: own }).edge.tls_termination, {
      ...ours,
      certificate: { cert, key },
    })
  })

  test('half a certificate, a wrong key or a sealed one are refused', async () => {
    const cert = base64(leaf.certificatePem)
    const other = await makeIdentity()
    refused('tls', { TLSTermination: { cert } }, 301, /together/)
    refused('tls', { TLSTermination: { cert, sealed_key: base64('x') } }, 301, /together/)
    refused('tls', { TLSTermination: { cert, key: base64(other.privateKeyPem) } }, 1923)
    refused('tls', { TLSTermination: { cert, key: base64('x') } }, 1903)
    refused('tls', { TLSTermination: { cert: base64('x'), key: base64(leaf.privateKeyPem) } }, 1920)
    refused('https', { TLSTermination: { cert, key: base64(leaf.privateKeyPem) } }, 301, /kinds of endpoints/)
  })
})

const headersOf = (count: number) => Array.from({ length: count }, (_, i) => `x-${i}:v`)

const DENY = 'inbound: [{actions: [{type: deny}]}]'

const bad: [opts: Opts, ngrok: number, message?: RegExp][] = [
  [{ IPRestriction: { deny_cidrs: ['10.0.0.0/8'] } }, 393],
  [{ IPRestriction: {} }, 393],
  [{ IPRestriction: { allow_cidrs: ['10.0.0.1'] } }, 362, /10\.0\.0\.1\/32/],
  [{ IPRestriction: { allow_cidrs: ['10.1.2.3/24'] } }, 362, /lowest/],
  [{ IPRestriction: { allow_cidrs: ['0.0.0.0/0'], deny_cidrs: ['nonsense'] } }, 362],
  [{ IPRestriction: { allow_cidrs: '10.0.0.0/8' } }, 301, /`IPRestriction\.allow_cidrs` must be a list/],
  [{ IPRestriction: { allow_cidrs: Array(1001).fill('10.0.0.0/8') } }, 301],
  [{ IPRestriction: { allow_cidrs: ['10.0.0.0/8'], ip_policies: ['ipp_1'] } }, 301, /not a known field/],
  [{ IPRestriction: 'x' }, 301],
  [{ IPRestriction: [] }, 301],
  [{ IPRestriction: true }, 301],
  [{ BasicAuth: {} }, 359],
  [{ BasicAuth: { credentials: [{ username: '', cleartext_password: 'hunter22' }] } }, 359],
  [{ BasicAuth: { credentials: [{ username: 'a:b', cleartext_password: 'hunter22' }] } }, 359],
  [{ BasicAuth: { credentials: [{ username: 'a', cleartext_password: 'short' }] } }, 360, /has 5/],
  [{ BasicAuth: { credentials: [{ username: 'a', cleartext_password: 'x'.repeat(129) }] } }, 360],
  [{ BasicAuth: { credentials: [{ username: 'a', hashed_password: 'eA==' }] } }, 301, /in clear/],
  [{ BasicAuth: { credentials: Array(11).fill({ username: 'a', cleartext_password: 'hunter22' }) } }, 301],
  [{ Auth: 'nocolon' }, 359],
  [{ Auth: ':hunter22' }, 359],
  [{ Auth: 'alan:short' }, 360],
  [{ Auth: { user: 'alan' } }, 301],
  [{ CircuitBreaker: {} }, 361],
  [{ CircuitBreaker: { error_threshold: 1.5 } }, 361],
  [{ CircuitBreaker: { error_threshold: '0.5' } }, 361],
  [{ CircuitBreaker: 0.5 }, 361],
  [{ Compression: 'gzip' }, 301],
  [{ WebsocketTCPConverter: 1 }, 301],
  [{ UserAgentFilter: { deny: ['('] } }, 2090, /`UserAgentFilter\.deny\[0\]`/],
  [{ UserAgentFilter: { deny: ['(?=x)'] } }, 2090],
  [{ UserAgentFilter: { deny: Array(101).fill('a') } }, 301],
  [{ UserAgentFilter: { deny: ['a'.repeat(1025)] } }, 301],
  [{ WebhookVerification: { secret: 's' } }, 363],
  [{ WebhookVerification: { provider: 'sns' } }, 364],
  [{ WebhookVerification: { provider: '__proto__', secret: 's' } }, 364],
  [{ WebhookVerification: { provider: 'github' } }, 301, /secret/],
  [{ WebhookVerification: { provider: 'github', sealed_secret: 'eA==' } }, 301, /secret/],
  [{ WebhookVerification: { provider: 'sendgrid', secret: 'x' } }, 379],
  [{ RequestHeaders: { add: ['nocolon'] } }, 370],
  [{ ResponseHeaders: { add: ['nocolon'] } }, 371],
  [{ RequestHeaders: { add: ['a b:c'] } }, 372],
  [{ RequestHeaders: { remove: [''] } }, 372],
  [{ ResponseHeaders: { remove: ['a b'] } }, 373],
  [{ RequestHeaders: { add: ['User-Agent:x'] } }, 372],
  [{ RequestHeaders: { remove: ['Connection'] } }, 372],
  [{ RequestHeaders: { add: ['Transfer-Encoding:chunked'] } }, 372],
  [{ RequestHeaders: { add: ['postern-auth-user-id:root'] } }, 372],
  [{ ResponseHeaders: { remove: ['Postern-Error-Code'] } }, 373],
  [{ RequestHeaders: { add: ['a:b\r\nc:d'] } }, 374],
  [{ RequestHeaders: { add: ['X-A:1', 'x-a:2'] } }, 375],
  [{ RequestHeaders: { add: headersOf(101) } }, 376],
  [{ ResponseHeaders: { remove: headersOf(101) } }, 376],
  [{ RequestHeaders: { add: [`${'x'.repeat(257)}:v`] } }, 377],
  [{ RequestHeaders: { add: [`x:${'v'.repeat(4097)}`] } }, 378],
  [{ RequestHeaders: { remove: ['host'] } }, 398],
  [{ Policy: { inbound: [{ actions: [] }] } }, 2201, /actions/],
  // Programs written for the vendor's server match these words.
  [
    { TrafficPolicy: '{ "inbound": "not valid" }' },
    2201,
    /provided is invalid: `TrafficPolicy: inbound` must be a list/,
  ],
  [{ TrafficPolicy: '{{' }, 2201, /provided is invalid: `TrafficPolicy` is not valid YAML/],
  [{ Policy: { inbound: 'not valid' } }, 2201, /provided is invalid: `Policy\.inbound`/],
  [
    { TrafficPolicy: 'inbound: [{actions: [{type: nope}]}]' },
    2201,
    /`TrafficPolicy: inbound.*Invalid policy action type 'nope'\./,
  ],
  [
    { TrafficPolicy: 'inbound: [{actions: [{type: restrict-ips, config: {ip_policies: [ipp_1]}}]}]' },
    2201,
    /an agent's policy cannot/,
  ],
  [{ Policy: { inbound: [{ actions: [{ type: 'deny' }] }] }, TrafficPolicy: DENY }, 301, /keep one/],
]

for (const [opts, ngrok, message] of bad) {
  test(`refuses ${JSON.stringify(opts).slice(0, 90)} with ${ngrok}`, () => refused('https', opts, ngrok, message))
}

test('headers with too many variables are refused, as for a stored route', () => {
  const add = [`a:${'${x}'.repeat(600)}`, `b:${'${x}'.repeat(401)}`]
  for (const side of ['RequestHeaders', 'ResponseHeaders']) {
    const refused = agentModules('https', { [side]: { Add: add } })
    assert.ok(refused instanceof BindRefusal)
    assert.match(refused.message, /`b` of `\w+` brings the values to over 1000/)
  }
})

const bytesOf = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64')
const answer = { type: 'custom-response', config: { status_code: 222 } }
const asRead = {
  inbound: [{ name: 'no', expressions: ["req.Method == 'PUT'"], actions: [{ type: 'deny' }] }],
  outbound: [{ name: '', expressions: ["res.StatusCode == '200'"], actions: [answer] }],
}
const asSent: Record<string, Opts> = {
  'a text in lower case': { TrafficPolicy: JSON.stringify(asRead) },
  'a text of the Rust library': {
    TrafficPolicy: JSON.stringify({
      Inbound: [{ Name: 'no', Expressions: ["req.Method == 'PUT'"], Actions: [{ Type: 'deny' }] }],
      Outbound: [
        { Name: '', Expressions: ["res.StatusCode == '200'"], Actions: [{ Type: answer.type, Config: answer.config }] },
      ],
    }),
  },
  'an object of the library for Go': {
    Policy: {
      inbound: [{ ...asRead.inbound[0], actions: [{ type: 'deny', config: bytesOf(null) }] }],
      outbound: [
        { expressions: ["res.StatusCode == '200'"], actions: [{ type: answer.type, config: bytesOf(answer.config) }] },
      ],
    },
  },
}

/** The rules that a route would have, as plain objects. */
function rulesIn({ route }: Exclude<ReturnType<typeof agentModules>, BindRefusal>): unknown {
  const { inbound, outbound } = route.policy as { inbound: unknown; outbound: unknown }
  return JSON.parse(JSON.stringify({ inbound, outbound }))
}

for (const [what, opts] of Object.entries(asSent)) {
  test(`the rules of a policy may come as ${what}`, () => {
    const found = agentModules('https', opts)
    if (found instanceof BindRefusal) assert.fail(found.message)
    assert.deepEqual(rulesIn(found), asRead)
  })
}

test('names inside the settings of an action stay as they are', () => {
  const Config = { headers: { 'X-Frame': 'a' } }
  const TrafficPolicy = JSON.stringify({ Outbound: [{ Actions: [{ Type: 'add-headers', Config }] }] })
  const found = agentModules('https', { TrafficPolicy })
  if (found instanceof BindRefusal) assert.fail(found.message)
  const actions = [{ type: 'add-headers', config: Config }]
  assert.deepEqual(rulesIn(found), { inbound: [], outbound: [{ name: '', expressions: [], actions }] })
})

for (const [opts, message] of [
  [{ TrafficPolicy: '{"Inbound": [], "inbound": [{"actions": [{"type": "deny"}]}]}' }, /`TrafficPolicy: Inbound`/],
  [{ Policy: { inbound: [{ actions: [{ type: 'deny', Type: 'log' }] }] } }, /Type/],
  [{ Policy: { inbound: [{ actions: [{ type: 'deny', config: 'no JSON' }] }] } }, /config.* must be a JSON object/],
] as const) {
  test(`two spellings of one name are refused: ${JSON.stringify(opts)}`, () => refused('https', opts, 2201, message))
}

test('a policy is served on every kind of endpoint, on its edge or on its route', () => {
  for (const proto of protos) {
    const found = agentModules(proto, { TrafficPolicy: DENY })
    assert.ok(!(found instanceof BindRefusal), proto)
    const place = proto === 'http' || proto === 'https' ? 'route' : 'edge'
    assert.equal((found[place].policy as { place: string }).place, place === 'route' ? 'route' : proto)
  }
})

test('a policy that needs the handshake is refused where TLS passes through', () => {
  const rule = `inbound: [{expressions: ["conn.tls.version == '1.3'"], actions: [{type: deny}]}]`
  refused('tls', { TrafficPolicy: rule }, 2201, /passes through/)
})

test('all problems are reported at once, with the error number of the first', () => {
  const opts = { Auth: 'alan:short', OAuth: { provider: 'google' }, IPRestriction: {} }
  refused('https', opts, 393, /allow_cidrs.*password.*OAuth/)
})

test('a guard that is given twice is refused', () => {
  const guard = { allow_cidrs: ['10.0.0.0/8'] }
  refused('tcp', { IPRestriction: guard, ipRestriction: { allow_cidrs: ['0.0.0.0/0'] } }, 301, /twice/)
  assert.deepEqual(Object.keys(asked('tcp', { IPRestriction: null, ipRestriction: guard }).edge), ['ip_restriction'])
})

test('no message repeats a secret', () => {
  const secret = 'hunter2-of-somebody'
  const opts: Opts[] = [
    { Auth: `alan:${secret.repeat(10)}` },
    { BasicAuth: { credentials: [{ username: 'a', cleartext_password: secret.repeat(10) }] } },
    { WebhookVerification: { provider: 'sendgrid', secret } },
    { WebhookVerification: { provider: 'svix', secret } },
    { TLSTermination: { cert: secret, key: secret } },
  ]
  for (const each of opts) {
    const result = agentModules('TLSTermination' in each ? 'tls' : 'https', each)
    assert.ok(result instanceof BindRefusal && !result.message.includes(secret))
  }
})

test('every option is served or refused, never dropped', () => {
  const names = [
    'IPRestriction',
    'BasicAuth',
    'Auth',
    'CircuitBreaker',
    'Compression',
    'RequestHeaders',
    'TLSTermination',
    'UserAgentFilter',
    'WebhookVerification',
    'MutualTLSCA',
    'OAuth',
    'OIDC',
    'Policy',
  ]
  const fields = [
    'allow_cidrs',
    'deny',
    'allow',
    'credentials',
    'username',
    'add',
    'remove',
    'provider',
    'secret',
    'cert',
    '__proto__',
    'error_threshold',
    'issuer_url',
    'client_id',
    'client_secret',
    'allow_emails',
  ]
  const leafValue = fc.oneof(fc.string(), fc.double(), fc.boolean(), fc.constant(null), fc.constant('10.0.0.0/8'))
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      leafValue,
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...fields), tie('tree')),
    ),
  }))
  fc.assert(
    fc.property(fc.constantFrom(...protos), fc.dictionary(fc.constantFrom(...names), tree), (proto, opts) => {
      const result = agentModules(proto, opts)
      if (!(result instanceof BindRefusal)) asked(proto, opts)
    }),
    { numRuns: 1000 },
  )
})

test('a deeply nested value is refused like any other', () => {
  let deep: unknown = []
  for (let i = 0; i < 100_000; i++) deep = [deep]
  refused('https', { IPRestriction: { allow_cidrs: deep } }, 301)
  refused('https', { BasicAuth: deep }, 301)
})
