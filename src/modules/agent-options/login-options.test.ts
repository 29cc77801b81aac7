import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BindRefusal } from '../../model/endpoint.ts'
import { modules } from '../index.ts'
import { testTools } from '../testing/test-tools.ts'
import { agentModules } from './options.ts'

type Opts = Readonly<Record<string, unknown>>

/** The route settings that a bind asks for; fails if refused or not compilable. */
function asked(opts: Opts): Opts {
  const result = agentModules('https', opts)
  if (result instanceof BindRefusal) assert.fail(result.message)
  for (const [name, settings] of Object.entries(result.route)) {
    const compile = modules.find((module) => module.name === name)?.compile
    assert.ok(compile?.(settings, testTools()), name)
  }
  return result.route
}

function refused(proto: 'http' | 'https' | 'tcp' | 'tls', opts: Opts, ngrok: number, message: RegExp = /./): void {
  const result = agentModules(proto, opts)
  assert.ok(result instanceof BindRefusal, `not refused: ${JSON.stringify(opts)}`)
  assert.equal(result.ngrok, ngrok, result.message)
  assert.match(result.message, message)
}

const client = { client_id: 'app', client_secret: 'hush-hush' }
const plain = {
  enabled: true,
  options_passthrough: false,
  cookie_prefix: '',
  inactivity_timeout: 0,
  maximum_duration: 0,
}
const issuer = 'https://id.example.com'

const taken: Record<string, [opts: Opts, route: Opts]> = {
  'a login with a well-known provider, as the Rust agents send it': [
    {
      OAuth: {
        provider: 'github',
        ...client,
        sealed_client_secret: '',
        allow_emails: ['Ada@Example.com', 'ada@example.com'],
        allow_domains: ['Example.org'],
        scopes: ['repo'],
      },
      OIDC: null,
    },
    {
      oauth: {
        ...plain,
        auth_check_interval: 0,
        provider: {
          github: {
            ...client,
            scopes: ['repo'],
            email_addresses: ['ada@example.com'],
            email_domains: ['example.org'],
            teams: [],
            organizations: [],
          },
        },
      },
    },
  ],
  'a login with a well-known provider, as the Go agents send it': [
    { OAuth: { Provider: 'gitlab', Client_ID: 'app', Client_Secret: 'hush-hush', Allow_Emails: null } },
    {
      oauth: {
        ...plain,
        auth_check_interval: 0,
        provider: { gitlab: { ...client, scopes: [], email_addresses: [], email_domains: [] } },
      },
    },
  ],
  'a login with an issuer': [
    { OIDC: { issuer_url: issuer, ...client } },
    { oidc: { ...plain, issuer, ...client, scopes: [] } },
  ],
  'a login with an issuer, for some': [
    { OIDC: { issuer_url: issuer, ...client, allow_emails: ['Ada@example.com'], scopes: ['profile'] } },
    {
      oidc: {
        ...plain,
        issuer,
        ...client,
        scopes: ['profile'],
        allow: { email_addresses: ['ada@example.com'], email_domains: [] },
      },
    },
  ],
}

for (const [what, [opts, route]] of Object.entries(taken)) {
  test(`an endpoint with TLS may ask for ${what}`, () => {
    assert.deepEqual(asked(opts), route)
    for (const proto of ['http', 'tcp', 'tls'] as const)
      refused(proto, opts, 301, /works on these kinds of endpoints only: https/)
  })
}

