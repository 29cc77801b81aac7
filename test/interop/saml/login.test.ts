/** Logins with an identity provider built on another library, by the API and on the wire, over both HTTP versions. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Recorder, recorder } from '../../e2e/edges/upstreams.ts'
import { versions } from '../../e2e/edges/visitor.ts'
import { type HttpsEdge, World } from '../../e2e/edges/world.ts'
import { type Answered, type HttpVersion, visit } from '../../support/visitor.ts'
import { JarClient } from '../oidc/jar-client.ts'
import { type RealIdp, realIdp } from './provider.ts'

const NAME = 'app.saml.test'

let world: World
let service: Recorder
let provider: RealIdp
let edge: HttpsEdge
const url = (path = '/'): string => `https://${NAME}:${world.platform.httpsPort}${path}`
const address = (index: number, end: string): string => url(`/postern/saml/${edge.routes[index]?.id}/${end}`)

before(async () => {
  world = await World.start({ flags: { 'outbound-allow': '127.0.0.1/32', 'log-level': 'debug' } })
  service = await recorder(world)
  provider = await realIdp(world)
  const backend = await world.toAddress(service)
  edge = await world.httpsEdge({
    names: [NAME],
    routes: [
      { match: '/', backend },
      { match: '/app', backend, saml: { idp_metadata: provider.idp.metadata } },
      { match: '/team', backend, saml: { idp_metadata_url: provider.metadataUrl, authorized_groups: ['admins'] } },
      { match: '/open', backend, saml: { idp_metadata: provider.idp.metadata, allow_idp_initiated: true } },
    ],
  })
})
after(() => world.stop())

beforeEach(() => {
  provider.facts = {}
  provider.signing = {}
  provider.change = (xml) => xml
})

/** Acts like a browser: goes to the provider, and posts its form back. A form of another site lacks our cookies. */
async function openPage(client: JarClient, version: HttpVersion, path: string, index = 1): Promise<Answered> {
  provider.routeMetadata = (await new JarClient(world.platform, version).get(address(index, 'metadata'))).text
  const { status, headers } = await client.get(url(path))
  assert.equal(status, 302)
  const form = await client.get(String(headers.location))
  assert.equal(form.status, 200, form.text)
  return follow(client, await postForm(form.text, version))
}

async function postForm(html: string, version: HttpVersion): Promise<Answered> {
  const action = /action="([^"]*)"/.exec(html)?.[1] ?? ''
  const fields = new URLSearchParams()
  for (const [, name = '', value = ''] of html.matchAll(/name="([^"]*)" value="([^"]*)"/g)) fields.append(name, value)
  const { origin, pathname } = new URL(action)
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const body = fields.toString()
  return visit(origin, world.platform, { version, method: 'POST', path: pathname, headers, body })
}

async function follow(client: JarClient, from: Answered): Promise<Answered> {
  let answer = from
  for (let hops = 0; typeof answer.headers.location === 'string' && hops < 5; hops++) {
    answer = await client.get(new URL(answer.headers.location, url()).href)
  }
  return answer
}

