import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BindRefusal } from '../tunnel/ports.ts'
import { readCommand, type TunnelCommand } from './command.ts'
import { planOf } from './plan.ts'

function command(text: string): TunnelCommand {
  const read = readCommand(text)
  if (read instanceof BindRefusal || 'help' in read) assert.fail(`it is no command: ${JSON.stringify(read)}`)
  return read
}

function numberOf(value: unknown): number {
  assert.ok(value instanceof BindRefusal, 'it was not refused')
  return value.ngrok
}

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
  ['http --host-header app', { RequestHeaders: { add: ['host:app'] }, HostHeaderRewrite: true }],
  ['tls --terminate-at edge', { TLSTermination: {} }],
]
for (const [text, opts] of understood) {
  test(`${text} is understood`, () => assert.deepEqual(command(text).opts, opts))
}

const refused: readonly [text: string, ngrok: number, says: RegExp][] = [
  ['', 1107, /http, tls, tcp or labeled/],
  ['bash -i', 1108, /`bash`/],
  ['scp -t x', 1108, /no files/],
  ['http --domian a', 1109, /did you mean --domain/],
  ['tcp --basic-auth a:b', 1109, /is for http, not for tcp/],
  ['http --traffic-policy-file x', 1109, /cannot read your disk/],
  ['http --oauth google', 1109, /use an edge/],
  ['http --domain', 1110, /needs a value/],
  ["http --domain 'a", 1110, /quote/],
  ['http a b', 1110, /word `a`/],
  ['http --proxy-proto 3', 1110, /1 or 2/],
  ['http --circuit-breaker 2', 1110, /0 to 1/],
  ['http --domain a --hostname b', 1110, /one name/],
  ['http --verify-webhook github', 1110, /belong together/],
  ['http --cidr-deny 10.0.0.0/8', 1110, /--cidr-allow/],
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
