// biome-ignore-all lint/suspicious/noTemplateCurlyInString: policies write their placeholders like this
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Fetch } from '../../lib/http/outbound-fetch.ts'
import { MemorySessions } from '../login/memory-sessions.ts'
import { type Page, TestBrowser, type Visit } from '../login/testing/test-browser.ts'
import { ada, TestOAuth } from '../oauth/testing/test-answers.ts'
import { CLIENT, ISSUER, newKey, TestProvider } from '../oidc/testing/test-provider.ts'
import type { Phases } from '../phases.ts'
import { compile, type GivenRule, on } from './testing/test-policy.ts'

const key = await newKey()
const oidcConfig = { issuer_url: ISSUER, ...CLIENT }
const login = (config: Record<string, unknown> = {}, type = 'openid-connect'): GivenRule => ({
  actions: [{ type, config: type === 'oauth' ? { ...CLIENT, ...config } : { ...oidcConfig, ...config } }],
})
const show = (body: string): GivenRule => ({ actions: [{ type: 'custom-response', config: { body } }] })

/** A provider, a route whose policy logs in with it, and a browser; `later` moves the clock of the route. */
function setUp(inbound: GivenRule[], fetch?: Fetch) {
  const provider = new TestProvider(key)
  let ahead = 0
  const tools = { sessions: new MemorySessions(), fetch: fetch ?? provider.fetch, now: () => Date.now() + ahead }
  const phases = compile({ inbound }, { tools })
  const later = (ms: number): void => {
    ahead += ms
  }
  return { provider, phases, tools, browser: new TestBrowser(phases), later }
}

async function logIn({ browser, provider }: Pick<ReturnType<typeof setUp>, 'browser' | 'provider'>, visit: Visit = {}) {
  const { location } = await browser.visit(visit)
  return browser.visit({ ...visit, path: provider.authorize(location) })
}

const isStranger = ({ status, location }: Page): boolean => status === 302 && location.startsWith(`${ISSUER}/auth?`)

/** What the policy itself answers. */
async function said(phases: Phases, browser: TestBrowser, visit: Visit = {}): Promise<unknown> {
  const page = await browser.visit(visit)
  assert.equal(page.status, 200, page.code)
  const verdict = await phases.request?.(page.ctx)
  return verdict && 'respond' in verdict ? verdict.respond.body : verdict
}

