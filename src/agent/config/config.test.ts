import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { type TlsIdentity, tlsIdentity } from '../../../test/support/tls-identity.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { ConfigError } from './config-error.ts'
import { type AgentFlags, readAgentConfig } from './connection.ts'

const root = mkdtempSync(join(tmpdir(), 'postern-agent-config-'))
let identity: TlsIdentity
before(async () => {
  identity = await tlsIdentity()
})
after(() => rmSync(root, { recursive: true }))

interface Given {
  readonly local?: string
  readonly home?: string
  readonly flags?: AgentFlags
  readonly env?: Record<string, string>
  /** More files, by name. */
  readonly files?: Record<string, string>
}

function read({ local, home, flags = {}, env = {}, files = {} }: Given) {
  const cwd = mkdtempSync(join(root, 'cwd-'))
  const written: Record<string, string | undefined> = {
    'postern-agent.yml': local,
    'home/.config/postern/agent.yml': home,
    'ca.pem': identity.ca,
    'key.pem': identity.key,
    'policy.yml': 'on_http_request: []\n',
    ...files,
  }
  for (const [name, text] of Object.entries(written)) {
    if (text === undefined) continue
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return readAgentConfig(flags, { cwd, env: { HOME: join(cwd, 'home'), ...env } })
}

async function problemsOf(given: Given): Promise<readonly string[]> {
  try {
    await read(given)
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.problems
  }
  assert.fail('the configuration was accepted')
}

/** What a tunnel with these lines asks for. */
async function plansOf(...lines: string[]) {
  const { tunnels } = await read({ local: `tunnels:\n  web:\n${lines.map((line) => `    ${line}\n`).join('')}` })
  const plans = tunnels.get('web')
  assert.ok(plans)
  return plans
}

async function optsOf(...lines: string[]) {
  const [{ asks }] = await plansOf('addr: 3000', ...lines)
  assert.ok('opts' in asks)
  return asks.opts
}

describe('an option of a tunnel goes over the wire', () => {
  const cases: [name: string, lines: string[], opts: object][] = [
    ['a domain', ['domain: app.example.com'], { Domain: 'app.example.com' }],
    ['a hostname', ['hostname: app.example.com'], { Hostname: 'app.example.com' }],
    ['a subdomain', ['subdomain: app'], { Subdomain: 'app' }],
    ['a URL', ['url: https://app.example.com'], { URL: 'https://app.example.com' }],
    ['a TCP address', ['proto: tcp', 'remote_addr: example.com:20001'], { Addr: 'example.com:20001' }],
    ['the PROXY protocol', ['proxy_proto: 2'], { ProxyProto: 2 }],
    [
      'basic authentication',
      ['basic_auth: ["ada:engine:1", "bob:builder"]'],
      {
        BasicAuth: {
          credentials: [
            { username: 'ada', cleartext_password: 'engine:1' },
            { username: 'bob', cleartext_password: 'builder' },
          ],
        },
      },
    ],
    [
      'an IP restriction',
      ['ip_restriction: {allow: [10.0.0.0/8], deny: 10.9.0.0/16}'],
      { IPRestriction: { allow_cidrs: ['10.0.0.0/8'], deny_cidrs: ['10.9.0.0/16'] } },
    ],
    [
      'request headers as a map',
      ['request_headers: {add: {x-a: "1: 2", x-b: 3}, remove: [referer]}'],
      { RequestHeaders: { add: ['x-a:1: 2', 'x-b:3'], remove: ['referer'] } },
    ],
    [
      'response headers as a list',
      ['response_headers: {add: ["x-a: 1", "x-a: 2"]}'],
      { ResponseHeaders: { add: ['x-a:1', 'x-a:2'], remove: [] } },
    ],
    [
      'a rewritten host',
      ['host_header: rewrite', 'request_headers: {remove: [x]}'],
      { RequestHeaders: { add: ['host:localhost:3000'], remove: ['x'] }, HostHeaderRewrite: true },
    ],
    [
      'a chosen host',
      ['host_header: app.test'],
      { RequestHeaders: { add: ['host:app.test'], remove: [] }, HostHeaderRewrite: true },
    ],
    ['a host that stays', ['host_header: preserve'], {}],
    ['compression', ['compression: true'], { Compression: {} }],
    ['no compression', ['compression: false'], {}],
    ['a circuit breaker', ['circuit_breaker: 0.5'], { CircuitBreaker: { error_threshold: 0.5 } }],
    [
      'webhook verification',
      ['webhook_verification: {provider: github, secret: s3cret}'],
      { WebhookVerification: { provider: 'github', secret: 's3cret' } },
    ],
    [
      'a user agent filter',
      ['user_agent_filter: {deny: ["(?i)bot"]}'],
      { UserAgentFilter: { allow: [], deny: ['(?i)bot'] } },
    ],
    [
      'a login with a provider',
      ['oauth: {provider: github, client_id: app, client_secret: hush, allow_emails: [a@b.test], scopes: repo}'],
      {
        OAuth: {
          provider: 'github',
          client_id: 'app',
          client_secret: 'hush',
          allow_emails: ['a@b.test'],
          allow_domains: [],
          scopes: ['repo'],
        },
      },
    ],
    [
      'a login with an issuer',
      ['oidc: {issuer_url: "https://id.test", client_id: app, client_secret: hush, allow_domains: [b.test]}'],
      {
        OIDC: {
          issuer_url: 'https://id.test',
          client_id: 'app',
          client_secret: 'hush',
          allow_emails: [],
          allow_domains: ['b.test'],
          scopes: [],
        },
      },
    ],
    ['a policy by its older name', ['policy: {inbound: []}'], { TrafficPolicy: '{"inbound":[]}' }],
    ['a websocket converter', ['websocket_tcp_converter: true'], { WebsocketTCPConverter: {} }],
    ['a traffic policy', ['traffic_policy: policy.yml'], { TrafficPolicy: 'on_http_request: []\n' }],
    [
      'a traffic policy of one line of JSON',
      [`traffic_policy: ' {"on_http_request":[]}'`],
      { TrafficPolicy: ' {"on_http_request":[]}' },
    ],
    [
      'a traffic policy of one line of YAML',
      [`traffic_policy: 'on_http_request: []'`],
      { TrafficPolicy: 'on_http_request: []' },
    ],
    [
      'a traffic policy of one line with a quoted key',
      [`traffic_policy: '"inbound" : []'`],
      { TrafficPolicy: '"inbound" : []' },
    ],
    [
      'a traffic policy that stands in the file itself',
      ['traffic_policy: {"on_http_request": [{"actions": []}]}'],
      { TrafficPolicy: '{"on_http_request":[{"actions":[]}]}' },
    ],
    ['TLS that ends at the edge', ['proto: tls', 'terminate_at: edge'], { TLSTermination: {} }],
    ['TLS that passes through', ['proto: tls', 'terminate_at: upstream'], {}],
  ]
  for (const [name, lines, opts] of cases) {
    test(`as ${name}`, async () => assert.deepEqual(await optsOf(...lines), opts))
  }

  test('as the CAs of visitors', async () => {
    const ca = Buffer.from(identity.ca).toString('base64')
    assert.deepEqual(await optsOf('mutual_tls: ca.pem'), { MutualTLSCA: { mutual_tls_ca: ca } })
    assert.deepEqual(await optsOf('mutual_tls: ./ca.pem', 'proto: tls'), { MutualTLSAtEdge: { mutual_tls_ca: ca } })
  })

  test('as a certificate of its own', async () => {
    const opts = await optsOf('proto: tls', 'terminate_at: edge', 'crt: ca.pem', 'key: key.pem')
    const [cert, key] = [identity.ca, identity.key].map((text) => Buffer.from(text).toString('base64'))
    assert.deepEqual(opts, { TLSTermination: { cert, key } })
  })
})

describe('a tunnel', () => {
  const cases: [name: string, lines: string[], protos: string[]][] = [
    ['is https unless it says otherwise', [], ['https']],
    ['can be http alone', ['schemes: [http]'], ['http']],
    ['can be both, https first', ['schemes: [http, https]'], ['https', 'http']],
    ['is http when its URL is', ['url: http://app.example.com'], ['http']],
    ['can be tcp', ['proto: tcp'], ['tcp']],
    ['can be tls', ['proto: tls'], ['tls']],
  ]
  for (const [name, lines, protos] of cases) {
    test(name, async () => {
      const plans = await plansOf('addr: 3000', ...lines)
      assert.deepEqual(
        plans.map(({ asks }) => 'proto' in asks && asks.proto),
        protos,
      )
    })
  }

  for (const labels of ['{app: web, n: 2}', '["app=web", "n=2"]']) {
    test(`can have labels ${labels} in place of an address`, async () => {
      const [plan] = await plansOf('addr: https://localhost:8443', `labels: ${labels}`, 'metadata: mine')
      assert.deepEqual(plan.asks, { labels: { app: 'web', n: '2' } })
      assert.deepEqual([plan.forwardsTo, plan.metadata], ['https://localhost:8443', 'mine'])
    })
  }

  test('announces the protocol of its service', async () => {
    const [plan] = await plansOf('addr: 3000', 'app_protocol: http2')
    assert.equal(plan.forwardsProto, 'http2')
    assert.ok('isHttp2' in plan.target && plan.target.isHttp2)
  })

  test('reads the PROXY header only for a service with TLS', async () => {
    for (const [addr, takes] of [
      ['https://localhost:1', true],
      ['http://localhost:1', false],
    ]) {
      const [{ target }] = await plansOf(`addr: ${addr}`, 'proxy_proto: 1')
      assert.equal('takesProxyLine' in target && target.takesProxyLine, takes)
    }
  })
})

describe('a file is refused, with key and line, for', () => {
  const client = 'client_id: app, client_secret: hush'
  const tunnel = (...lines: string[]) =>
    `tunnels:\n  web:\n    addr: 1\n${lines.map((line) => `    ${line}\n`).join('')}`
  const cases: [name: string, text: string, ...says: RegExp[]][] = [
    [
      'an unknown key',
      'servr: x',
      /^`servr` \(postern-agent\.yml line 1\) is not a known key; did you mean `server`\?$/,
    ],
    ['a wholly unknown key', 'colour_of_the_door: x', /is not a known key$/],
    ['another version', 'version: 3', /^`version` .* must be one of `1`$/],
    ['a bad server', 'server: https://x', /^`server` .* must be `host:port` of the server, without a scheme$/],
    ['a number for text', 'metadata: 5', /^`metadata` .* must be text: put it in quotes$/],
    ['text for a flag', 'update_checks: maybe', /^`update_checks` .* must be `true` or `false`$/],
    ['more connections than there may be', 'connections: 17', /must be `auto` or a number from 1 to 16/],
    ['a beat that is too slow', 'heartbeat_interval: 2m', /must be a duration such as `10s`, from 1s to 30s/],
    ['a CA that is not there', 'ca: nowhere.pem', /^`ca` .* cannot be read: there is no .*nowhere\.pem$/],
    ['a CA that is none', 'ca: policy.yml', /^`ca` .* must be certificates in PEM/],
    ['a CA that is a folder', 'ca: .', /^`ca` .* cannot be read: .* is a folder$/],
    ['a CA that is empty', 'ca: ""', /^`ca` .* must not be empty$/],
    ['a CA in braces, which is a path', 'ca: "{x}.pem"', /^`ca` .* cannot be read: there is no .*\{x\}\.pem$/],
    [
      'a key on one line without its PEM header',
      tunnel('proto: tls', 'terminate_at: edge', 'crt: ca.pem', `key: ${'A1/b'.repeat(200)}`),
      /^`tunnels\.web\.key` \S+ line 7\) cannot be read: it is neither the content nor the path of a file$/,
    ],
    [
      'a policy that is not there',
      tunnel('traffic_policy: none.yml'),
      /^`tunnels\.web\.traffic_policy` .* cannot be read: there is no .*none\.yml$/,
    ],
    ['a policy at a drive that is not there', tunnel('traffic_policy: c:\\none.yml'), /cannot be read: there is no /],
    [
      'two policies',
      tunnel('policy: {}', 'traffic_policy: policy.yml'),
      /^`tunnels\.web\.policy` .* combined with `traffic_policy`: a tunnel has one policy/,
    ],
    [
      'two logins',
      tunnel(`oauth: {provider: github, ${client}}`, `oidc: {issuer_url: "https://id.test", ${client}}`),
      /^`tunnels\.web\.oidc` .* combined with `oauth`: visitors log in with one of them$/,
    ],
    ['a login without a provider', tunnel(`oauth: {${client}}`), /^`tunnels\.web\.oauth\.provider` .* is missing: /],
    ['a login without an issuer', tunnel(`oidc: {${client}}`), /^`tunnels\.web\.oidc\.issuer_url` .* is missing: /],
    [
      'a login without an application',
      tunnel('oauth: {provider: github, client_secret: hush}'),
      /^`tunnels\.web\.oauth\.client_id` .* is missing: register an application/,
    ],
    [
      'a login without a secret',
      tunnel('oidc: {issuer_url: "https://id.test", client_id: app}'),
      /^`tunnels\.web\.oidc\.client_secret` .* set POSTERN_OIDC_CLIENT_SECRET instead/,
    ],
    [
      'a login with an unknown key',
      tunnel(`oauth: {provider: github, ${client}, allow_email: [a]}`),
      /^`tunnels\.web\.oauth\.allow_email` .* did you mean `allow_emails`/,
    ],
    [
      'a login on tcp',
      tunnel('proto: tcp', `oauth: {provider: github, ${client}}`),
      /^`tunnels\.web\.oauth` .* is for http tunnels, and this one is tcp$/,
    ],
    ['a policy that is a list', tunnel('traffic_policy: [a]'), /^`tunnels\.web\.traffic_policy` .* must be text$/],
    ['a list at its top', '- x', /^postern-agent\.yml must be a map of settings/],
    ['bad YAML', 'a: [', /^postern-agent\.yml line 1 is not valid YAML/],
    ['a key twice', 'server: a\nserver: b', /^postern-agent\.yml line 2 sets a key for the second time/],
    ['an alias', 'server: &a x\nmetadata: *a', /^postern-agent\.yml line 2 has an alias/],
    ['a tunnel without an address', 'tunnels: {web: {proto: http}}', /^`tunnels\.web\.addr` .* is missing/],
    ['a tunnel that is no map', 'tunnels: {web: 3000}', /^`tunnels\.web` .* must be a map$/],
    ['a tunnel with a strange name', 'tunnels: {"a b": {addr: 1}}', /^`tunnels\.a b` .* must be named with letters/],
    ['a bad address', 'tunnels: {web: {addr: "ftp://x"}}', /^`tunnels\.web\.addr` .* must be an address such as/],
    ['an unknown protocol', tunnel('proto: udp'), /^`tunnels\.web\.proto` .* must be one of `http`, `tcp`, `tls`$/],
    [
      'what is near in a tunnel',
      tunnel('basic-auth: x'),
      /^`tunnels\.web\.basic-auth` \(postern-agent\.yml line 4\) is not a known key; did you mean `basic_auth`\?$/,
    ],
    ['what is near further in', tunnel('ip_restriction: {allow: [x], denny: [y]}'), /`deny`\?$/],
    [
      'a guard that a tcp tunnel cannot have',
      tunnel('proto: tcp', 'basic_auth: [a:b]'),
      /is for http tunnels, and this/,
    ],
    ['a guard that belongs on the edge', tunnel('labels: {a: b}', 'basic_auth: [a:b]'), /it is set on the edge$/],
    ['a protocol beside labels', tunnel('labels: {a: b}', 'proto: tcp'), /the edge decides$/],
    [
      'a pool beside labels',
      tunnel('pooling: true', 'labels: {a: b}'),
      /^`tunnels\.web\.pooling` \(postern-agent\.yml line 4\) cannot be combined with `labels`: a tunnel group is a pool$/,
    ],
    ['no labels at all', tunnel('labels: {}'), /^`tunnels\.web\.labels` .* must not be empty$/],
    [
      'two names',
      tunnel('domain: a', 'subdomain: b'),
      /^`tunnels\.web\.subdomain` .* cannot be combined with `domain`/,
    ],
    ['an unknown scheme', tunnel('schemes: [ftp]'), /must be `http`, `https` or both/],
    ['a user without a password', tunnel('basic_auth: [ada]'), /must be a list of `user:password`$/],
    ['a threshold of 2', tunnel('circuit_breaker: 2'), /must be a number from 0 to 1$/],
    [
      'deny without allow',
      tunnel('ip_restriction: {deny: [10.0.0.0/8]}'),
      /^`tunnels\.web\.ip_restriction\.allow` .* is missing: without it nobody gets in$/,
    ],
    [
      'a certificate without its key',
      tunnel('proto: tls', 'terminate_at: edge', 'crt: ca.pem'),
      /needs its private key/,
    ],
    ['a certificate that nobody would use', tunnel('proto: tls', 'crt: ca.pem', 'key: key.pem'), /terminate_at: edge/],
    [
      'an updater in a file that was merely found',
      `update: {source: /x, public_key: MCowBQYDK2Vw}`,
      /installs programs/,
    ],
    [
      'all that is wrong at once',
      'servr: x\nversion: 2\ntunnels: {web: {addr: 0}}',
      /^`version`/,
      /^`tunnels\.web\.addr`/,
      /^`servr`/,
    ],
  ]
  for (const [name, local, ...says] of cases) {
    test(name, async () => {
      const problems = await problemsOf({ local })
      assert.equal(problems.length, says.length, problems.join('\n'))
      for (const [i, pattern] of says.entries()) assert.match(problems[i] ?? '', pattern)
    })
  }

  test('a named file that is not there', async () => {
    assert.match(
      (await problemsOf({ flags: { config: 'none.yml' } }))[0] ?? '',
      /cannot be read: there is no .*none\.yml/,
    )
  })
})

