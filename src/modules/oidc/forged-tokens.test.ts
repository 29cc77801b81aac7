import assert from 'node:assert/strict'
import { createHmac, createPublicKey } from 'node:crypto'
import { test } from 'node:test'
import type { JWTPayload } from 'jose'
import { CLIENT, ISSUER, newKey, type TestProvider } from './testing/test-provider.ts'
import { logIn, setUp } from './testing/test-stage.ts'

const stranger = await newKey()
const strangerEc = await newKey('ES256')
const now = (): number => Math.floor(Date.now() / 1000)

/** Claims over the good ones; undefined leaves one out. */
const badClaims: Record<string, Record<string, unknown>> = {
  'no issuer': { iss: undefined },
  'an empty issuer': { iss: '' },
  'another issuer': { iss: 'https://evil.example.com' },
  'the issuer with a slash': { iss: `${ISSUER}/` },
  'the issuer in capitals': { iss: ISSUER.toUpperCase() },
  'the issuer over http': { iss: ISSUER.replace('https', 'http') },
  'the issuer with a path': { iss: `${ISSUER}/x` },
  'an issuer that begins like ours': { iss: `${ISSUER}.evil.test` },
  'a list of issuers': { iss: [ISSUER] },
  'a number as issuer': { iss: 1 },
  'null as issuer': { iss: null },
  'no audience': { aud: undefined },
  'an empty audience': { aud: '' },
  'another audience': { aud: 'other' },
  'the audience in capitals': { aud: CLIENT.client_id.toUpperCase() },
  'an audience that begins like ours': { aud: `${CLIENT.client_id}2` },
  'no audiences': { aud: [] },
  'other audiences': { aud: ['a', 'b'] },
  'an audience in an audience': { aud: [[CLIENT.client_id]] },
  'an object as audience': { aud: { 0: CLIENT.client_id } },
  'several audiences and no party': { aud: [CLIENT.client_id, 'other'] },
  'several audiences and another party': { aud: [CLIENT.client_id, 'other'], azp: 'other' },
  'another party': { azp: 'other' },
  'an empty party': { azp: '' },
  'a list as party': { azp: [CLIENT.client_id] },
  'no end': { exp: undefined },
  'an end that is over': { exp: now() - 120 },
  'an end long ago': { exp: 1 },
  'an end at zero': { exp: 0 },
  'an end before time': { exp: -1 },
  'a text as end': { exp: String(now() + 300) },
  'null as end': { exp: null },
  'a list as end': { exp: [now() + 300] },
  'no beginning': { iat: undefined },
  'a beginning in the future': { iat: now() + 3600 },
  'a beginning in two minutes': { iat: now() + 120 },
  'a text as beginning': { iat: String(now()) },
  'null as beginning': { iat: null },
  'true as beginning': { iat: true },
  'not before an hour': { nbf: now() + 3600 },
  'a text as not before': { nbf: 'now' },
  'no nonce': { nonce: undefined },
  'an empty nonce': { nonce: '' },
  'another nonce': { nonce: 'another' },
  'a list as nonce': { nonce: ['a'] },
  'null as nonce': { nonce: null },
  'no subject': { sub: undefined },
  'an empty subject': { sub: '' },
  'a number as subject': { sub: 1 },
  'null as subject': { sub: null },
  'a list as subject': { sub: ['ada'] },
  'a subject with a line break': { sub: 'ada\r\npostern-auth-user-id: root' },
  'a subject with a NUL': { sub: 'ada\0' },
  'a subject without end': { sub: 'a'.repeat(10_000) },
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const unsigned = (header: object, claims: JWTPayload, signature = ''): string =>
  `${encode(header)}.${encode(claims)}.${signature}`

/** Signed by the public key, as if it were a secret. */
function signedByPublicKey({ key: { jwk } }: TestProvider, claims: JWTPayload, form: 'pem' | 'jwk'): string {
  const pem = createPublicKey({ key: { ...jwk }, format: 'jwk' }).export({ type: 'spki', format: 'pem' })
  const secret = form === 'pem' ? String(pem) : JSON.stringify(jwk)
  const text = `${encode({ alg: 'HS256', kid: jwk.kid })}.${encode(claims)}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

function signedBySecret(claims: JWTPayload, secret: string, alg: 'HS256' | 'HS512'): string {
  const text = `${encode({ alg })}.${encode(claims)}`
  return `${text}.${createHmac(alg.replace('HS', 'sha'), secret).update(text).digest('base64url')}`
}

type Forge = (provider: TestProvider, claims: JWTPayload) => Promise<string> | string

const parts = async (token: Promise<string>): Promise<[string, string, string]> => {
  const [header = '', payload = '', signature = ''] = (await token).split('.')
  return [header, payload, signature]
}

const badTokens: Record<string, Forge> = {
  'none as algorithm': ({ key }, claims) => unsigned({ alg: 'none', kid: key.jwk.kid }, claims),
  'None as algorithm': (_, claims) => unsigned({ alg: 'None' }, claims),
  'NONE as algorithm': (_, claims) => unsigned({ alg: 'NONE' }, claims),
  'nOnE as algorithm, with a signature': (_, claims) => unsigned({ alg: 'nOnE' }, claims, 'AAAA'),
  'no algorithm': (_, claims) => unsigned({}, claims),
  'a list as algorithm': (_, claims) => unsigned({ alg: ['RS256'] }, claims, 'AAAA'),
  'an empty algorithm': (_, claims) => unsigned({ alg: '' }, claims, 'AAAA'),
  'an unknown algorithm': (_, claims) => unsigned({ alg: 'RS1' }, claims, 'AAAA'),
  'an algorithm that the provider does not name': (provider, claims) =>
    provider.sign(claims, { ...provider.key, alg: 'PS256' }),
  'another algorithm of the same key': (provider, claims) => provider.sign(claims, { ...provider.key, alg: 'RS512' }),
  'the public key as a secret': (provider, claims) => signedByPublicKey(provider, claims, 'pem'),
  'the public key as a secret, as JSON': (provider, claims) => signedByPublicKey(provider, claims, 'jwk'),
  'the client secret as a key': (_, claims) => signedBySecret(claims, CLIENT.client_secret, 'HS256'),
  'the client secret as a key of SHA-512': (_, claims) => signedBySecret(claims, CLIENT.client_secret, 'HS512'),
  'an empty secret': (_, claims) => signedBySecret(claims, '', 'HS256'),
  'a key of a stranger': (provider, claims) => provider.sign(claims, stranger),
  'a key of a stranger, of another kind': (provider, claims) => provider.sign(claims, strangerEc),
  'a key of a stranger under the name of ours': (provider, claims) =>
    provider.sign(claims, stranger, { kid: provider.key.jwk.kid }),
  'a key of a stranger without name': (provider, claims) => provider.sign(claims, stranger, { kid: undefined }),
  'a key of a stranger inside': (provider, claims) => provider.sign(claims, stranger, { jwk: stranger.jwk }),
  'an address of keys of a stranger': (provider, claims) =>
    provider.sign(claims, stranger, { jku: 'https://evil.example.com/jwks' }),
  'a certificate of a stranger': (provider, claims) => provider.sign(claims, stranger, { x5c: ['AAAA'] }),
  'a key that is a path': (provider, claims) => provider.sign(claims, stranger, { kid: '../../dev/null' }),
  'a critical extension': (provider, claims) =>
    unsigned({ alg: 'RS256', crit: ['x'], x: 1, kid: provider.key.jwk.kid }, claims, 'AAAA'),
  'no signature': async (provider, claims) => (await parts(provider.sign(claims))).with(2, '').join('.'),
  'half a signature': async (provider, claims) => {
    const made = await parts(provider.sign(claims))
    return made.with(2, made[2].slice(0, 171)).join('.')
  },
  'a signature of zeros': async (provider, claims) =>
    (await parts(provider.sign(claims))).with(2, Buffer.alloc(256).toString('base64url')).join('.'),
  'the signature of another token': async (provider, claims) => {
    const other = await parts(provider.sign({ ...claims, sub: 'eve' }))
    return (await parts(provider.sign(claims))).with(2, other[2]).join('.')
  },
  'other claims under a good signature': async (provider, claims) =>
    (await parts(provider.sign(claims))).with(1, encode({ ...claims, sub: 'root' })).join('.'),
  'another header under a good signature': async (provider, claims) =>
    (await parts(provider.sign(claims))).with(0, encode({ alg: 'RS256' })).join('.'),
  'two parts': async (provider, claims) => (await parts(provider.sign(claims))).slice(0, 2).join('.'),
  'four parts': async (provider, claims) => `${await provider.sign(claims)}.AAAA`,
  'five parts': async (provider, claims) => `${await provider.sign(claims)}.AAAA.AAAA`,
  nothing: () => '',
  dots: () => '..',
  'no base64': () => '!.!.!',
  'a list as claims': ({ key }) => unsigned({ alg: 'RS256', kid: key.jwk.kid }, [] as unknown as JWTPayload, 'AAAA'),
  'a signature of zeros by a curve': (_, claims) =>
    unsigned({ alg: 'ES256' }, claims, Buffer.alloc(64).toString('base64url')),
}

test('there are at least 90 forged tokens', () => {
  assert.ok(Object.keys(badClaims).length + Object.keys(badTokens).length >= 90)
})

async function isKeptOut(change: (provider: TestProvider) => void): Promise<void> {
  const { browser, provider, logged } = setUp()
  change(provider)
  const page = await logIn(browser, provider)
  assert.ok(page.code?.startsWith('LOGIN_'), `${page.status} ${page.code} ${page.location}`)
  assert.ok(!browser.cookies.has('__Host-postern.session'))
  assert.equal((await browser.visit()).status, 302)
  assert.ok(!/access-1|eyJ|hush-hush/.test(logged.join('')), 'a token is in the log')
}

for (const [what, claims] of Object.entries(badClaims)) {
  test(`a token with ${what} lets nobody in`, () =>
    isKeptOut((provider) => {
      provider.claims = claims
    }))
}

for (const [what, forge] of Object.entries(badTokens)) {
  test(`a token with ${what} lets nobody in`, () =>
    isKeptOut((provider) => {
      provider.idToken = async (claims) => forge(provider, claims)
    }))
}

for (const listed of [['none'], ['none', 'HS256'], ['HS256'], []]) {
  test(`a provider that signs with ${JSON.stringify(listed)} lets nobody in`, async () => {
    for (const forge of [badTokens['none as algorithm'], badTokens['the client secret as a key']]) {
      await isKeptOut((provider) => {
        provider.metadata = { id_token_signing_alg_values_supported: listed }
        provider.idToken = async (claims) => forge?.(provider, claims)
      })
    }
  })
}

test('good tokens of all kinds let in', async () => {
  const good: Record<string, unknown>[] = [
    {},
    { aud: [CLIENT.client_id] },
    { aud: [CLIENT.client_id, 'other'], azp: CLIENT.client_id },
    { azp: CLIENT.client_id },
    { exp: now() - 30 },
    { iat: now() + 30, nbf: now() + 30 },
  ]
  for (const claims of good) {
    const { browser, provider } = setUp()
    provider.claims = claims
    assert.equal((await logIn(browser, provider)).location, '/', JSON.stringify(claims))
  }
})

const badAnswers: readonly { status: number; body: string; type?: string }[] = [
  { status: 200, body: '' },
  { status: 200, body: '{' },
  { status: 200, body: 'null' },
  { status: 200, body: '[]' },
  { status: 200, body: '{}' },
  { status: 200, body: '{"access_token":"access-1","token_type":"Bearer","id_token":1}' },
  { status: 200, body: '{"access_token":"access-1","token_type":"Bearer"}', type: 'text/html' },
  { status: 204, body: '' },
  { status: 302, body: '' },
  { status: 400, body: '{"error":"invalid_grant","error_description":"access-1"}' },
  { status: 401, body: '{"error":"access-1 \\n"}' },
  { status: 500, body: 'access-1' },
  { status: 999, body: '' },
]

for (const answer of badAnswers) {
  test(`an exchange answered ${answer.status} ${answer.body} lets nobody in`, () =>
    isKeptOut((provider) => {
      provider.tokenAnswer = answer
    }))
}
