/** Logout requests of an identity provider, and forged ones. */
import assert from 'node:assert/strict'
import { createPublicKey, sign, verify } from 'node:crypto'
import { mock, test } from 'node:test'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { Refusal } from '../../model/errors.ts'
import { type Page, TestBrowser } from '../login/testing/test-browser.ts'
import { IDP, RSA_SHA1, RSA_SHA256, TestIdp } from './testing/test-idp.ts'
import { HOST, idp, logIn, post, ROUTE, type Stage, setUp } from './testing/test-stage.ts'

const SLO = `https://${HOST}${ROUTE}/slo`
const stranger = await TestIdp.make()

async function loggedIn(): Promise<Stage> {
  const stage = setUp()
  assert.equal((await logIn(stage)).status, 302)
  return stage
}

const isIn = async (browser: TestBrowser): Promise<boolean> => (await browser.visit()).status === 200

/** A valid request, of which a test can change parts, unlike with samlify. */
interface Request {
  readonly issuer?: string
  readonly destination?: string
  readonly instant?: number
  readonly more?: string
  readonly root?: string
  readonly name?: string
}

function requestXml({
  issuer = IDP,
  destination = SLO,
  instant = 0,
  more = '',
  root = 'LogoutRequest',
  name = 'ada',
}: Request): string {
  const at = new Date(Date.now() + instant * 1000).toISOString()
  return `<samlp:${root} xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_${Math.random()}" Version="2.0" IssueInstant="${at}" Destination="${destination}" ${more}><saml:Issuer>${issuer}</saml:Issuer><saml:NameID>${name}</saml:NameID></samlp:${root}>`
}

function signedQuery(
  xml: string | Buffer,
  { algorithm = RSA_SHA256, by = idp }: { algorithm?: string; by?: TestIdp } = {},
): string {
  const deflated = Buffer.isBuffer(xml) ? xml : deflateRawSync(xml)
  const signed = `SAMLRequest=${encodeURIComponent(deflated.toString('base64'))}&SigAlg=${encodeURIComponent(algorithm)}`
  const digest = algorithm === RSA_SHA1 ? 'sha1' : 'sha256'
  const signature = sign(digest, Buffer.from(signed), by.key.key.reveal()).toString('base64')
  return `${signed}&Signature=${encodeURIComponent(signature)}`
}

const send = (browser: TestBrowser, query: string): Promise<Page> => browser.visit({ path: `${ROUTE}/slo?${query}` })

/** What an answer to the provider says; its signature is verified by the certificate that we show. */
async function answerOf({ tools }: Stage, location: string): Promise<string> {
  const [to = '', query = ''] = location.split('?')
  assert.equal(to, 'https://idp.example.com/slo')
  const [signed = '', signature = ''] = query.split('&Signature=')
  const { certificate } = await tools.requestKey()
  const bytes = Buffer.from(decodeURIComponent(signature), 'base64')
  assert.ok(verify('sha256', Buffer.from(signed), createPublicKey(certificate), bytes))
  const response = new URLSearchParams(query).get('SAMLResponse') ?? ''
  return inflateRawSync(Buffer.from(response, 'base64')).toString()
}

test('a signed request ends the login, and the identity provider gets an answer', async () => {
  const stage = await loggedIn()
  const page = await send(stage.browser, idp.logoutQuery(SLO, { logoutNameID: 'ada' }, 'x=1&y'))
  assert.equal(page.status, 303)
  assert.equal(new URLSearchParams(page.location.split('?')[1]).get('RelayState'), 'x=1&y')
  const xml = await answerOf(stage, page.location)
  assert.match(xml, /^<samlp:LogoutResponse .*Destination="https:\/\/idp.example.com\/slo" InResponseTo="_?[\w-]+">/)
  assert.match(xml, /status:Success/)
  assert.equal(await isIn(stage.browser), false)
})

test('the POST binding does the same, without any cookie', async () => {
  const stage = await loggedIn()
  const field = idp.logoutForm(SLO, { logoutNameID: 'ada' })
  const page = await post(stage.browser, { SAMLRequest: field, RelayState: 'back' }, { path: `${ROUTE}/slo` })
  assert.match(await answerOf(stage, page.location), /status:Success/)
  assert.equal(await isIn(stage.browser), false)
})

test('a request ends the logins of that user in all browsers, and of nobody else', async () => {
  const stage = await loggedIn()
  const other = { ...stage, browser: new TestBrowser(stage.phases) }
  assert.equal((await logIn(other)).status, 302)
  const grace = { ...stage, browser: new TestBrowser(stage.phases) }
  assert.equal((await logIn(grace, { nameId: 'grace' })).status, 302)
  const page = await send(new TestBrowser(stage.phases), idp.logoutQuery(SLO, { logoutNameID: 'ada' }))
  assert.equal(page.status, 303)
  assert.deepEqual(
    [await isIn(stage.browser), await isIn(other.browser), await isIn(grace.browser)],
    [false, false, true],
  )
})

