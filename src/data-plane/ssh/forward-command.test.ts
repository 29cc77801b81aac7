import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tlsIdentity } from '../../../test/support/tls-identity.ts'
import { flagsOf } from '../../link/options/take-flags.ts'
import { tunnelFlags } from '../../link/options/tunnel-flags.ts'
import { BindRefusal } from '../tunnel/interfaces.ts'
import { readCommand, type SshTunnelCommand } from './forward-command.ts'
import { planOf } from './forward-plan.ts'
import { helpText } from './ssh-help.ts'

function command(text: string): SshTunnelCommand {
  const read = readCommand(text)
  if (read instanceof BindRefusal || 'help' in read) assert.fail(`it is no command: ${JSON.stringify(read)}`)
  return read
}

function numberOf(value: unknown): number {
  assert.ok(value instanceof BindRefusal, 'it was not refused')
  return value.ngrok
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const application = { client_id: 'a', client_secret: 'b' }
const { cert: pem, key } = await tlsIdentity(['a.example'])

const understood: readonly [text: string, opts: Record<string, unknown>][] = [
  ['http', {}],
  ['http 3000', {}],
  ['http --domain=a.example', { Domain: 'a.example' }],
  ['http -domain a.example', { Domain: 'a.example' }],
  ['tls --subdomain a', { Subdomain: 'a' }],
  ['tcp --remote-addr a.example:20001 --proxy-proto 2', { Addr: 'a.example:20001', ProxyProto: 2 }],
  [
    'http --basic-auth a:b --basic-auth c:d:e',
    {
      BasicAuth: {
        credentials: [
          { username: 'a', cleartext_password: 'b' },
          { username: 'c', cleartext_password: 'd:e' },
        ],
      },
    },
  ],
  ['http --cidr-allow 10.0.0.0/8', { IPRestriction: { allow_cidrs: ['10.0.0.0/8'], deny_cidrs: [] } }],
  [
    "http --request-header-add='host: localhost' --request-header-remove=referrer",
    { RequestHeaders: { add: ['host:localhost'], remove: ['referrer'] } },
  ],
  ['http --compression --websocket-tcp-converter=true', { Compression: {}, WebsocketTCPConverter: {} }],
  ['http --compression=false', {}],
  ['http --circuit-breaker 0.5', { CircuitBreaker: { error_threshold: 0.5 } }],
  ['http --ua-filter-deny bot', { UserAgentFilter: { allow: [], deny: ['bot'] } }],
  ['http --host-header app', { RequestHeaders: { add: ['host:app'], remove: [] }, HostHeaderRewrite: true }],
  [
    'http --oauth github --oauth-client-id a --oauth-client-secret b --oauth-allow-domain c.example --oauth-scope d',
    { OAuth: { ...application, provider: 'github', allow_emails: [], allow_domains: ['c.example'], scopes: ['d'] } },
  ],
  [
    'http --oidc https://i.example --oidc-client-id a --oidc-client-secret b --oidc-allow-email x@y --oidc-allow-email z@y',
    {
      OIDC: {
        ...application,
        issuer_url: 'https://i.example',
        allow_emails: ['x@y', 'z@y'],
        allow_domains: [],
        scopes: [],
      },
    },
  ],
  [
    'http --verify-webhook github --verify-webhook-secret s',
    { WebhookVerification: { provider: 'github', secret: 's' } },
  ],
  [`http --traffic-policy '{"on_http_request": []}'`, { TrafficPolicy: '{"on_http_request": []}' }],
  ["tcp --traffic-policy 'on_tcp_connect: []'", { TrafficPolicy: 'on_tcp_connect: []' }],
  [`tls --mutual-tls-cas '${pem}'`, { MutualTLSAtEdge: { mutual_tls_ca: base64(pem) } }],
  [`http --mutual-tls-cas='${pem}'`, { MutualTLSCA: { mutual_tls_ca: base64(pem) } }],
  [
    `tls --terminate-at edge --crt '${pem}' --key '${key}'`,
    { TLSTermination: { cert: base64(pem), key: base64(key) } },
  ],
  ['tls --terminate-at edge', { TLSTermination: {} }],
]
for (const [text, opts] of understood) {
  test(`${text.split('\n')[0]} is understood`, () => assert.deepEqual(command(text).opts, opts))
}

const refused: readonly [text: string, ngrok: number, says: RegExp][] = [
  ['', 1107, /http, tls, tcp or labeled/],
  ['bash -i', 1108, /`bash`/],
  ['scp -t x', 1108, /no files/],
  ['http --domian a', 1109, /did you mean --domain/],
  ['tcp --basic-auth a:b', 1109, /is for http, not for tcp/],
  ['http --traffic-policy-file x', 1109, /give the policy itself with --traffic-policy/],
  ['http --traffic-policy-url https://x', 1109, /give the policy itself with --traffic-policy/],
  ['http --traffic-policy policy.yml', 1110, /--traffic-policy must be the content itself/],
  ['tls --mutual-tls-cas ca.pem', 1110, /--mutual-tls-cas must be the content itself/],
  ['http --upstream-verify', 1109, /use our agent/],
  ['http --authtoken x', 1109, /your SSH key identifies you/],
  ['http --oauth github', 1110, /--oauth-client-id is missing: .*; --oauth-client-secret is missing: /],
  ['http --oauth-scope a', 1110, /--oauth is missing/],
  ['http --oauth github --oidc https://i.example', 1110, /visitors log in with one of them/],
  ['http --scheme http --scheme https', 1110, /--scheme is given twice/],
  ['http --domain a --domain b', 1110, /--domain is given twice/],
  ['http --host-header rewrite', 1110, /must be a name here/],
  ['http --pooling', 1109, /or the command `labeled`/],
  ['http --pooling-enabled', 1109, /or the command `labeled`/],
  ['http --label a=b --compression', 1110, /it is set on the edge/],
  ['http --domain', 1110, /needs a value/],
  ["http --domain 'a", 1110, /quote/],
  ['http a b', 1110, /word `a`/],
  ['http --proxy-proto 3', 1110, /`1`, `2`/],
  ['http --circuit-breaker 2', 1110, /0 to 1/],
  ['http --domain a --hostname b', 1110, /one name/],
  ['http --verify-webhook github', 1110, /--verify-webhook-secret is missing/],
  ['http --cidr-deny 10.0.0.0/8', 1110, /--cidr-allow is missing/],
  ['labeled', 1110, /--label name=value/],
  ['labeled --label a', 1110, /name=value/],
  [`http ${'--compression '.repeat(501)}`, 1110, /500 words/],
]
for (const [text, ngrok, says] of refused) {
  test(`${text.slice(0, 40) || 'nothing'} is refused with ${ngrok}`, () => {
    const read = readCommand(text)
    assert.equal(numberOf(read), ngrok)
    assert.match((read as BindRefusal).message, says)
  })
}

test('a flag that only the agent has is refused with advice on what to do instead', () => {
  const own = tunnelFlags.filter(({ only }) => only === 'agent')
  assert.ok(own.length > 0)
  for (const { name, for: kinds, takes } of own) {
    const read = readCommand(`${kinds[0]} --${name}${takes === undefined ? '' : ' x'}`)
    assert.equal(numberOf(read), 1109)
    assert.match((read as BindRefusal).message, /use our agent|--traffic-policy/, name)
  }
})

test('every flag of the gateway sets an option that is read', () => {
  for (const kind of ['http', 'tls', 'tcp', 'labeled'] as const) {
    for (const { name, takes } of flagsOf('gateway', kind)) {
      const read = readCommand(`${kind} --${name}${takes === undefined ? '' : ' x'}`)
      const said = read instanceof BindRefusal ? read.message : ''
      assert.doesNotMatch(said, /known key|needs a value|is not a flag/, name)
    }
  }
})

test('the help of a command shows its flags, and none that would be refused', () => {
  for (const kind of ['http', 'tls', 'tcp', 'labeled'] as const) {
    const shown = [...helpText(kind).matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name)
    assert.deepEqual(
      shown,
      flagsOf('gateway', kind).map(({ name }) => name),
    )
  }
  assert.doesNotMatch(helpText('http'), /process lists|rewrite|<file>|--scheme.*repeatable/)
})

for (const [text, help] of [
  ['--help', undefined],
  ['help', undefined],
  ['tcp --help', 'tcp'],
  ['http --domain x -h', 'http'],
] as const) {
  test(`${text} asks for help`, () => assert.deepEqual(readCommand(text), { help }))
}

const plans: readonly [forward: string, port: number, text: string, proto: string, opts: Record<string, unknown>][] = [
  ['localhost', 80, 'http', 'http', {}],
  ['localhost', 443, 'http', 'https', {}],
  ['', 0, 'http', 'https', {}],
  ['', 0, 'http --scheme http', 'http', {}],
  ['', 0, 'http --url http://a.example', 'http', { URL: 'http://a.example' }],
  ['*', 443, 'tls', 'tls', {}],
  ['a.example', 443, 'http', 'https', { Domain: 'a.example' }],
  ['*.a.example', 443, 'http', 'https', { Domain: '*.a.example' }],
  ['localhost', 0, 'tcp', 'tcp', {}],
  ['localhost', 20001, 'tcp', 'tcp', { Addr: ':20001' }],
  ['a.example', 20001, 'tcp', 'tcp', { Addr: 'a.example:20001' }],
  ['localhost', 0, 'tcp --remote-addr a.example:1', 'tcp', { Addr: 'a.example:1' }],
]
for (const [address, port, text, proto, opts] of plans) {
  test(`a forward of ${address}:${port} with ${text} asks for ${proto} ${JSON.stringify(opts)}`, () => {
    const plan = planOf({ address, port }, command(text))
    if (plan instanceof BindRefusal || !('bind' in plan)) assert.fail('it asks for no address')
    assert.deepEqual([plan.bind.proto, plan.bind.opts], [proto, opts])
  })
}

const badPlans: readonly [forward: string, port: number, text: string, ngrok: number][] = [
  ['localhost', 8080, 'http', 1113],
  ['localhost', 80, 'tls', 1113],
  ['localhost', 80, 'http --scheme https', 1113],
  ['a.example', 443, 'http --hostname b', 1114],
  ['a.example', 443, 'http --subdomain b', 1115],
  ['a.example', 0, 'tcp', 1117],
  ['a.example', 443, 'tls --domain b', 1118],
  ['localhost', 20001, 'tcp --remote-addr b:1', 1119],
  ['a.example', 443, 'http --url https://b', 1120],
]
for (const [address, port, text, ngrok] of badPlans) {
  test(`a forward of ${address}:${port} with ${text} is refused with ${ngrok}`, () => {
    assert.equal(numberOf(planOf({ address, port }, command(text))), ngrok)
  })
}

test('labels make a request of their own, whatever the port', () => {
  const plan = planOf({ address: 'localhost', port: 7 }, command('labeled --label a=b --label c=d --metadata m'))
  if (plan instanceof BindRefusal || !('labels' in plan)) assert.fail('it asks for an address')
  assert.deepEqual(plan.labels, { forwardsTo: '', forwardsProto: '', metadata: 'm', labels: { a: 'b', c: 'd' } })
})