describe('openid-connect', () => {
  test('sends visitors to the provider, and lets them in when they come back', async () => {
    const stage = setUp([login({ scopes: ['groups'], authz_url_params: { hd: 'example.com', audience: 'a b' } })])
    const page = await stage.browser.visit({ path: '/a?b' })
    const { searchParams } = new URL(page.location)
    assert.deepEqual(
      ['scope', 'hd', 'audience', 'response_type', 'redirect_uri'].map((name) => searchParams.get(name)),
      ['openid groups', 'example.com', 'a b', 'code', 'https://app.example.com/oauth2/callback'],
    )
    const back = await stage.browser.visit({ path: stage.provider.authorize(page.location) })
    assert.deepEqual([back.status, back.location], [302, '/a?b'])
    const { upstream } = await stage.browser.visit({ path: '/a?b', headers: { 'x-a': '1' } })
    assert.deepEqual(
      [...(upstream ?? [])],
      [
        ['x-a', '1'],
        ['postern-auth-user-id', 'ada'],
        ['postern-auth-user-name', 'Ada Lovelace'],
        ['postern-auth-user-email', 'ada@example.com'],
        ['postern-auth-oauth-access-token', 'access-1'],
      ],
    )
  })

  test('identifies the visitor to later rules', async () => {
    const at = 'actions.ngrok.oidc'
    const stage = setUp([
      login({ max_session_duration: '1h' }),
      on(`!(${at}.identity.email in ['ada@example.com'])`, 'deny'),
      show(
        `\${${at}.identity.name} \${${at}.identity.provider_user_id} \${${at}.access_token} \${${at}.refresh_token == ''} ` +
          `\${timestamp(${at}.expires_at) > timestamp(time.now)} \${actions.ngrok.openid_connect.identity.email}`,
      ),
    ])
    await logIn(stage)
    assert.equal(await said(stage.phases, stage.browser), 'Ada Lovelace ada access-1 true true ada@example.com')
    const other = setUp([login(), on(`!(${at}.identity.email.endsWith('@example.org'))`, 'deny')])
    await logIn(other)
    assert.equal((await other.browser.visit()).status, 403)
  })

  test('answers its own paths, even where its rule does not apply', async () => {
    const rule = { ...login(), expressions: ["req.url.path.startsWith('/admin')"] }
    const stage = setUp([rule, on("req.url.path == '/closed'", 'deny')])
    assert.equal((await stage.browser.visit({ path: '/open' })).status, 200)
    const back = await logIn(stage, { path: '/admin/x' })
    assert.deepEqual([back.status, back.location], [302, '/admin/x'])
    assert.equal((await stage.browser.visit({ path: '/admin/x' })).status, 200)
    assert.equal((await stage.browser.visit({ path: '/closed' })).status, 403)
    assert.ok(isStranger(await stage.browser.visit({ path: '/postern/login' })))
    assert.equal((await stage.browser.visit({ path: '/postern/logout' })).location, '/')
    assert.ok(isStranger(await stage.browser.visit({ path: '/admin/x' })))
    assert.deepEqual(
      (await stage.browser.visit({ path: '/oauth2/callback?code=x&state=y' })).code,
      'LOGIN_STATE_INVALID',
    )
  })

  test('runs after earlier guards, on its own paths too', async () => {
    const stage = setUp([{ actions: [{ type: 'restrict-ips', config: { deny: ['192.0.2.7/32'] } }] }, login()])
    for (const path of ['/', '/oauth2/callback', '/postern/login', '/postern/logout']) {
      assert.equal((await stage.browser.visit({ path })).code, 'IP_REFUSED')
    }
  })

  test('ends after the configured times', async () => {
    const idle = setUp([login({ idle_session_timeout: '10m' })])
    await logIn(idle)
    idle.later(9 * 60_000)
    assert.equal((await idle.browser.visit()).status, 200)
    idle.later(11 * 60_000)
    assert.ok(isStranger(await idle.browser.visit()))
    const longest = setUp([login({ max_session_duration: '1h', idle_session_duration: '50m' })])
    await logIn(longest)
    for (const minutes of [30, 29]) {
      longest.later(minutes * 60_000)
      assert.equal((await longest.browser.visit()).status, 200)
    }
    longest.later(2 * 60_000)
    assert.ok(isStranger(await longest.browser.visit()))
  })

  test('asks the provider about the user again after the interval', async () => {
    const at = 'actions.ngrok.oidc'
    const stage = setUp([
      login({ userinfo_refresh_interval: '10m' }),
      show(`\${${at}.identity.email} \${${at}.userinfo_refreshed}`),
    ])
    const { provider, phases, browser, later } = stage
    provider.userinfo = { sub: 'ada', email: 'ada@example.com' }
    await logIn(stage)
    assert.equal(await said(phases, browser), 'ada@example.com false')
    provider.userinfo = { sub: 'ada', email: 'ada@new.example' }
    later(11 * 60_000)
    assert.match(String(await said(phases, browser)), /^ada@new\.example /)
    provider.isDown = true
    assert.match(String(await said(phases, browser)), /^ada@new\.example /, 'not yet')
    later(11 * 60_000)
    assert.equal((await browser.visit()).code, 'LOGIN_PROVIDER_DOWN')
    provider.isDown = false
    provider.userinfo = { sub: 'eve', email: 'ada@example.com' }
    assert.ok(isStranger(await browser.visit()), 'of another user')
  })

  test('lets preflights pass where configured, without a user', async () => {
    const stage = setUp([login({ allow_cors_preflight: true }), on('has(actions.ngrok.oidc)', 'deny')])
    assert.equal((await stage.browser.visit({ method: 'OPTIONS' })).status, 200)
    assert.ok(isStranger(await stage.browser.visit()))
    await logIn(stage)
    assert.equal((await stage.browser.visit()).status, 403)
    assert.ok(isStranger(await setUp([login()]).browser.visit({ method: 'OPTIONS' })))
  })
})

