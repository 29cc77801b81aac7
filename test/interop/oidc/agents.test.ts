/** Logins at endpoints of official agents and our own: with a certified provider, and up to the redirect to others. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { TunnelOptions } from '../../../src/agent/config/tunnel-options.ts'
import { httpUpstream, type Seen } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import { eachAgent, refusal, type Stage, tunnelAt } from '../agents/each-agent.ts'
import { JarClient } from './jar-client.ts'
import { CLIENT_ID, realProvider } from './provider.ts'

const DOMAIN = 'agent.login.test'
const application = { client_id: 'app', client_secret: 'hush-hush' }

/** A service, a provider, and a tunnel that guards the service with the provider. */
async function setUp(t: TestContext, { platform }: Stage) {
  const { address } = await httpUpstream(t)
  const url = (path = '/'): string => `https://${DOMAIN}:${platform.httpsPort}${path}`
  const provider = await realProvider(t, [url('/oauth2/callback')])
  const oidc = { issuer_url: provider.issuer, client_id: CLIENT_ID, client_secret: provider.clientSecret }
  const tunnel = (more: object = {}): TunnelOptions => ({ addr: address, domain: DOMAIN, oidc: { ...oidc, ...more } })
  const logIn = async (client = new JarClient(platform, '1.1')) => {
    const { status, headers, text } = await client.open(url('/app'))
    const code = headers['postern-error-code']
    return { client, outcome: code ?? status, seen: status === 200 ? (JSON.parse(text) as Seen).headers : {} }
  }
  /** 200 when logged in, 302 when not. */
  const isIn = async (client: JarClient) => (await client.get(url('/app'))).status
  return { address, provider, url, tunnel, logIn, isIn }
}

eachAgent(
  (stage, test) => {
    test('a visitor logs in with the issuer of the bind, and the service gets their identity', async (t) => {
      const { tunnel, logIn, url, provider } = await setUp(t, stage)
      await stage.open(t, tunnel({ scopes: ['profile', 'email'] }))
      const stranger = await visit(url('/app'), stage.platform, { headers: { 'postern-auth-user-id': 'root' } })
      assert.equal(stranger.status, 302)
      const { outcome, seen, client } = await logIn()
      assert.equal(outcome, 200)
      assert.equal(seen['postern-auth-user-id'], 'ada')
      assert.equal(seen['postern-auth-user-name'], 'ada of the test')
      assert.equal(seen['postern-auth-user-email'], 'ada@example.com')
      assert.equal(seen.cookie, undefined)
      const { application_sessions } = await stage.platform.admin.get('/app/sessions')
      assert.match(application_sessions[0].endpoint.id, /^ep_/)
      assert.equal((await client.get(url('/postern/logout'))).status, 302)
      assert.equal((await client.get(url('/app'))).status, 302)
      const log = stage.platform.log.join('')
      assert.ok(log.length > 0 && !log.includes(provider.clientSecret), 'the log has no client secret')
    })

    test('only users on the lists of the bind are let in', async (t) => {
      const { tunnel, logIn, provider } = await setUp(t, stage)
      const lists: [lists: object, outcome: number | string][] = [
        [{ allow_emails: ['Ada@example.com'] }, 200],
        [{ allow_emails: ['grace@example.com'] }, 'ERR_LOGIN_NOT_ALLOWED'],
        [{ allow_domains: ['example.com'] }, 200],
        [{ allow_domains: ['com', 'mail.example.com'] }, 'ERR_LOGIN_NOT_ALLOWED'],
        [{ allow_emails: ['grace@example.com'], allow_domains: ['example.com'] }, 200],
      ]
      for (const [list, expected] of lists) {
        const opened = await stage.open(t, tunnel(list))
        provider.user = 'ada'
        assert.equal((await logIn()).outcome, expected, JSON.stringify(list))
        await opened.close()
      }
    })

    test('a login outlives its agent, but is invalid at one with other settings or another credential', async (t) => {
      const { tunnel, logIn, isIn } = await setUp(t, stage)
      const { authtoken } = await stage.driver.credential(stage.platform)
      const first = await stage.connect(t)
      const opened = await first.open(tunnel())
      const { client, outcome } = await logIn()
      assert.equal(outcome, 200)
      await opened.close()
      await first.close()

      const again = await stage.connect(t)
      const back = await again.open(tunnel())
      assert.equal(await isIn(client), 200)
      await back.close()
      const changed = await again.open(tunnel({ scopes: ['profile'] }))
      assert.equal(await isIn(client), 302)
      await changed.close()

      const other = await stage.connect(t, { authtoken })
      const theirs = await other.open(tunnel())
      assert.equal(await isIn(client), 302)
      const { client: another } = await logIn()
      assert.equal(await isIn(another), 200)
      await theirs.close()
      await again.open(tunnel())
      assert.equal(await isIn(another), 302)
      assert.equal(await isIn(client), 200)
    })

    test('a visitor is sent to the provider that the bind names, with its application', async (t) => {
      const { address, url } = await setUp(t, stage)
      const oauth = { provider: 'github', ...application, allow_domains: ['example.com'], scopes: ['repo'] }
      await stage.open(t, { addr: address, domain: DOMAIN, oauth })
      const { status, headers } = await visit(url(), stage.platform)
      assert.equal(status, 302)
      const { origin, pathname, searchParams } = new URL(String(headers.location))
      assert.equal(origin + pathname, 'https://github.com/login/oauth/authorize')
      assert.equal(searchParams.get('client_id'), 'app')
      assert.equal(searchParams.get('scope'), 'read:user user:email repo')
      assert.equal(searchParams.get('redirect_uri'), url('/oauth2/callback'))
    })

    const refused: [what: string, tunnel: TunnelOptions, ngrok: number, words: RegExp][] = [
      ['an unknown provider', { oauth: { provider: 'myspace', ...application } }, 365, /amazon, facebook, github/],
      [
        'an invalid address',
        { oauth: { provider: 'google', ...application, allow_emails: ['ada'] } },
        301,
        /OAuth\.allow_emails\[0\]/,
      ],
      [
        'an issuer without TLS',
        { oidc: { issuer_url: 'http://id.example.com', ...application } },
        301,
        /OIDC\.issuer_url/,
      ],
      ['an endpoint without TLS', { oauth: { provider: 'google', ...application }, schemes: ['http'] }, 301, /https/],
    ]
    for (const [what, tunnel, ngrok, words] of refused) {
      test(`a bind with ${what} is refused`, async (t) => {
        const { address, url } = await setUp(t, stage)
        await assert.rejects(stage.open(t, { addr: address, domain: DOMAIN, ...tunnel }), refusal(ngrok, words))
        assert.equal(await tunnelAt(stage.platform, url().slice(0, -1)), undefined)
      })
    }

    // Our own agent refuses before it binds.
    if (!stage.driver.name.includes('SDK')) return
    test('a bind that requests an application of the server is refused', async (t) => {
      const { address } = await setUp(t, stage)
      const oauth = { provider: 'google', client_id: '', client_secret: '' }
      await assert.rejects(stage.open(t, { addr: address, domain: DOMAIN, oauth }), refusal(365, /none to lend/))
    })
  },
  { flags: { 'outbound-allow': '127.0.0.1/32', 'log-level': 'debug' } },
)
