import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type TlsIdentity, tlsIdentity } from '../../../test/support/tls-identity.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { ConfigError } from './config-error.ts'
import { type AgentFlags, readAgentConfig } from './connection.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-ngrok-file-'))
let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
after(() => rmSync(root, { recursive: true }))

interface Given {
  readonly home?: string
  readonly flags?: AgentFlags
  readonly env?: Record<string, string>
}

async function read(ngrok: string, { home, flags = {}, env = {} }: Given = {}) {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  const files: Record<string, string | undefined> = {
    'ngrok.yml': ngrok,
    'home/.config/postern/agent.yml': home,
    'ca.pem': identity.ca,
    'key.pem': identity.key,
    'policy.yml': 'on_http_request:\n  - actions: [{type: deny}]\n',
  }
  for (const [name, text] of Object.entries(files)) {
    if (text === undefined) continue
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return readAgentConfig({ config: 'ngrok.yml', ...flags }, { cwd, env: { HOME: join(cwd, 'home'), ...env } })
}

async function problemsOf(ngrok: string, given?: Given): Promise<readonly string[]> {
  try {
    await read(ngrok, given)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.problems
  }
  assert.fail('the file was accepted')
}

/** What the tunnels of a file ask for, by name. */
async function asked(ngrok: string) {
  const { tunnels } = await read(ngrok)
  return Object.fromEntries(
    [...tunnels].map(([name, plans]) => [name, plans.map(({ asks, forwardsTo }) => ({ ...asks, forwardsTo }))]),
  )
}

describe('version 2', () => {
  test('is understood with everything in its manual, and ignored settings are reported with their line', async () => {
    const { tunnels, notes, authtoken, metadata, heartbeatIntervalMs, remoteManagement, updateChecks } =
      await read(`authtoken: 4nq9771bPxe8ctg7LKr_2ClH7Y15Zqe4bWLWF9p
api_key: 24yRd5U3DestCQapJrrVHLOqiAC_7RviwRqpd3wc9dKLujQZN
connect_timeout: 30s
console_ui: true
console_ui_color: transparent
dns_resolver_ips:
  - 1.1.1.1
  - 8.8.8.8
heartbeat_interval: 1m
heartbeat_tolerance: 5s
inspect_db_size: 104857600 # 100mb
log_level: info
log_format: json
log: /var/log/ngrok.log
metadata: '{"serial": "00012xa-33rUtz9"}'
region: us
remote_management: false
root_cas: trusted
update_channel: stable
update_check: false
version: 2
web_addr: localhost:4040
tunnels:
  website:
    addr: 8888
    basic_auth:
      - "bob:bobpassword"
    schemes:
      - https
    host_header: "myapp.dev"
    inspect: false
    proto: http
    domain: myapp.example.com
  e2etls:
    addr: 9000
    proto: tls
    domain: secure.example.com
  ssh-access:
    addr: 22
    proto: tcp
    remote_addr: example.com:12345
  labelled:
    labels:
      - app=shop
      - env=test
    addr: https://localhost:8443
`)
    assert.deepEqual([...tunnels.keys()], ['website', 'e2etls', 'ssh-access', 'labelled'])
    assert.equal(authtoken?.reveal(), '4nq9771bPxe8ctg7LKr_2ClH7Y15Zqe4bWLWF9p', 'there is no other')
    assert.deepEqual([metadata, remoteManagement, updateChecks], ['{"serial": "00012xa-33rUtz9"}', false, false])
    assert.equal(heartbeatIntervalMs, undefined)
    assert.deepEqual(
      notes.map((note) => note.replace(/ is ignored: .*/, '')),
      [
        'ngrok.yml:2: `api_key`',
        'ngrok.yml:3: `connect_timeout`',
        'ngrok.yml:4: `console_ui`',
        'ngrok.yml:5: `console_ui_color`',
        'ngrok.yml:6: `dns_resolver_ips`',
        'ngrok.yml:9: `heartbeat_interval`',
        'ngrok.yml:11: `inspect_db_size`',
        'ngrok.yml:12: `log_level`',
        'ngrok.yml:13: `log_format`',
        'ngrok.yml:14: `log`',
        'ngrok.yml:16: `region`',
        'ngrok.yml:19: `update_channel`',
      ],
    )
    assert.ok(!notes.join().includes('24yRd5U3'), 'no note quotes a secret')
    const [website] = tunnels.get('website') ?? assert.fail()
    assert.deepEqual(website.asks, {
      proto: 'https',
      opts: {
        Domain: 'myapp.example.com',
        BasicAuth: { credentials: [{ username: 'bob', cleartext_password: 'bobpassword' }] },
        RequestHeaders: { add: ['host:myapp.dev'], remove: [] },
        HostHeaderRewrite: true,
      },
    })
  })

  const options: [name: string, lines: string[], opts: () => object][] = [
    [
      'an IP restriction',
      ['ip_restriction:', '  allow_cidrs: [10.0.0.0/8]', '  deny_cidrs: [10.9.0.0/16]'],
      () => ({ IPRestriction: { allow_cidrs: ['10.0.0.0/8'], deny_cidrs: ['10.9.0.0/16'] } }),
    ],
    [
      'an IP restriction that only says who may not come',
      ['ip_restriction: {deny_cidrs: [192.0.2.0/24]}'],
      () => ({ IPRestriction: { allow_cidrs: ['0.0.0.0/0', '::/0'], deny_cidrs: ['192.0.2.0/24'] } }),
    ],
    [
      'inner keys with dots',
      ['ip_restriction.allow_cidrs: [10.0.0.0/8]', 'request_header.remove: [x-a]'],
      () => ({
        IPRestriction: { allow_cidrs: ['10.0.0.0/8'], deny_cidrs: [] },
        RequestHeaders: { add: [], remove: ['x-a'] },
      }),
    ],
    [
      'header rules',
      ['request_header: {add: ["x-a: 1"], remove: [referer]}', 'response_header: {add: ["x-b: 2"]}'],
      () => ({
        RequestHeaders: { add: ['x-a:1'], remove: ['referer'] },
        ResponseHeaders: { add: ['x-b:2'], remove: [] },
      }),
    ],
    [
      'webhooks, user agents, compression, circuit breaker and websockets',
      [
        'verify_webhook: {provider: github, secret: s}',
        'user_agent_filter: {allow: [curl], deny: [bot]}',
        'compression: true',
        'circuit_breaker: 0.5',
        'websocket_tcp_converter: true',
      ],
      () => ({
        WebhookVerification: { provider: 'github', secret: 's' },
        UserAgentFilter: { allow: ['curl'], deny: ['bot'] },
        Compression: {},
        CircuitBreaker: { error_threshold: 0.5 },
        WebsocketTCPConverter: {},
      }),
    ],
    [
      'OAuth by an application of its own',
      ['oauth:', '  provider: github', '  client_id: id', '  client_secret: s', '  allow_domains: [example.com]'],
      () => ({
        OAuth: {
          provider: 'github',
          client_id: 'id',
          client_secret: 's',
          allow_emails: [],
          allow_domains: ['example.com'],
          scopes: [],
        },
      }),
    ],
    [
      'OIDC',
      ['oidc: {issuer_url: "https://id.test", client_id: id, client_secret: s, scopes: [email]}'],
      () => ({
        OIDC: {
          issuer_url: 'https://id.test',
          client_id: 'id',
          client_secret: 's',
          allow_emails: [],
          allow_domains: [],
          scopes: ['email'],
        },
      }),
    ],
    ['a PROXY header as text', ['proxy_proto: "2"'], () => ({ ProxyProto: 2 })],
    [
      'authorities of visitors',
      ['mutual_tls_cas: ./ca.pem'],
      () => ({ MutualTLSCA: { mutual_tls_ca: Buffer.from(identity.ca).toString('base64') } }),
    ],
    ['a policy', ['policy: {on_http_request: []}'], () => ({ TrafficPolicy: '{"on_http_request":[]}' })],
    ['what is empty', ['domain: ""', 'metadata:', 'proxy_proto: ""'], () => ({})],
    ['pooling that is off', ['pooling_enabled: false', 'bindings: [public]'], () => ({})],
    ['a URL with a scheme', ['url: https://app.example.com'], () => ({ URL: 'https://app.example.com' })],
    ['a URL that is a name', ['url: app.example.com'], () => ({ Domain: 'app.example.com' })],
  ]
  for (const [name, lines, opts] of options) {
    test(`${name} is understood`, async () => {
      const text = ['version: "2"', 'tunnels:', '  web:', '    proto: http', '    addr: 3000']
      const { web } = await asked([...text, ...lines.map((line) => `    ${line}`), ''].join('\n'))
      assert.deepEqual(web, [{ proto: 'https', opts: opts(), forwardsTo: 'http://localhost:3000' }])
    })
  }

  test('both schemes give two addresses with one name', async () => {
    const { web } = await asked('version: 2\ntunnels:\n  web: {proto: http, addr: 80, schemes: [http, https]}\n')
    assert.deepEqual(
      web?.map((each) => 'proto' in each && each.proto),
      ['https', 'http'],
    )
  })

  test('unsupported and unknown settings are reported line by line, all at once', async () => {
    const problems = await problemsOf(`version: 2
authtoken: secret-of-ngrok
proxy_url: http://user:hunter2@proxy:3128
heartbeat_interval: soon
weblog: x
endpoints: []
tunnels:
  one:
    proto: http
    addr: file:///srv/www
    bind_tls: both
    auth: ada:engine
    ip_restrictions: {allow_cidrs: [10.0.0.0/8]}
  two:
    proto: tls
    addr: 443
    crt: ./ca.pem
    key: ./key.pem
  three:
    proto: http
    addr: 80
    oauth:
      provider: google
      allow_domain: [example.com]
    pooling_enabled: maybe
    bindings:
      - internal
  four:
    proto: tcp
    addr: 22
    basic_auth: ["ada:engine"]
    terminate_at: agent
  fi ve:
    addr: 80
  six: 80
`)
    const expected: [line: number, path: string, says: RegExp][] = [
      [3, 'proxy_url', /^is not supported: .*without a proxy/],
      [4, 'heartbeat_interval', /^must be a duration/],
      [5, 'weblog', /^is not a known key/],
      [6, 'endpoints', /^belongs to version 3 of the file/],
      [10, 'tunnels.one.addr', /^must be an address such as/],
      [11, 'tunnels.one.bind_tls', /^belongs to version 1 of the file; write `schemes/],
      [12, 'tunnels.one.auth', /^belongs to version 1 of the file; write `basic_auth/],
      [13, 'tunnels.one.ip_restrictions', /^is not a known key; did you mean `ip_restriction/],
      [17, 'tunnels.two.crt', /^terminates TLS in the agent/],
      [22, 'tunnels.three.oauth.client_id', /^is missing: register an application of your own/],
      [22, 'tunnels.three.oauth.client_secret', /^is missing/],
      [24, 'tunnels.three.oauth.allow_domain', /did you mean `oauth.allow_domains`/],
      [25, 'tunnels.three.pooling_enabled', /^must be `true` or `false`/],
      [26, 'tunnels.three.bindings', /^is not supported: every endpoint here is `public`/],
      [31, 'tunnels.four.basic_auth', /^is for http tunnels/],
      [32, 'tunnels.four.terminate_at', /^terminates TLS in the agent/],
      [33, 'tunnels.fi ve', /^must be named with letters/],
      [35, 'tunnels.six', /^must be a map/],
    ]
    assert.deepEqual(
      problems.map((problem) => /^ngrok\.yml:\d+: `[^`]*`/.exec(problem)?.[0]),
      expected.map(([line, path]) => `ngrok.yml:${line}: \`${path}\``),
    )
    for (const [i, [, , says]] of expected.entries()) {
      assert.match((problems[i] ?? '').replace(/^\S+ `[^`]*` /, ''), says)
    }
    assert.ok(!problems.join().includes('hunter2') && !problems.join().includes('secret-of-ngrok'))
  })
})

describe('version 3', () => {
  test('endpoints are understood', async () => {
    const { tunnels, notes } = await read(`version: "3"
agent:
  authtoken: 4nq9771bPxe8ctg7LKr_2ClH7Y15Zqe4bWLWF9p
  web_addr: false
  connect_cas: host
endpoints:
  - name: basic
    url: basic.example.com
    description: the shop
    metadata: foo123
    upstream:
      url: 8080
  - name: h2
    url: https://h2.example.com
    bindings: ["public"]
    pooling_enabled: false
    upstream:
      url: https://localhost:9443
      protocol: http2
      proxy_protocol: 2
    traffic_policy:
      on_http_request:
        - actions:
            - type: deny
  - name: ssh
    url: tcp://
    upstream: { url: 22 }
  - name: pass
    url: tls://tls.example.com
    upstream: { url: 443 }
  - name: plain
    url: http://plain.example.com
    traffic_policy_file: ./policy.yml
    upstream: { url: "localhost:80" }
  - upstream: { url: 81 }
tunnels:
  old:
    proto: tcp
    addr: 25
    remote_addr: example.com:20025
`)
    assert.deepEqual(notes, [])
    assert.deepEqual([...tunnels.keys()], ['old', 'basic', 'h2', 'ssh', 'pass', 'plain', 'endpoint-6'])
    const plan = (name: string) => (tunnels.get(name) ?? assert.fail())[0]
    assert.deepEqual(plan('basic').asks, { proto: 'https', opts: { Domain: 'basic.example.com' } })
    assert.deepEqual([plan('basic').description, plan('basic').metadata], ['the shop', 'foo123'])
    assert.deepEqual(plan('h2').asks, {
      proto: 'https',
      opts: {
        URL: 'https://h2.example.com',
        ProxyProto: 2,
        TrafficPolicy: '{"on_http_request":[{"actions":[{"type":"deny"}]}]}',
      },
    })
    assert.deepEqual([plan('h2').forwardsProto, plan('h2').forwardsTo], ['http2', 'https://localhost:9443'])
    assert.deepEqual(plan('ssh').asks, { proto: 'tcp', opts: {} })
    assert.deepEqual(plan('pass').asks, { proto: 'tls', opts: { URL: 'tls://tls.example.com' } })
    const { asks } = plan('plain')
    assert.ok('opts' in asks)
    assert.deepEqual([asks.proto, asks.opts.URL], ['http', 'http://plain.example.com'])
    assert.match(String(asks.opts.TrafficPolicy), /type: deny/)
    assert.deepEqual(plan('endpoint-6').asks, { proto: 'https', opts: {} })
  })

  test('unsupported and unknown settings are reported line by line', async () => {
    const problems = await problemsOf(`version: 3
authtoken: secret-of-ngrok
agent:
  connect_url: https://tunnels.example.com:7443/
  connect_cas: ./none.pem
  autoken: x
endpoints:
  - name: a
    url: https://a.internal
    bindings: [internal]
    agent_tls_termination:
      server_certificate: ./ca.pem
      server_private_key: ./key.pem
    upstream:
      url: 80
      protocl: http2
  - name: a
    upstream:
      url: 81
  - name: b
    upstram: { url: 81 }
  - 3000
`)
    const shortened = problems.map((problem) => problem.replace(/^(\S+ `[^`]*` \S+ \S+ \S+).*$/s, '$1'))
    assert.deepEqual(shortened, [
      'ngrok.yml:2: `authtoken` belongs under `agent`',
      'ngrok.yml:5: `agent.connect_cas` cannot be read:',
      'ngrok.yml:6: `agent.autoken` is not a',
      'ngrok.yml:10: `endpoints.0.bindings` is not supported:',
      'ngrok.yml:11: `endpoints.0.agent_tls_termination` terminates TLS in',
      'ngrok.yml:16: `endpoints.0.upstream.protocl` is not a',
      'ngrok.yml:17: `endpoints.1.name` is used twice;',
      'ngrok.yml:20: `endpoints.2.upstream.url` is missing: it',
      'ngrok.yml:21: `endpoints.2.upstram` is not a',
      'ngrok.yml:22: `endpoints.3` must be a',
    ])
  })
})

describe('the server', () => {
  const home = 'server: tunnels.example.com:7443\nauthtoken: of-the-login\ntunnels:\n  mine: {addr: 1}\n'
  const tunnels = 'tunnels:\n  web: {proto: http, addr: 3000}\n'

  test('is that of the login, unless the file names one, which then gets the authtoken of the file', async () => {
    const stray = await read(`version: 2\nauthtoken: of-ngrok\n${tunnels}`, { home })
    assert.deepEqual([stray.server.host, stray.authtoken?.reveal()], ['tunnels.example.com', 'of-the-login'])
    assert.deepEqual([...stray.tunnels.keys()], ['web'])
    const own = await read(`version: 2\nserver_addr: own.test:7000\nroot_cas: ca.pem\nauthtoken: of-own\n${tunnels}`, {
      home,
    })
    assert.deepEqual([own.server, own.authtoken?.reveal()], [{ host: 'own.test', port: 7000 }, 'of-own'])
    assert.equal(own.ca, identity.ca)
    const third = await read('version: 3\nagent: {connect_url: "tls://own.test:7000", authtoken: of-own}\n', { home })
    assert.deepEqual([third.server, third.authtoken?.reveal()], [{ host: 'own.test', port: 7000 }, 'of-own'])
    assert.equal(third.tunnels.size, 0, 'tunnels of the login are not meant')
  })

  test('flags and variables override both', async () => {
    const flagged = await read(`version: 2\nauthtoken: of-ngrok\n${tunnels}`, {
      home,
      flags: { server: 'flag.test:1', authtoken: new Secret('of-the-flag') },
    })
    assert.deepEqual([flagged.server.host, flagged.authtoken?.reveal()], ['flag.test', 'of-the-flag'])
    const env = { POSTERN_SERVER: 'env.test:1', POSTERN_AUTHTOKEN: 'of-the-variable' }
    const fromEnv = await read(`version: 2\nauthtoken: of-ngrok\n${tunnels}`, { env })
    assert.deepEqual([fromEnv.server.host, fromEnv.authtoken?.reveal()], ['env.test', 'of-the-variable'])
  })

  test("is never one of ngrok's", async () => {
    for (const [key, server] of [
      ['server_addr', 'tunnel.us.ngrok.com:443'],
      ['server_addr', 'connect.ngrok-agent.com:443'],
    ] as const) {
      const { server: chosen, notes } = await read(`version: 2\n${key}: ${server}\n${tunnels}`, { home })
      assert.equal(chosen.host, 'tunnels.example.com')
      assert.match(notes.join(), /^ngrok\.yml:2: `server_addr` is ignored: it is a server of ngrok's/)
    }
  })
})

test('durations may have several parts, as Go writes them', async () => {
  const { heartbeatIntervalMs, heartbeatToleranceMs } = await read(
    'version: 2\nheartbeat_interval: 0m20s\nheartbeat_tolerance: 1.5s500ms\n',
  )
  assert.deepEqual([heartbeatIntervalMs, heartbeatToleranceMs], [20_000, 2000])
})

test('the file in the docs is understood', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/agent.md'), 'utf8')
  const [, file = ''] = /\n## An ngrok\.yml\n[\s\S]*?```yaml\n([\s\S]*?)```/.exec(page) ?? []
  const { tunnels, notes, server } = await read(file)
  assert.deepEqual([[...tunnels.keys()], notes, server.host], [['ssh', 'shop'], [], 'tunnels.example.com'])
})

const strange: [name: string, text: string, says: RegExp][] = [
  ['an alias', 'version: 2\ntunnels:\n  a: &a {addr: 1}\n  b: *a\n', /ngrok\.yml line 4 has an alias/],
  ['a second key', 'version: 2\nversion: 3\n', /ngrok\.yml line 2 sets a key for the second time/],
  ['tunnels that are a list', 'version: 2\ntunnels: [1]\n', /`tunnels` must be a map/],
  ['endpoints that are a map', 'version: 3\nendpoints: {a: 1}\n', /`endpoints` must be a list/],
  ['an agent that is a text', 'version: 3\nagent: x\n', /`agent` must be a map/],
  ['a version that nobody knows', 'version: 4\n', /`version` .* must be one of `1`/],
  ['a key that is special in JavaScript', 'version: 2\n__proto__: {x: 1}\n', /is not a known key/],
]
for (const [name, text, says] of strange) {
  test(`${name} is reported`, async () => assert.match((await problemsOf(text)).join('\n'), says))
}