describe('a route stays closed', () => {
  test('when the condition of its login fails', async () => {
    const { browser } = setUp([{ ...login(), expressions: ["req.headers['x-kind'][0] != 'api'"] }])
    assert.equal((await browser.visit()).code, 'POLICY_FAILED')
    assert.ok(isStranger(await browser.visit({ headers: { 'x-kind': 'web' } })))
    assert.equal((await browser.visit({ headers: { 'x-kind': 'api' } })).status, 200)
  })

  test('when a condition on the user fails', async () => {
    const rule = on("req.headers['x'][0] != 'y' && !(actions.ngrok.oidc.identity.email in ['eve@example.com'])", 'deny')
    const stage = setUp([login(), rule])
    await logIn(stage)
    assert.equal((await stage.browser.visit()).code, 'POLICY_FAILED')
    assert.equal((await stage.browser.visit({ headers: { x: 'z' } })).status, 403)
  })

  test('when the provider sends no e-mail address', async () => {
    const stage = setUp([login(), on("actions.ngrok.oidc.identity.email != 'ada@example.com'", 'deny')])
    stage.provider.claims = { email: undefined }
    await logIn(stage)
    assert.equal((await stage.browser.visit()).status, 403)
  })

  test('when the provider is down', async () => {
    const stage = setUp([login()])
    stage.provider.isDown = true
    assert.equal((await stage.browser.visit()).code, 'LOGIN_PROVIDER_DOWN')
  })

  test('when the budget is spent before the login runs', async () => {
    const dear = '[1,2,3,4,5,6,7,8,9].all(a, lists.range(200).all(b, lists.range(200).all(c, c >= 0)))'
    const stage = setUp([on(dear, 'log', { metadata: { a: 1 } }), login()])
    assert.equal((await stage.browser.visit()).code, 'POLICY_BUDGET_SPENT')
  })
})

describe('several logins of one route', () => {
  const both = [
    { ...login({ auth_id: 'one' }), expressions: ["req.url.path.startsWith('/one')"] },
    { ...login({ auth_id: 'two', scopes: ['more'] }), expressions: ["req.url.path.startsWith('/two')"] },
  ]

  test('are distinguished by name', async () => {
    const stage = setUp(both)
    const { browser } = stage
    await logIn(stage, { path: '/one' })
    assert.equal((await browser.visit({ path: '/one' })).status, 200)
    assert.ok(isStranger(await browser.visit({ path: '/two' })))
    await logIn(stage, { path: '/two' })
    for (const path of ['/one', '/two']) assert.equal((await browser.visit({ path })).status, 200, path)
    await browser.visit({ path: '/auth/logout' })
    for (const path of ['/one', '/two']) assert.ok(isStranger(await browser.visit({ path })))
  })

  test('can be started by name', async () => {
    const { browser } = setUp(both)
    const scope = async (path: string): Promise<string | null> =>
      new URL((await browser.visit({ path })).location).searchParams.get('scope')
    assert.equal(await scope('/postern/login'), 'openid')
    assert.equal(await scope('/postern/login?auth_id=one'), 'openid')
    assert.equal(await scope('/postern/login?auth_id=two'), 'openid more')
  })

  test('claim only requests that are for them', () => {
    const { phases } = setUp(both)
    const claims = (path: string, query: string): unknown =>
      phases.reserves
        ?.filter((each) => each.path === path)
        .map((each) =>
          each.pathUse({ host: 'a', query, headers: { all: () => [] } as never, routeId: 'r', serves: () => false }),
        )
    assert.deepEqual(claims('/oauth2/callback', 'state=r~two.x'), ['spare', 'own'])
    assert.deepEqual(claims('/oauth2/callback', 'state=r.x'), ['spare', 'spare'])
    assert.deepEqual(claims('/postern/login', 'auth_id=one'), ['own', 'none'])
    assert.deepEqual(claims('/postern/login', ''), ['spare', 'spare'])
  })

  test("cannot finish each other's attempts", async () => {
    const { browser, provider } = setUp(both)
    const { location } = await browser.visit({ path: '/one' })
    const back = provider.authorize(location).replace('%7Eone', '%7Etwo')
    assert.match(back, /%7Etwo/)
    assert.equal((await browser.visit({ path: back })).code, 'LOGIN_STATE_INVALID')
  })

  test('that both apply run one after the other', async () => {
    const stage = setUp([login({ auth_id: 'one' }), login({ auth_id: 'two' })])
    await logIn(stage)
    const second = await stage.browser.visit()
    assert.ok(isStranger(second))
    await stage.browser.visit({ path: stage.provider.authorize(second.location) })
    assert.equal((await stage.browser.visit()).status, 200)
  })

  test('may be the same in two rules', async () => {
    const same = (path: string) => ({ ...login(), expressions: [`req.url.path == '${path}'`] })
    const stage = setUp([same('/a'), same('/b')])
    await logIn(stage, { path: '/a' })
    assert.equal((await stage.browser.visit({ path: '/b' })).status, 200)
  })
})