test('no message quotes a secret, and no secret can be printed', async () => {
  const secret = 'hunter2hunter2'
  const local = `authtoken: [${secret}]\ntunnels: {web: {addr: 1, basic_auth: [${secret}], webhook_verification: ${secret}}}`
  for (const problem of await problemsOf({ local })) assert.ok(!problem.includes(secret), problem)
  const config = await read({ local: `authtoken: ${secret}` })
  assert.ok(!inspect(config).includes(secret) && !JSON.stringify(config).includes(secret))
})

describe('a client secret', () => {
  const file = `tunnels:
  web: { addr: 1, oauth: { provider: github, client_id: app } }
  own: { addr: 1, oidc: { issuer_url: "https://id.test", client_id: app, client_secret: of the file } }
`
  const env = { POSTERN_OAUTH_CLIENT_SECRET: 'of the variable', POSTERN_OIDC_CLIENT_SECRET: 'of another' }
  const secretsOf = async (given: Given) =>
    [...(await read(given)).tunnels.values()].map(([{ asks }]) => {
      assert.ok('opts' in asks)
      const { OAuth, OIDC } = asks.opts as Record<string, { client_secret: string } | undefined>
      return (OAuth ?? OIDC)?.client_secret
    })

  test("may come from a variable, for the user's own file and for a named one", async () => {
    const both = ['of the variable', 'of the file']
    assert.deepEqual(await secretsOf({ home: file, env }), both)
    assert.deepEqual(await secretsOf({ local: file, env, flags: { config: 'postern-agent.yml' } }), both)
  })

  test('is not given to a file found in the working folder, which chooses its server and issuer itself', async () => {
    for (const given of [
      { local: file, env },
      { home: file },
      { home: file, env: { POSTERN_OAUTH_CLIENT_SECRET: '' } },
    ]) {
      const problems = await problemsOf(given)
      assert.equal(problems.length, 1)
      assert.match(
        problems[0] ?? '',
        /^`tunnels\.web\.oauth\.client_secret` .* is missing; .*POSTERN_OAUTH_CLIENT_SECRET/,
      )
    }
  })
})