const refused: Record<string, readonly [code: string, query: () => string]> = {
  'no signature': ['LOGIN_ANSWER_UNSIGNED', () => signedQuery(requestXml({})).replace(/&Signature=.*/, '')],
  'no method of a signature': ['LOGIN_ANSWER_UNSIGNED', () => signedQuery(requestXml({})).replace(/&SigAlg=[^&]*/, '')],
  'a signature by another key': ['LOGIN_ANSWER_UNSIGNED', () => signedQuery(requestXml({}), { by: stranger })],
  'a signature with SHA-1': ['LOGIN_ANSWER_UNSIGNED', () => signedQuery(requestXml({}), { algorithm: RSA_SHA1 })],
  'a method that is a name of an object': [
    'LOGIN_ANSWER_UNSIGNED',
    () => signedQuery(requestXml({}), { algorithm: 'constructor' }),
  ],
  'a parameter that nobody signed': ['LOGIN_ANSWER_UNSIGNED', () => `${signedQuery(requestXml({}))}&RelayState=x`],
  'two requests': [
    'LOGIN_ANSWER_UNSIGNED',
    () =>
      `SAMLRequest=${encodeURIComponent(deflateRawSync(requestXml({})).toString('base64'))}&${signedQuery(requestXml({}))}`,
  ],
  'a request under an encoded name': [
    'LOGIN_ANSWER_UNSIGNED',
    () => signedQuery(requestXml({})).replace('SAMLRequest=', 'SAML%52equest='),
  ],
  'another issuer': ['LOGIN_ANSWER_ELSEWHERE', () => signedQuery(requestXml({ issuer: 'urn:other' }))],
  'another destination': ['LOGIN_ANSWER_ELSEWHERE', () => signedQuery(requestXml({ destination: `${SLO}/` }))],
  'an old request': ['LOGIN_ANSWER_OUTDATED', () => signedQuery(requestXml({ instant: -601 }))],
  'a request of tomorrow': ['LOGIN_ANSWER_OUTDATED', () => signedQuery(requestXml({ instant: 86_400 }))],
  'a request that is over': [
    'LOGIN_ANSWER_OUTDATED',
    () => signedQuery(requestXml({ more: 'NotOnOrAfter="2020-01-01T00:00:00Z"' })),
  ],
  'another message': ['LOGIN_ANSWER_UNREADABLE', () => signedQuery(requestXml({ root: 'LogoutResponse' }))],
  'nobody to log out': ['LOGIN_ANSWER_AMBIGUOUS', () => signedQuery(requestXml({ name: '' }))],
  'two to log out': [
    'LOGIN_ANSWER_AMBIGUOUS',
    () => signedQuery(requestXml({ name: 'ada</saml:NameID><saml:NameID>grace' })),
  ],
  'a DTD': ['LOGIN_ANSWER_UNREADABLE', () => signedQuery(`<!DOCTYPE x>${requestXml({})}`)],
  'a comment in the name': ['LOGIN_ANSWER_UNREADABLE', () => signedQuery(requestXml({ name: 'ada<!-- -->x' }))],
  'what is not deflated': ['LOGIN_ANSWER_UNREADABLE', () => signedQuery(Buffer.from(requestXml({})))],
  'what inflates to very much': [
    'LOGIN_ANSWER_UNREADABLE',
    () => signedQuery(deflateRawSync(requestXml({ more: `a="${'x'.repeat(20_000_000)}"` }))),
  ],
}

for (const [what, [code, query]] of Object.entries(refused)) {
  test(`refuses ${what}`, async () => {
    const stage = await loggedIn()
    assert.equal((await send(stage.browser, query())).code, code)
    assert.equal(await isIn(stage.browser), true)
  })
}

test('a request is accepted once', async () => {
  const stage = await loggedIn()
  const query = signedQuery(requestXml({}))
  assert.equal((await send(stage.browser, query)).status, 303)
  assert.equal((await logIn(stage)).status, 302)
  assert.equal((await send(stage.browser, query)).code, 'LOGIN_ANSWER_REPEATED')
  assert.equal(await isIn(stage.browser), true)
})

test('a request that could not be served is accepted again, and then once', async () => {
  const stage = await loggedIn()
  const query = signedQuery(requestXml({}))
  const { sessions } = stage.tools
  const down = mock.method(sessions, 'endUser', () => Promise.reject(new Refusal('STORE_UNAVAILABLE')))
  assert.equal((await send(stage.browser, query)).code, 'LOGIN_STORE_DOWN')
  assert.equal((await send(stage.browser, query)).code, 'LOGIN_STORE_DOWN')
  down.mock.restore()
  assert.equal(await isIn(stage.browser), true)
  assert.equal((await send(stage.browser, query)).status, 303)
  assert.equal(await isIn(stage.browser), false)
  assert.equal((await logIn(stage)).status, 302)
  assert.equal((await send(stage.browser, query)).code, 'LOGIN_ANSWER_REPEATED')
  assert.equal(await isIn(stage.browser), true)
})

test('a posted request must be signed as a whole, by a key of the provider, and not rearranged', async () => {
  const stage = await loggedIn()
  const good = Buffer.from(idp.logoutForm(SLO, { logoutNameID: 'ada' }), 'base64').toString()
  const signature = /<ds:Signature.*<\/ds:Signature>/s.exec(good)?.[0] ?? assert.fail('it is not signed')
  const bare = good.replace(signature, '')
  const evil = bare.replace(/ ID="[^"]*"/, ' ID="_evil"')
  const inside = (outer: string, inner: string): string => outer.replace(/(<\/[\w:]+>)$/, `${inner}$1`)
  const forms: Record<string, string> = {
    unsigned: bare,
    changed: good.replace('>ada<', '>root<'),
    'by another key': Buffer.from(stranger.logoutForm(SLO, { logoutNameID: 'ada' }), 'base64').toString(),
    wrapped: inside(evil, good),
    'wrapped in its signature': inside(evil, inside(signature, `<ds:Object>${bare}</ds:Object>`)),
    'signed by a signature of another': inside(evil, signature),
  }
  for (const [what, xml] of Object.entries(forms)) {
    const SAMLRequest = Buffer.from(xml).toString('base64')
    const { code } = await post(stage.browser, { SAMLRequest }, { path: `${ROUTE}/slo` })
    assert.equal(code, 'LOGIN_ANSWER_UNSIGNED', what)
  }
})