describe('oauth', () => {
  const github = (config: Record<string, unknown>, ...rest: GivenRule[]) => {
    const { tokenUrl = '', answers = {} } = ada.github ?? {}
    const provider = new TestOAuth(tokenUrl, { ...answers })
    return { ...setUp([login({ provider: 'github', ...config }, 'oauth'), ...rest], provider.fetch), provider }
  }
  const enter = async ({ browser, provider }: ReturnType<typeof github>): Promise<Page> => {
    const { location } = await browser.visit()
    return browser.visit({ path: provider.authorize(location) })
  }

  test('logs in with the provider that it names, and identifies the visitor to rules', async () => {
    const stage = github({}, show('${actions.ngrok.oauth.identity.email} ${actions.ngrok.oauth.identity.username}'))
    const { location } = await stage.browser.visit()
    assert.match(location, /^https:\/\/github\.com\/login\/oauth\/authorize\?/)
    await enter(stage)
    assert.equal(await said(stage.phases, stage.browser), 'ada@example.com ada')
  })

  test('knows the organizations and teams of a GitHub user, given the scope', async () => {
    const text = '${actions.ngrok.oauth.github.organizations} ${actions.ngrok.oauth.github.teams}'
    const curious = github({ scopes: ['read:org'] }, show(text))
    await enter(curious)
    const known = String(await said(curious.phases, curious.browser))
    assert.match(known, /^\["[^\]]+"\] \["[^\]]+"\]$/)
    const discreet = github({}, show(text))
    await enter(discreet)
    assert.equal(await said(discreet.phases, discreet.browser), '[] []')
  })

  test('adds parameters, but none that the login sets itself', async () => {
    const { location } = await github({ authz_url_params: { login: 'ada', allow_signup: 'false' } }).browser.visit()
    const { searchParams } = new URL(location)
    assert.deepEqual([searchParams.get('login'), searchParams.get('allow_signup')], ['ada', 'false'])
    assert.equal(searchParams.get('client_id'), 'app')
  })
})

describe('a login is refused when it is written', () => {
  const broken: readonly [string, Record<string, unknown>, RegExp][] = [
    ['oauth', { provider: 'nobody' }, /config\.provider` must be one of `amazon`/],
    ['oauth', {}, /config\.provider` is required/],
    [
      'oauth',
      { provider: 'google', client_id: '' },
      /config\.client_id` is required: visitors log in through your own application/,
    ],
    ['oauth', { provider: 'google', client_secret: '' }, /config\.client_secret` is required/],
    ['oauth', { provider: 'google', auth_id: 'a.b' }, /config\.auth_id` must match/],
    [
      'oauth',
      { provider: 'google', auth_cookie_domain: 'example.com' },
      /auth_cookie_domain` is not supported: a cookie/,
    ],
    ['oauth', { provider: 'google', authz_url_params: { redirect_uri: 'x' } }, /\["redirect_uri"\]` is a parameter/],
    ['oauth', { provider: 'google', scopes: ['a b'] }, /scopes\[0\]` must be one scope/],
    ['oauth', { provider: 'google', client_id: '${req.host}' }, /client_id` takes no expressions/],
    ['oauth', { provider: 'google', max_session_duration: '0s' }, /between `1s` and `8760h`/],
    ['oauth', { provider: 'google', idle_session_timeout: '1h', idle_session_duration: '1h' }, /keep one/],
    ['openid-connect', { issuer_url: 'http://example.com' }, /issuer_url` must be an https URL/],
    ['openid-connect', { issuer_url: 'https://a@example.com' }, /issuer_url` must be an https URL/],
    ['openid-connect', { issuer_url: 'https://example.com?x' }, /issuer_url` must be an https URL/],
    ['openid-connect', { issuer_url: '' }, /issuer_url/],
  ]
  for (const [type, config, reason] of broken) {
    test(`${type} ${JSON.stringify(config)}`, () => {
      assert.throws(
        () => setUp([login(config, type)]),
        (error) => error instanceof Error && reason.test(error.message) && !error.message.includes('hush-hush'),
      )
    })
  }

  test('when two different ones share a name', () => {
    assert.throws(
      () => setUp([login({ scopes: ['a'] }), login()]),
      /`inbound\[1\]\.actions\[0\]\.config\.auth_id` is `oidc`, the name of an earlier login with other settings/,
    )
  })

  test('in the phase of the response', () => {
    assert.throws(() => compile({ outbound: [login()] }), /works in `inbound` only/)
  })
})