describe('a setting in several places', () => {
  const token = (value: string) => new Secret(value)
  const at = ({ server, authtoken }: { server: { host: string }; authtoken: Secret | undefined }) => [
    server.host,
    authtoken?.reveal(),
  ]

  test('a flag wins over a variable, a variable over files, the file in the working folder over the one at home', async () => {
    const local = 'server: local\nauthtoken: l'
    const home = 'server: home\nauthtoken: h'
    const env = { POSTERN_SERVER: 'env', POSTERN_AUTHTOKEN: 'e' }
    assert.deepEqual(at(await read({ local, home, env, flags: { server: 'flag', authtoken: token('f') } })), [
      'flag',
      'f',
    ])
    assert.deepEqual(at(await read({ local, home, env })), ['env', 'e'])
    assert.deepEqual(at(await read({ local, home })), ['local', 'l'])
    assert.deepEqual(at(await read({ home })), ['home', 'h'])
    assert.deepEqual(at(await read({})), ['localhost', undefined])
  })

  test('a file in the working folder without a server uses that of the login, with its CA', async () => {
    const home = `server: tunnels.example.com\nauthtoken: h\nca: |\n${identity.ca.replace(/^/gm, '  ')}`
    const config = await read({ local: 'tunnels: {web: {addr: 1}}', home })
    assert.deepEqual(at(config), ['tunnels.example.com', 'h'])
    assert.equal(config.ca?.trim(), identity.ca.trim())
    assert.deepEqual([...config.tunnels.keys()], ['web'])
  })

  test('a CA of one server is not trusted for another', async () => {
    const home = `server: home\nca: |\n${identity.ca.replace(/^/gm, '  ')}`
    assert.equal((await read({ home, flags: { server: 'other' } })).ca, undefined)
  })

  test('a file found in the working folder does not get an authtoken that was not meant for its server', async () => {
    const local = 'server: evil.example'
    const home = 'server: tunnels.example.com\nauthtoken: h'
    const env = { POSTERN_AUTHTOKEN: 'e' }
    assert.match(
      (await problemsOf({ local, home }))[0] ?? '',
      /names evil\.example:7443, but your authtoken of `postern login`/,
    )
    assert.match(
      (await problemsOf({ local, env }))[0] ?? '',
      /your authtoken in POSTERN_AUTHTOKEN was not given for that server/,
    )
    for (const given of [
      { local, home, flags: { server: 'evil.example' } },
      { local, env: { ...env, POSTERN_SERVER: 'evil.example' } },
      { local, env, flags: { config: 'postern-agent.yml' } },
      { local: 'server: tunnels.example.com:7443', home },
      { local, home, flags: { authtoken: token('f') } },
    ]) {
      assert.notEqual((await read(given)).authtoken, undefined)
    }
  })

  test('a bad flag is named as one', async () => {
    assert.match(
      (await problemsOf({ flags: { server: 'http://x' } }))[0] ?? '',
      /^`server` \(--server\) must be `host:port`/,
    )
    assert.match(
      (await problemsOf({ env: { POSTERN_CA: 'x' } }))[0] ?? '',
      /^`ca` \(POSTERN_CA\) cannot be read: there is no/,
    )
  })

  test('an empty variable counts as unset', async () => {
    assert.deepEqual(at(await read({ env: { POSTERN_SERVER: '', POSTERN_AUTHTOKEN: '' } })), ['localhost', undefined])
  })
})
