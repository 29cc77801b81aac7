import assert from 'node:assert/strict'
import { createHmac, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { describe, test } from 'node:test'
import { exportJWK, type JWK, type JWTHeaderParameters, SignJWT } from 'jose'
import { type Fetch, FetchFault } from '../../lib/http/outbound-fetch.ts'
import type { Phases } from '../phases.ts'
import { request } from '../testing/test-request.ts'
import type { Verdict } from './engine/policy-traffic.ts'
import { ask, compile, on } from './testing/test-policy.ts'

const ISSUER = 'https://id.example.com'
const AUDIENCE = 'urn:api'
const KEYS = 'https://id.example.com/keys'
/** The time in all tests, in seconds. */
const NOW = 1_800_000_000

interface Key {
  readonly alg: string
  readonly key: KeyObject
  readonly jwk: JWK
}

async function newKey(alg: string, kid: string | undefined): Promise<Key> {
  const { privateKey, publicKey } = alg.startsWith('RS')
    ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { alg, key: privateKey, jwk: { ...(await exportJWK(publicKey)), ...(kid !== undefined && { kid }) } }
}

const good = await newKey('ES256', 'good')
const rsa = await newKey('RS256', 'rsa')
const stranger = await newKey('ES256', 'good')
const strangerRsa = await newKey('RS256', 'rsa')
const other = await newKey('ES256', 'other')

const claims = {
  iss: ISSUER,
  aud: AUDIENCE,
  sub: 'ada',
  iat: NOW - 10,
  exp: NOW + 300,
  n: 1,
  nested: { list: ['a', 2] },
}

type Header = { readonly alg?: string; readonly kid?: string | undefined; readonly [name: string]: unknown }

/** A token with `more` over the good claims; undefined leaves one out. */
function sign(more: object = {}, { alg, key, jwk }: Key = good, header: Header = {}): Promise<string> {
  const payload = JSON.parse(JSON.stringify({ ...claims, ...more })) as Record<string, unknown>
  const head = JSON.parse(JSON.stringify({ alg, kid: jwk.kid, ...header })) as JWTHeaderParameters
  return new SignJWT(payload).setProtectedHeader(head).sign(key)
}

/** Serves key sets by their URL, and counts how often. */
class KeyServer {
  readonly asked: string[] = []
  sets: Record<string, unknown> = { [KEYS]: { keys: [good.jwk, rsa.jwk] } }
  isDown = false
  readonly fetch: Fetch = (url) => {
    this.asked.push(String(url))
    if (this.isDown) return Promise.reject(new FetchFault('unreachable', 'id.example.com cannot be asked'))
    const set = this.sets[String(url)]
    const body = Buffer.from(typeof set === 'string' ? set : JSON.stringify(set ?? 'nothing'))
    return Promise.resolve({ status: set === undefined ? 404 : 200, headers: new Headers(), body })
  }
}

const header = { type: 'jwt', method: 'header', name: 'Authorization', prefix: 'Bearer ' }

function settings({ tokens = [header], jkus = [KEYS], ...more }: Record<string, unknown> & { jkus?: string[] } = {}) {
  return {
    issuer: { allow_list: [{ value: 'https://other.example.com' }, { value: ISSUER }] },
    audience: { allow_list: [{ value: AUDIENCE }] },
    http: { tokens },
    jws: { allowed_algorithms: ['ES256', 'RS256'], keys: { sources: { additional_jkus: jkus } } },
    ...more,
  }
}

function setUp(config: object = settings(), rest: Parameters<typeof compile>[0]['inbound'] = []) {
  const server = new KeyServer()
  let ahead = 0
  const phases = compile(
    { inbound: [{ actions: [{ type: 'jwt-validation', config: { ...config } }] }, ...rest] },
    { tools: { fetch: server.fetch, now: () => NOW * 1000 + ahead } },
  )
  const later = (ms: number): void => {
    ahead += ms
  }
  return { server, phases, later }
}

const withToken = (phases: Phases, token: string): Promise<Verdict | undefined> =>
  ask(phases, request({ headers: { authorization: `Bearer ${token}` } }))

const isRefused = (verdict: Verdict | undefined, code = 'TOKEN_REQUIRED'): void =>
  assert.equal(verdict && 'refuse' in verdict ? verdict.refuse : verdict, code)

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const bare = (head: unknown, body: unknown = claims, signature = 'AAAA'): string =>
  `${encode(head)}.${encode(body)}.${signature}`

/** Signed by a public key, as if it were a secret. */
function byPublicKey(form: 'pem' | 'der' | 'jwk', alg = 'HS256'): string {
  const key = createPublicKey({ key: { ...rsa.jwk }, format: 'jwk' })
  const secret =
    form === 'jwk'
      ? Buffer.from(JSON.stringify(rsa.jwk))
      : form === 'pem'
        ? Buffer.from(key.export({ type: 'spki', format: 'pem' }))
        : key.export({ type: 'spki', format: 'der' })
  const text = `${encode({ alg, kid: 'rsa', typ: 'JWT' })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** The parts of a good token, one of them changed. */
async function changed(change: (head: string, body: string, signature: string) => string): Promise<string> {
  const [head = '', body = '', signature = ''] = (await sign()).split('.')
  return change(head, body, signature)
}

const badClaims: Record<string, object> = {
  'no issuer': { iss: undefined },
  'an empty issuer': { iss: '' },
  'another issuer': { iss: 'https://evil.example.com' },
  'the issuer with a slash': { iss: `${ISSUER}/` },
  'the issuer in capitals': { iss: ISSUER.toUpperCase() },
  'the issuer over http': { iss: ISSUER.replace('https', 'http') },
  'an issuer that begins like ours': { iss: `${ISSUER}.evil.test` },
  'a list of issuers': { iss: [ISSUER] },
  'null as issuer': { iss: null },
  'no audience': { aud: undefined },
  'an empty audience': { aud: '' },
  'another audience': { aud: 'urn:other' },
  'the audience in capitals': { aud: AUDIENCE.toUpperCase() },
  'an audience that begins like ours': { aud: `${AUDIENCE}2` },
  'no audiences': { aud: [] },
  'other audiences': { aud: ['a', 'b'] },
  'an audience in an audience': { aud: [[AUDIENCE]] },
  'an object as audience': { aud: { 0: AUDIENCE } },
  'no end': { exp: undefined },
  'an end that is over': { exp: NOW - 61 },
  'an end at zero': { exp: 0 },
  'an end before time': { exp: -1 },
  'a text as end': { exp: String(NOW + 300) },
  'null as end': { exp: null },
  'a list as end': { exp: [NOW + 300] },
  'a beginning in two minutes': { iat: NOW + 120 },
  'a text as beginning': { iat: 'now' },
  'not before two minutes from now': { nbf: NOW + 120 },
  'a text as not before': { nbf: 'now' },
  'null as not before': { nbf: null },
}

const forgeries: Record<string, () => string | Promise<string>> = {
  nothing: () => '',
  'a word': () => 'token',
  'two parts': () => `${encode({ alg: 'ES256' })}.${encode(claims)}`,
  'four parts': () => changed((...parts) => [...parts, 'AAAA'].join('.')),
  'five parts, as an encrypted token has': () => changed((...parts) => [...parts, 'AAAA', 'AAAA'].join('.')),
  'no signature': () => changed((head, body) => `${head}.${body}.`),
  'the algorithm none': () => bare({ alg: 'none', typ: 'JWT' }, claims, ''),
  'the algorithm none, with a signature': () => bare({ alg: 'none', typ: 'JWT' }),
  'the algorithm None': () => bare({ alg: 'None' }),
  'the algorithm nOnE': () => bare({ alg: 'nOnE' }),
  'an empty algorithm': () => bare({ alg: '' }),
  'no algorithm': () => bare({ kid: 'good' }),
  'a list of algorithms': () => bare({ alg: ['ES256'], kid: 'good' }),
  'the public key as a secret, as PEM': () => byPublicKey('pem'),
  'the public key as a secret, as DER': () => byPublicKey('der'),
  'the public key as a secret, as JWK': () => byPublicKey('jwk'),
  'the public key as a secret, said to be RS256': () => byPublicKey('pem', 'RS256'),
  'an empty secret': () => {
    const text = `${encode({ alg: 'HS256', kid: 'good' })}.${encode(claims)}`
    return `${text}.${createHmac('sha256', '').update(text).digest('base64url')}`
  },
  'the key of a stranger': () => sign({}, stranger),
  'the RSA key of a stranger': () => sign({}, strangerRsa),
  'the key of a stranger, without its id': () => sign({}, stranger, { kid: undefined }),
  'a key that nobody knows': () => sign({}, other),
  'a key that comes with the token': () => sign({}, stranger, { jwk: stranger.jwk }),
  'an address of keys that comes with the token': () => sign({}, stranger, { jku: 'https://evil.example.com/keys' }),
  'a certificate that comes with the token': () => sign({}, stranger, { x5u: 'https://evil.example.com/cert' }),
  'an id of a key that is a path': () => sign({}, stranger, { kid: '../../dev/null' }),
  'an algorithm that the key is not for': () => sign({}, rsa, { kid: 'good' }),
  'an algorithm that is not allowed': async () => {
    const key = { ...rsa, alg: 'PS256' }
    return sign({}, key)
  },
  'a part that must be understood and is not': () => bare({ alg: 'ES256', kid: 'good', crit: ['x'], x: 1 }),
  'a payload that is not encoded': () => bare({ alg: 'ES256', kid: 'good', b64: false, crit: ['b64'] }),
  'another type': () => sign({}, good, { typ: 'logout+jwt' }),
  'the type of an access token': () => sign({}, good, { typ: 'at+jwt' }),
  'a number as type': () => sign({}, good, { typ: 1 }),
  'an empty type': () => sign({}, good, { typ: ' ' }),
  'other claims under the signature': () =>
    changed((head, _, signature) => `${head}.${encode({ ...claims, sub: 'root' })}.${signature}`),
  'another header over the signature': () =>
    changed((_, body, signature) => `${encode({ alg: 'ES256', kid: 'good', typ: 'JWT', x: 1 })}.${body}.${signature}`),
  'a signature of zeros': () => changed((head, body) => `${head}.${body}.${Buffer.alloc(64).toString('base64url')}`),
  'a short signature': () => changed((head, body, signature) => `${head}.${body}.${signature.slice(0, -4)}`),
  'a long signature': () => changed((head, body, signature) => `${head}.${body}.${signature}AAAA`),
  'one other bit of the signature': () =>
    changed((head, body, signature) => {
      const bytes = Buffer.from(signature, 'base64url')
      bytes.writeUInt8(bytes.readUInt8(5) ^ 1, 5)
      return `${head}.${body}.${bytes.toString('base64url')}`
    }),
  'spare bits of the signature': () =>
    changed((head, body, signature) => {
      const last = signature.at(-1) ?? ''
      const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
      return `${head}.${body}.${signature.slice(0, -1)}${letters[letters.indexOf(last) ^ 1]}`
    }),
  'a space in the payload': () =>
    changed((head, body, signature) => `${head}.${body.slice(0, 4)} ${body.slice(4)}.${signature}`),
  'base64 with padding': () => changed((head, body, signature) => `${head}.${body}.${signature}==`),
  'claims that are a list': () => bare({ alg: 'ES256', kid: 'good' }, [claims]),
  'claims that are no JSON': () => bare({ alg: 'ES256', kid: 'good' }, '{'),
  'a header that is no JSON': () => bare('{', claims),
  'a header that is null': () => bare('null', claims),
  'a claim twice': () => bare({ alg: 'ES256', kid: 'good' }, `{"iss":"x","iss":"${ISSUER}"}`),
  'a prototype': () => bare({ alg: 'ES256', kid: 'good' }, '{"__proto__":{"iss":"x"}}'),
  'a token without end': () => bare({ alg: 'ES256', kid: 'good' }, { ...claims, x: 'a'.repeat(20_000) }),
  'no more than brackets': () => bare({ alg: 'ES256', kid: 'good' }, '['.repeat(5000)),
}

describe('jwt-validation refuses', () => {
  const { phases } = setUp()
  const all: [string, () => string | Promise<string>][] = [
    ...Object.entries(forgeries),
    ...Object.entries(badClaims).map(([what, more]): [string, () => Promise<string>] => [what, () => sign(more)]),
  ]
  assert.ok(all.length >= 60, String(all.length))
  for (const [what, make] of all) test(what, async () => isRefused(await withToken(phases, await make())))

  test('but not a good token', async () => {
    assert.equal(await withToken(phases, await sign()), undefined)
  })
})

describe('jwt-validation accepts', () => {
  const takes: Record<string, () => Promise<string>> = {
    'a token without a type': () => sign(),
    'a token that says that it is one': () => sign({}, good, { typ: 'JWT' }),
    'the long spelling of its type': () => sign({}, good, { typ: 'application/jwt' }),
    'one of another key of the set': () => sign({}, rsa),
    'one that does not name its key': () => sign({}, good, { kid: undefined }),
    'one that ended a moment ago, by a clock that is off': () => sign({ exp: NOW - 50 }),
    'one that begins in a moment': () => sign({ nbf: NOW + 50, iat: NOW + 50 }),
    'one for several': () => sign({ aud: ['x', AUDIENCE] }),
    'one of the other issuer': () => sign({ iss: 'https://other.example.com' }),
  }
  for (const [what, make] of Object.entries(takes)) {
    test(what, async () => assert.equal(await withToken(setUp().phases, await make()), undefined))
  }

  test('tokens of the type that the settings name', async () => {
    const types: [string, string | undefined, boolean][] = [
      ['at+jwt', 'at+jwt', true],
      ['at+jwt', 'application/AT+JWT', true],
      ['at+jwt', 'JWT', false],
      ['at+jwt', undefined, false],
      ['access_token', 'at+jwt', true],
      ['access_token', undefined, true],
      ['access_token', 'logout+jwt', false],
      ['id_token', 'JWT', true],
      ['id_token', 'at+jwt', false],
    ]
    for (const [type, typ, isTaken] of types) {
      const { phases } = setUp(settings({ tokens: [{ ...header, type }] }))
      const verdict = await withToken(phases, await sign({}, good, { typ }))
      if (isTaken) assert.equal(verdict, undefined, `${type} ${typ}`)
      else isRefused(verdict)
    }
  })

  test('any audience when the settings name none', async () => {
    const { phases } = setUp({ ...settings(), audience: undefined })
    assert.equal(await withToken(phases, await sign({ aud: undefined })), undefined)
  })
})

describe('jwt-validation finds tokens', () => {
  const verdictOf = async (phases: Phases, about: Parameters<typeof request>[0]) => ask(phases, request(about))

  test('in a header, once, after its prefix', async () => {
    const { phases } = setUp()
    const token = await sign()
    for (const authorization of [`Bearer ${token}`, `bearer ${token}`]) {
      assert.equal(await verdictOf(phases, { headers: { authorization } }), undefined)
    }
    const lacking = [{}, { authorization: token }, { authorization: [`Bearer ${token}`, `Bearer ${token}`] }]
    for (const headers of lacking) {
      assert.deepEqual(await verdictOf(phases, { headers }), {
        refuse: 'TOKEN_REQUIRED',
        headers: [['WWW-Authenticate', 'Bearer']],
      })
    }
    assert.deepEqual(await verdictOf(phases, { headers: { authorization: 'Bearer x' } }), {
      refuse: 'TOKEN_REQUIRED',
      headers: [['WWW-Authenticate', 'Bearer error="invalid_token"']],
    })
  })

  test('in a body of a form or of JSON', async () => {
    const { phases } = setUp(settings({ tokens: [{ type: 'jwt', method: 'body', name: 'token' }] }))
    const token = await sign()
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const json = { 'content-type': 'application/json; charset=utf-8' }
    const found = [
      { headers: form, body: `a=b&token=${token}` },
      { headers: json, body: JSON.stringify({ token, more: [1] }) },
    ]
    for (const about of found) assert.equal(await verdictOf(phases, { method: 'POST', ...about }), undefined)
    const lost = [
      { headers: form, body: `token=${token}&token=${token}` },
      { headers: form, body: `token=${token}&Token=x` },
      { headers: form, body: 'a=b' },
      { headers: {}, body: `token=${token}` },
      { headers: { 'content-type': 'text/plain' }, body: `token=${token}` },
      { headers: { ...form, 'content-encoding': 'gzip' }, body: `token=${token}` },
      { headers: json, body: `{"token":"x","token":"${token}"}` },
      { headers: json, body: JSON.stringify([token]) },
      { headers: json, body: JSON.stringify({ token: [token] }) },
      { headers: json, body: '{' },
    ]
    for (const about of lost) isRefused(await verdictOf(phases, { method: 'POST', ...about }))
    isRefused(
      await verdictOf(phases, { method: 'POST', headers: form, body: `token=${token}&x=${'a'.repeat(70_000)}` }),
      'BODY_TOO_LARGE_TO_CHECK',
    )
  })

  test('all that the settings require', async () => {
    const second = { type: 'at+jwt', method: 'header', name: 'X-Access' }
    const { phases } = setUp(settings({ tokens: [header, second] }))
    const authorization = `Bearer ${await sign()}`
    const access = await sign({}, rsa, { typ: 'at+jwt' })
    assert.equal(await verdictOf(phases, { headers: { authorization, 'x-access': access } }), undefined)
    isRefused(await verdictOf(phases, { headers: { authorization } }))
    isRefused(await verdictOf(phases, { headers: { 'x-access': access } }))
    isRefused(await verdictOf(phases, { headers: { authorization, 'x-access': await sign() } }))
  })
})

describe('keys', () => {
  test('are fetched on first use, once for all waiting requests, and kept', async () => {
    const { phases, server, later } = setUp()
    assert.equal(server.asked.length, 0)
    const token = await sign({ exp: NOW + 7200 })
    assert.deepEqual(
      await Promise.all(Array.from({ length: 20 }, () => withToken(phases, token))),
      Array(20).fill(undefined),
    )
    assert.equal(server.asked.length, 1)
    later(14 * 60_000)
    assert.equal(await withToken(phases, token), undefined)
    assert.equal(server.asked.length, 1)
    later(2 * 60_000)
    assert.equal(await withToken(phases, token), undefined)
    assert.equal(server.asked.length, 2)
  })

  test('that are larger than any issuer uses are as good as none', async () => {
    // A large exponent makes each check as costly as a large modulus does, and such a key is made sooner.
    const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048, publicExponent: 0x1_00_00_01 })
    const large = { alg: 'RS256', key: privateKey, jwk: { ...(await exportJWK(publicKey)), kid: 'large' } }
    const { phases, server } = setUp()
    server.sets[KEYS] = { keys: [large.jwk, { ...rsa.jwk, n: 'A'.repeat(684), kid: 'larger' }, rsa.jwk] }
    assert.equal(await withToken(phases, await sign({}, rsa)), undefined)
    isRefused(await withToken(phases, await sign({}, large)))
  })

  test('are fetched again for a token with an unknown key, but not often', async () => {
    const { phases, server, later } = setUp()
    const token = await sign({ exp: NOW + 7200 }, other)
    isRefused(await withToken(phases, token))
    assert.equal(server.asked.length, 1)
    server.sets[KEYS] = { keys: [other.jwk] }
    for (let i = 0; i < 20; i++) isRefused(await withToken(phases, token))
    assert.equal(server.asked.length, 1)
    later(31_000)
    const verdicts = await Promise.all(Array.from({ length: 20 }, () => withToken(phases, token)))
    assert.deepEqual(verdicts, Array(20).fill(undefined))
    assert.equal(server.asked.length, 2)
    isRefused(await withToken(phases, await sign({ exp: NOW + 7200 })))
  })

  test('that cannot be fetched let nobody in', async () => {
    const { phases, server, later } = setUp()
    const token = await sign({ exp: NOW + 7200 })
    server.isDown = true
    isRefused(await withToken(phases, token), 'KEYS_UNAVAILABLE')
    isRefused(await withToken(phases, token), 'KEYS_UNAVAILABLE')
    assert.equal(server.asked.length, 1, 'the fetch is not repeated at once')
    server.isDown = false
    later(3000)
    assert.equal(await withToken(phases, token), undefined)
    server.isDown = true
    assert.equal(await withToken(phases, token), undefined, 'those that are known are used')
    later(16 * 60_000)
    isRefused(await withToken(phases, token), 'KEYS_UNAVAILABLE')
  })

  const unusable: Record<string, unknown> = {
    'no JSON': '<html>',
    'no set': [],
    'a set without keys': {},
    'keys that are no objects': { keys: ['a'] },
    'too many keys': { keys: Array.from({ length: 101 }, () => good.jwk) },
    'too long a set': { keys: [good.jwk], x: 'a'.repeat(300_000) },
    'two lists of keys': `{"keys":[],"keys":[${JSON.stringify(good.jwk)}]}`,
    nothing: undefined,
  }
  for (const [what, set] of Object.entries(unusable)) {
    test(`are not read from ${what}`, async () => {
      const { phases, server } = setUp()
      server.sets = { [KEYS]: set }
      isRefused(await withToken(phases, await sign()), 'KEYS_UNAVAILABLE')
    })
  }

  test('that are malformed or for another purpose verify nothing', async () => {
    const bad: object[] = [
      { kty: 'oct', kid: 'good', k: Buffer.alloc(32).toString('base64url') },
      { kty: 'EC', kid: 'good' },
      { kty: 'EC', crv: 'P-256', kid: 'good', x: '!', y: '!' },
      { ...good.jwk, use: 'enc' },
      { ...good.jwk, key_ops: ['encrypt'] },
      { ...good.jwk, alg: 'ES384' },
      { ...good.jwk, x: good.jwk.y },
    ]
    for (const jwk of bad) {
      const { phases, server } = setUp()
      server.sets = { [KEYS]: { keys: [jwk] } }
      isRefused(await withToken(phases, await sign()))
    }
  })

  test('come from several URLs, of which one may be down', async () => {
    const second = 'https://id.example.com/more'
    const { phases, server } = setUp(settings({ jkus: [KEYS, second] }))
    server.sets[second] = { keys: [other.jwk] }
    assert.equal(await withToken(phases, await sign()), undefined)
    assert.equal(await withToken(phases, await sign({}, other)), undefined)
    const partial = setUp(settings({ jkus: [KEYS, second] }))
    assert.equal(await withToken(partial.phases, await sign()), undefined)
    isRefused(await withToken(partial.phases, await sign({}, other)), 'KEYS_UNAVAILABLE')
  })
})

describe('rules after jwt-validation', () => {
  const ids = 'actions.ngrok.jwt_validation.tokens[0].payload'

  test('read the claims of the token', async () => {
    const { phases } = setUp(settings(), [
      on(`!(${ids}.sub == 'ada' && ${ids}.n == 1 && ${ids}.nested.list == ['a', 2] && ${ids}.exp > ${NOW})`, 'deny'),
      on("actions.ngrok.jwt_validation.tokens[0].header.kid != 'good'", 'deny'),
      on("actions.ngrok.jwt_validation.tokens[0].location_property != 'Authorization'", 'deny'),
      on('!actions.ngrok.jwt_validation.tokens[0].verified', 'deny'),
    ])
    assert.equal(await withToken(phases, await sign()), undefined)
  })

  test('let nothing pass when they fail on a claim that is missing', async () => {
    const { phases } = setUp(settings(), [on(`${ids}.role != 'admin'`, 'deny')])
    assert.equal(await withToken(phases, await sign({ role: 'admin' })), undefined)
    isRefused(await withToken(phases, await sign()), 'POLICY_FAILED')
  })

  test('jwt-validation itself cannot be bypassed by a failing condition', async () => {
    const phases = compile({ inbound: [on("req.headers['x-kind'][0] != 'internal'", 'jwt-validation', settings())] })
    isRefused(await ask(phases, request()), 'POLICY_FAILED')
    assert.equal(await ask(phases, request({ headers: { 'x-kind': 'internal' } })), undefined)
    const both = compile({
      inbound: [
        {
          ...on("req.headers['x'][0] != 'y'", 'jwt-validation', settings()),
          expressions: ["req.headers['x'][0] != 'y'", "req.method == 'PUT'"],
        },
      ],
    })
    assert.equal(await ask(both, request()), undefined, 'one that is false is enough not to apply')
  })
})