const bad: [opts: Opts, ngrok: number, message?: RegExp][] = [
  [{ OAuth: { provider: 'google' } }, 365, /none to lend/],
  [{ OAuth: { provider: 'google', allow_emails: ['ada@example.com'] } }, 365, /none to lend/],
  [{ OAuth: { provider: 'myspace', ...client } }, 365, /one of amazon, facebook, github/],
  [{ OAuth: { provider: '__proto__', ...client } }, 365],
  [{ OAuth: client }, 365],
  [{ OAuth: { provider: 'google', client_id: 'app' } }, 383],
  [{ OAuth: { provider: 'google', client_secret: 'x' } }, 384],
  [{ OAuth: { provider: 'google', client_id: 'app', sealed_client_secret: 'eA==' } }, 301, /another server sealed/],
  [{ OAuth: { provider: 'google', ...client, allow_emails: Array(1001).fill('a@b.test') } }, 366],
  [{ OAuth: { provider: 'google', ...client, allow_domains: Array(1001).fill('b.test') } }, 367],
  [{ OAuth: { provider: 'google', ...client, scopes: Array(31).fill('a') } }, 368],
  [{ OAuth: { provider: 'google', ...client, scopes: ['a'.repeat(256)] } }, 391],
  [{ OAuth: { provider: 'google', ...client, scopes: ['a b'] } }, 301, /`OAuth\.scopes\[0\]`/],
  [{ OAuth: { provider: 'google', ...client, allow_emails: ['ada'] } }, 301, /`OAuth\.allow_emails\[0\]` must be an/],
  [{ OAuth: { provider: 'google', ...client, allow_domains: ['*'] } }, 301, /`OAuth\.allow_domains\[0\]` must be a/],
  [{ OAuth: { provider: 'google', ...client, allow_emails: 'ada@example.com' } }, 301, /must be a list/],
  [{ OAuth: { provider: 'google', ...client, teams: ['a/b'] } }, 301, /not a known field/],
  [{ OAuth: 'google' }, 301],
  [{ OIDC: { issuer_url: 'https://a' } }, 385],
  [{ OIDC: { issuer_url: 'https://a', client_id: 'app' } }, 386],
  [{ OIDC: { issuer_url: 'https://a', client_id: 'app', sealed_client_secret: 'eA==' } }, 301, /another server sealed/],
  [{ OIDC: client }, 387],
  [{ OIDC: { issuer_url: 'http://id.example.com', ...client } }, 301, /`OIDC\.issuer_url` must start with `https/],
  [{ OIDC: { issuer_url: issuer, ...client, scopes: Array(31).fill('a') } }, 388],
  [{ OIDC: { issuer_url: issuer, ...client, scopes: ['a'.repeat(256)] } }, 392],
  [{ OIDC: { issuer_url: issuer, ...client, allow_emails: ['@'] } }, 301, /`OIDC\.allow_emails\[0\]` must be an/],
  [{ OIDC: { issuer_url: issuer, ...client, allow_domains: ['a b'] } }, 301, /`OIDC\.allow_domains\[0\]` must be a/],
  [{ OIDC: { issuer_url: issuer, ...client }, OAuth: { provider: 'google', ...client } }, 301, /keep one/],
]

const application = { ...client, provider: 'google' }
const rules: Record<string, string> = {
  oauth: JSON.stringify({ on_http_request: [{ actions: [{ type: 'oauth', config: application }] }] }),
  'openid-connect': JSON.stringify({
    on_http_request: [{ actions: [{ type: 'openid-connect', config: { ...client, issuer_url: issuer } }] }],
  }),
}

for (const [action, TrafficPolicy] of Object.entries(rules)) {
  test(`a bind logs visitors in by an option or by the action ${action}, not by both`, () => {
    assert.deepEqual(Object.keys(asked({ TrafficPolicy })), ['policy'])
    const message = /is given, and a rule of the traffic policy logs visitors in too; keep one/
    refused('https', { OAuth: application, TrafficPolicy }, 301, message)
    refused('https', { OIDC: { issuer_url: issuer, ...client }, TrafficPolicy }, 301, message)
  })
}

test('a login may go with a policy that logs nobody in', () => {
  const TrafficPolicy = 'on_http_request: [{actions: [{type: deny}]}]'
  assert.deepEqual(Object.keys(asked({ OAuth: application, TrafficPolicy })).sort(), ['oauth', 'policy'])
})

for (const [opts, ngrok, message] of bad) {
  test(`refuses ${JSON.stringify(opts).slice(0, 90)} with ${ngrok}`, () => refused('https', opts, ngrok, message))
}

test('no message repeats a secret', () => {
  const secret = 'hunter2-of-somebody'
  const opts: Opts[] = [
    { OAuth: { provider: secret, client_id: 'app', client_secret: secret } },
    { OAuth: { provider: 'google', client_id: '', client_secret: secret } },
    { OAuth: { provider: 'google', client_id: 'app', client_secret: secret.repeat(1000) } },
    { OIDC: { issuer_url: `https://ada:${secret}@id.example.com`, client_id: 'app', client_secret: secret } },
  ]
  for (const each of opts) {
    const result = agentModules('https', each)
    assert.ok(result instanceof BindRefusal && !result.message.includes(secret))
  }
})
