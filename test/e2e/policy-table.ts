// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
/** One sample of every action in every phase that it has, and how its effect is observed. */
import assert from 'node:assert/strict'
import { gunzipSync } from 'node:zlib'
import type { ActionName } from '../../src/modules/policy/engine/actions.ts'
import type { Seen } from './edges/upstreams.ts'
import type { Answer, Ask } from './edges/visitor.ts'

/** What samples need. */
export interface Around {
  /** Different for each row. */
  readonly mark: string
  /** A service that answers `said`, and `401` under `/no`. */
  readonly asked: string
  /** Where keys are published, and a token signed with one of them. */
  readonly keys: string
  readonly issuer: string
  readonly token: string
}

export interface GivenRule {
  readonly expressions?: readonly string[]
  readonly actions: readonly { readonly type: string; readonly config?: unknown }[]
}

/** One request and its outcome. `answer` is undefined when the connection ended without one. */
export interface Exchange {
  readonly ask?: Ask
  readonly look: (answer: Answer | undefined, seen: Seen | undefined) => void
}

/** A sample on requests or responses: the action alone unless `when` or further rules are given. */
export interface HttpSample {
  readonly config?: (around: Around) => unknown
  readonly when?: string
  /** Rules after it, in the same list. */
  readonly after?: readonly GivenRule[]
  readonly exchanges: readonly ((around: Around) => Exchange)[]
  /** Whether the effect is a line of the log that holds the mark. */
  readonly isLogged?: boolean
}

/** A sample on connections: it applies to visitors from `REFUSED` only. */
export interface ConnectSample {
  readonly config?: (around: Around) => unknown
  readonly effect: 'closes' | 'logs'
}

export type Sample = Readonly<{ connect?: ConnectSample; request?: HttpSample; response?: HttpSample }>

/** The visitor that samples on connections are for. */
export const REFUSED = '127.0.0.3'
export const WELCOME = '127.0.0.4'

export const SERVICE_TEXT = 'hello '.repeat(100)

function reached(answer: Answer | undefined): asserts answer is Answer {
  assert.equal(answer?.status, 200, answer?.text)
  assert.equal(answer.headers['x-from'], 'service')
}

const passes =
  (ask: Ask = {}, look: (answer: Answer, seen: Seen) => void = () => {}) =>
  (): Exchange => ({
    ask,
    look(answer, seen) {
      reached(answer)
      assert.ok(seen, 'the service was not asked')
      look(answer, seen)
    },
  })

const stops =
  (status: number, code?: string, ask: Ask = {}, look: (answer: Answer) => void = () => {}) =>
  (): Exchange => ({
    ask,
    look(answer, seen) {
      assert.equal(answer?.status, status, answer?.text)
      if (code !== undefined) assert.equal(answer.code, code)
      assert.equal(seen, undefined, 'the service was asked')
      look(answer)
    },
  })

/** The answer of the service, changed on its way back. */
const answers =
  (look: (answer: Answer) => void, ask: Ask = {}) =>
  (): Exchange => ({
    ask,
    look(answer, seen) {
      assert.ok(answer && seen, 'the service was not asked')
      look(answer)
    },
  })

const bearer = (token: string): Ask => ({ headers: { authorization: `Bearer ${token}` } })
const basic = `Basic ${Buffer.from('jane:password').toString('base64')}`
const application = { client_id: 'app', client_secret: 'hush-hush' }
const location = (answer: Answer): URL => new URL(String(answer.headers.location))

const restrictIps = () => ({ allow: ['127.0.0.0/8'], deny: [`${REFUSED}/32`] })