for (const version of versions) {
  describe(`over HTTP/${version}`, () => {
    const newClient = (): JarClient => new JarClient(world.platform, version)

    test('a visitor logs in, comes back, and the service knows who it is', async () => {
      for (const signs of ['assertion', 'response', 'both'] as const) {
        provider.signing = { signs }
        const client = newClient()
        assert.equal((await openPage(client, version, '/app/x?y=1')).status, 200)
        assert.equal(service.last.url, '/app/x?y=1')
        assert.equal(service.last.get('postern-auth-user-id'), 'ada')
        assert.equal(service.last.get('postern-auth-user-email'), 'ada@example.com')
        assert.equal(service.last.get('cookie'), undefined)
        assert.equal((await client.get(url('/app'))).status, 200)
        // Another route requires its own login.
        assert.equal((await client.get(url('/team'))).status, 302)
      }
    })

    test('what the API shows is what is served', async () => {
      const saml = await world.api.get(`${edge.routes[1]?.path}/saml`)
      const { text, headers } = await newClient().get(address(1, 'metadata'))
      assert.equal(headers['content-type'], 'application/samlmetadata+xml')
      const head = await newClient().get(address(1, 'metadata'), {}, 'HEAD')
      assert.deepEqual([head.status, head.text], [200, ''])
      const served = (shown: string): string => shown.replace(`https://${NAME}/`, url('/'))
      for (const field of ['entity_id', 'assertion_consumer_service_url', 'single_logout_url']) {
        assert.ok(text.includes(`"${served(saml[field])}"`), field)
      }
      assert.ok(text.includes(saml.request_signing_certificate_pem.replace(/-----[A-Z ]+-----|\s/g, '')))
      const route = await world.api.get(edge.routes[1]?.path ?? '')
      const { routes } = await world.api.get(edge.path)
      assert.deepEqual(route.saml, saml)
      assert.deepEqual(routes.find(({ id }: { id: string }) => id === edge.routes[1]?.id).saml, saml)
    })

    test('metadata is read from its address, and groups decide', async () => {
      const client = newClient()
      assert.equal((await openPage(client, version, '/team', 2)).status, 200)
      provider.facts = { attributes: { groups: ['guests'] } }
      const refused = await openPage(newClient(), version, '/team', 2)
      assert.deepEqual([refused.status, refused.headers['postern-error-code']], [403, 'ERR_LOGIN_NOT_ALLOWED'])
    })

    test('forged, changed and misdirected answers are refused, and the page says why', async () => {
      const cases: readonly (readonly [code: string, set: () => void])[] = [
        ['UNSIGNED', () => (provider.change = (xml) => xml.replace('>ada<', '>root<'))],
        ['UNSIGNED', () => (provider.change = (xml) => xml.replace(/<ds:Signature.*<\/ds:Signature>/s, ''))],
        [
          'AMBIGUOUS',
          () =>
            (provider.change = (xml) =>
              xml.replace(/<saml:Assertion.*<\/saml:Assertion>/s, '$&$&').replace(/(.*) ID="[^"]*"/s, '$1 ID="_x"')),
        ],
        ['UNREADABLE', () => (provider.change = (xml) => `<!DOCTYPE x>${xml}`)],
        ['UNREADABLE', () => (provider.change = (xml) => xml.replace('>ada<', '>a<!-- -->da<'))],
        ['ELSEWHERE', () => (provider.facts = { audience: 'urn:other' })],
        ['ELSEWHERE', () => (provider.facts = { inResponseTo: '_other' })],
        ['OUTDATED', () => (provider.facts = { notOnOrAfter: -120 })],
      ]
      for (const [code, set] of cases) {
        provider.facts = {}
        provider.change = (xml) => xml
        set()
        const before = service.seen.length
        const client = newClient()
        const { headers, status } = await openPage(client, version, '/app')
        assert.equal(headers['postern-error-code'], `ERR_LOGIN_ANSWER_${code}`)
        assert.ok(status === 400 || status === 403)
        assert.equal((await client.get(url('/app'))).status, 302)
        assert.equal(service.seen.length, before)
      }
    })

    test('an answer is accepted once, in the browser where its login began', async () => {
      provider.routeMetadata = (await newClient().get(address(1, 'metadata'))).text
      const attacker = newClient()
      const { headers } = await attacker.get(url('/app'))
      const form = await attacker.get(String(headers.location))
      const sent = await postForm(form.text, version)
      assert.equal(sent.status, 303)
      const victim = newClient()
      const stolen = await victim.get(new URL(String(sent.headers.location), url()).href)
      assert.equal(stolen.headers['postern-error-code'], 'ERR_LOGIN_OTHER_BROWSER')
      assert.equal((await postForm(form.text, version)).headers['postern-error-code'], 'ERR_LOGIN_ANSWER_REPEATED')
      assert.equal((await follow(attacker, sent)).status, 200)
    })

    test('a login may begin at the identity provider if the module allows it', async () => {
      const begin = async (index: number, target: string): Promise<Answered> => {
        const [acs, entityId] = [address(index, 'acs'), address(index, 'metadata')]
        const xml = await provider.idp.answer(
          { requestId: '', relayState: '', acs, entityId },
          { inResponseTo: undefined },
        )
        const fields = { SAMLResponse: Buffer.from(xml).toString('base64'), RelayState: target }
        const inputs = Object.entries(fields).map(([name, value]) => `name="${name}" value="${value}"`)
        return postForm(`action="${acs}" ${inputs.join(' ')}`, version)
      }
      const client = newClient()
      assert.equal((await follow(client, await begin(3, url('/open/x')))).status, 200)
      assert.equal(service.last.url, '/open/x')
      assert.equal(
        (await begin(3, 'https://evil.example.com/')).headers['postern-error-code'],
        'ERR_LOGIN_TARGET_REFUSED',
      )
      assert.equal((await begin(1, '/app')).headers['postern-error-code'], 'ERR_LOGIN_STATE_INVALID')
    })

    test('logout ends it; and the identity provider can end it by either binding', async () => {
      const client = newClient()
      const logIn = async (): Promise<void> => assert.equal((await openPage(client, version, '/app')).status, 200)
      await logIn()
      assert.equal((await client.get(url('/postern/logout'))).status, 302)
      assert.equal((await client.get(url('/app'))).status, 302)

      await logIn()
      const slo = address(1, 'slo')
      const query = provider.idp.logoutQuery(slo, { logoutNameID: 'ada' }, 'back')
      const { status, headers } = await client.get(`${slo}?${query}`)
      assert.equal(status, 303)
      assert.ok(String(headers.location).startsWith('https://idp.example.com/slo?SAMLResponse='))
      assert.ok(String(headers.location).includes('&RelayState=back&SigAlg='))
      assert.equal((await client.get(url('/app'))).status, 302)

      await logIn()
      const forged = query.replace(/SAMLRequest=[^&]*/, 'SAMLRequest=fZA%3D')
      assert.equal((await client.get(`${slo}?${forged}`)).headers['postern-error-code'], 'ERR_LOGIN_ANSWER_UNREADABLE')
      assert.equal((await client.get(url('/app'))).status, 200)
      const field = provider.idp.logoutForm(slo, { logoutNameID: 'ada' })
      const sent = await postForm(`action="${slo}" name="SAMLRequest" value="${field}"`, version)
      assert.ok(String(sent.headers.location).startsWith('https://idp.example.com/slo?SAMLResponse='))
      assert.equal((await client.get(url('/app'))).status, 302)
    })
  })
}

test('unreadable metadata is a 502, and no visitor is let in', async () => {
  const backend = await world.toAddress(service)
  const { name } = await world.httpsEdge({ routes: [{ backend, saml: { idp_metadata_url: 'http://127.0.0.1:1/m' } }] })
  const { status, code } = await world.ask(name)
  assert.deepEqual([status, code], [502, 'ERR_LOGIN_PROVIDER_DOWN'])
})

test('the key that signs requests is kept: another edge shows the same certificate', async () => {
  const { request_signing_certificate_pem: one } = await world.api.get(`${edge.routes[1]?.path}/saml`)
  const other = await world.httpsEdge({ routes: [{ saml: { enabled: false } }] })
  const { request_signing_certificate_pem: two } = await world.api.get(`${other.routes[0]?.path}/saml`)
  assert.match(one, /^-----BEGIN CERTIFICATE-----/)
  assert.equal(two, one)
})

test('no document, secret or sealed answer is in the log', () => {
  const log = world.platform.log.join('')
  assert.ok(log.includes('a login failed'))
  assert.doesNotMatch(log, /PHNhbWxw|SAMLRe|[?&]answer=|postern\.session|PRIVATE KEY/)
})