/** A test fails when an action lacks a sample for one of its phases. */
export const samples: Readonly<Record<ActionName, Sample>> = {
  'add-headers': {
    request: {
      config: () => ({ headers: { 'X-Who': '${req.method} ${conn.client_ip}' } }),
      exchanges: [
        passes({ headers: { 'x-who': 'me' } }, (_, seen) =>
          assert.deepEqual(seen.all('x-who'), ['me', 'GET 127.0.0.1']),
        ),
      ],
    },
    response: {
      config: () => ({ headers: { 'x-status': '${res.status_code}' } }),
      exchanges: [answers((answer) => assert.equal(answer.headers['x-status'], '200'))],
    },
  },
  'basic-auth': {
    request: {
      config: () => ({ credentials: ['jane:password'], realm: 'staff' }),
      exchanges: [
        stops(401, 'ERR_CREDENTIALS_REQUIRED', {}, (answer) =>
          assert.equal(answer.headers['www-authenticate'], 'Basic realm="staff"'),
        ),
        passes({ headers: { authorization: basic } }),
      ],
    },
  },
  'circuit-breaker': {
    request: {
      config: () => ({ volume_threshold: 1, tripped_duration: '1h' }),
      exchanges: [
        answers((answer) => assert.equal(answer.status, 500), { path: '/fail' }),
        stops(503, 'ERR_CIRCUIT_OPEN'),
      ],
    },
  },
  'close-connection': {
    connect: { effect: 'closes' },
    request: {
      when: "req.url.path == '/close'",
      exchanges: [
        () => ({
          ask: { path: '/close' },
          look(answer, seen) {
            assert.equal(answer, undefined)
            assert.equal(seen, undefined)
          },
        }),
        passes(),
      ],
    },
  },
  'compress-response': {
    request: {
      config: () => ({ algorithms: ['gzip'] }),
      exchanges: [
        answers((answer) => assert.equal(gunzipSync(answer.body).toString(), SERVICE_TEXT), {
          headers: { 'accept-encoding': 'br, gzip' },
        }),
      ],
    },
    response: {
      config: () => ({ algorithms: ['gzip'] }),
      exchanges: [
        answers((answer) => assert.equal(answer.headers['content-encoding'], undefined)),
        answers(
          (answer) => {
            assert.equal(answer.headers['content-encoding'], 'gzip')
            assert.equal(gunzipSync(answer.body).toString(), SERVICE_TEXT)
          },
          { headers: { 'accept-encoding': 'br, gzip' } },
        ),
      ],
    },
  },
  'custom-response': {
    request: {
      config: () => ({ status_code: 418, body: 'I am ${req.host}', headers: { 'x-a': '${conn.client_ip}' } }),
      exchanges: [
        stops(418, undefined, { from: '127.0.0.9' }, (answer) => {
          assert.match(answer.text, /^I am [\w.:-]+\.edge\.test/)
          assert.equal(answer.headers['x-a'], '127.0.0.9')
        }),
      ],
    },
    response: {
      config: () => ({ status_code: 503, body: 'later' }),
      when: 'res.status_code >= 500',
      exchanges: [
        passes(),
        answers((answer) => assert.deepEqual([answer.status, answer.text], [503, 'later']), { path: '/fail' }),
      ],
    },
  },
  deny: {
    connect: { effect: 'closes' },
    request: {
      config: () => ({ status_code: 451 }),
      when: "req.method == 'PUT'",
      exchanges: [stops(451, undefined, { method: 'PUT' }), passes()],
    },
  },
  'http-request': {
    request: {
      config: ({ asked }) => ({ url: `${asked}\${req.url.path}`, on_error: 'halt' }),
      when: "req.url.path != '/plain'",
      after: [
        { expressions: ['actions.ngrok.http_request.res.status_code == 401'], actions: [{ type: 'deny' }] },
        {
          actions: [
            { type: 'add-headers', config: { headers: { 'x-said': '${actions.ngrok.http_request.res.body}' } } },
          ],
        },
      ],
      exchanges: [
        stops(403, undefined, { path: '/no' }),
        passes({ path: '/yes' }, (_, seen) => assert.deepEqual(seen.all('x-said'), ['said /yes'])),
      ],
    },
    response: {
      config: ({ asked }) => ({ url: `${asked}/after`, method: 'POST', body: '${res.status_code}' }),
      after: [
        {
          actions: [
            { type: 'add-headers', config: { headers: { 'x-said': '${actions.ngrok.http_request.res.body}' } } },
          ],
        },
      ],
      exchanges: [answers((answer) => assert.equal(answer.headers['x-said'], 'said /after 200'))],
    },
  },
  'jwt-validation': {
    request: {
      config: ({ keys, issuer }) => ({
        issuer: { allow_list: [{ value: issuer }] },
        http: { tokens: [{ type: 'jwt', method: 'header', name: 'Authorization', prefix: 'Bearer ' }] },
        jws: { allowed_algorithms: ['ES256'], keys: { sources: { additional_jkus: [keys] } } },
      }),
      after: [
        {
          actions: [
            {
              type: 'add-headers',
              config: { headers: { 'x-sub': '${actions.ngrok.jwt_validation.tokens[0].payload.sub}' } },
            },
          ],
        },
      ],
      exchanges: [
        stops(401, 'ERR_TOKEN_REQUIRED'),
        ({ token }) => stops(401, 'ERR_TOKEN_REQUIRED', bearer(`${token.slice(0, -2)}AA`))(),
        ({ token }) => passes(bearer(token), (_, seen) => assert.deepEqual(seen.all('x-sub'), ['ada']))(),
      ],
    },
  },
  log: {
    connect: { config: ({ mark }) => ({ metadata: { mark, who: '${conn.client_ip}' } }), effect: 'logs' },
    request: {
      config: ({ mark }) => ({ metadata: { mark, who: '${conn.client_ip}' } }),
      exchanges: [passes()],
      isLogged: true,
    },
    response: {
      config: ({ mark }) => ({ metadata: { mark, status: '${res.status_code}' } }),
      exchanges: [passes()],
      isLogged: true,
    },
  },
  oauth: {
    request: {
      config: () => ({ provider: 'github', ...application, authz_url_params: { login: 'ada' } }),
      when: "req.url.path.startsWith('/in')",
      exchanges: [
        passes(),
        stops(302, undefined, { path: '/in' }, (answer) => {
          const { origin, pathname, searchParams } = location(answer)
          assert.equal(origin + pathname, 'https://github.com/login/oauth/authorize')
          assert.deepEqual([searchParams.get('client_id'), searchParams.get('login')], ['app', 'ada'])
        }),
        stops(400, 'ERR_LOGIN_STATE_MISSING', { path: '/oauth2/callback' }),
      ],
    },
  },
  'openid-connect': {
    request: {
      config: ({ issuer }) => ({ issuer_url: issuer, ...application, scopes: ['email'] }),
      exchanges: [
        ({ issuer }) =>
          stops(302, undefined, {}, (answer) => {
            const { origin, pathname, searchParams } = location(answer)
            assert.equal(origin + pathname, `${issuer}/auth`)
            assert.deepEqual([searchParams.get('client_id'), searchParams.get('scope')], ['app', 'openid email'])
          })(),
        stops(400, 'ERR_LOGIN_STATE_INVALID', { path: '/oauth2/callback?state=x&code=y' }),
        stops(302, undefined, { path: '/postern/logout' }),
      ],
    },
  },
  'rate-limit': {
    request: {
      config: () => ({ name: 'each', capacity: 1, rate: '24h', bucket_key: ['conn.client_ip'] }),
      exchanges: [
        passes({ from: '127.0.0.1' }),
        stops(429, 'ERR_RATE_LIMITED', { from: '127.0.0.1' }, (answer) =>
          assert.match(String(answer.headers['retry-after']), /^\d+$/),
        ),
        passes({ from: '127.0.0.2' }),
      ],
    },
  },
  redirect: {
    request: {
      config: () => ({ from: '/old/(\\w+)', to: '/new/$1', status_code: 301 }),
      exchanges: [
        passes({ path: '/other' }),
        stops(301, undefined, { path: '/old/page?q=1' }, (answer) => {
          const { hostname, pathname, search } = location(answer)
          assert.match(hostname, /\.edge\.test$/)
          assert.equal(pathname + search, '/new/page?q=1')
        }),
      ],
    },
  },
  'remove-headers': {
    request: {
      config: () => ({ headers: ['X-Secret'] }),
      exchanges: [passes({ headers: { 'x-secret': '1' } }, (_, seen) => assert.deepEqual(seen.all('x-secret'), []))],
    },
    response: {
      config: () => ({ headers: ['x-from'] }),
      exchanges: [answers((answer) => assert.deepEqual([answer.status, answer.headers['x-from']], [200, undefined]))],
    },
  },
  'restrict-ips': {
    connect: { config: restrictIps, effect: 'closes' },
    request: {
      config: restrictIps,
      exchanges: [passes({ from: WELCOME }), stops(403, 'ERR_IP_REFUSED', { from: REFUSED })],
    },
    response: {
      config: restrictIps,
      exchanges: [
        passes({ from: WELCOME }),
        answers((answer) => assert.deepEqual([answer.status, answer.code], [403, 'ERR_IP_REFUSED']), { from: REFUSED }),
      ],
    },
  },
  'set-vars': {
    request: {
      config: () => ({ vars: [{ who: '${req.method}' }, { n: '${1 + 1}' }] }),
      after: [{ actions: [{ type: 'add-headers', config: { headers: { 'x-var': '${vars.who} ${vars.n + 1}' } } }] }],
      exchanges: [passes({}, (_, seen) => assert.deepEqual(seen.all('x-var'), ['GET 3']))],
    },
    response: {
      config: () => ({ vars: [{ s: '${res.status_code}' }] }),
      after: [{ actions: [{ type: 'add-headers', config: { headers: { 'x-var': '${vars.s}' } } }] }],
      exchanges: [answers((answer) => assert.equal(answer.headers['x-var'], '200'))],
    },
  },
  'url-rewrite': {
    request: {
      config: () => ({ from: '/v1/', to: '/v2/' }),
      exchanges: [
        passes({ path: '/v1/a?b=c' }, (_, seen) => assert.equal(seen.url, '/v2/a?b=c')),
        stops(400, 'ERR_AMBIGUOUS_PATH', { path: '/v1/%2e%2e/x' }),
      ],
    },
  },
  'verify-webhook': {
    request: {
      config: () => ({ provider: 'gitlab', secret: 'token' }),
      exchanges: [stops(403, 'ERR_WEBHOOK_REFUSED'), passes({ headers: { 'x-gitlab-token': 'token' } })],
    },
  },
}
