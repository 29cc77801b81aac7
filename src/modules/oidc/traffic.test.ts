import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Page, TestBrowser } from '../login/testing/test-browser.ts'
import type { PathUse } from '../phases.ts'
import { headerList } from '../testing/test-request.ts'
import { ISSUER, newKey } from './testing/test-provider.ts'
import { logIn, settings, setUp } from './testing/test-stage.ts'
import { compileOidc } from './traffic.ts'

test('sends a stranger to the provider, with all that the flow needs', async () => {
  const { browser } = setUp({ scopes: ['email', 'openid'] })
  const { status, location, headers, upstream } = await browser.visit({ path: '/a/b?c=d', method: 'POST' })
  assert.equal(status, 302)
  assert.equal(upstream, undefined)
  assert.equal(headers.get('cache-control'), 'no-store')
  const { origin, pathname, searchParams } = new URL(location)
  assert.equal(origin + pathname, `${ISSUER}/auth`)
  const { state, nonce, code_challenge, ...rest } = Object.fromEntries(searchParams)
  assert.deepEqual(rest, {
    client_id: 'app',
    response_type: 'code',
    redirect_uri: 'https://app.example.com/oauth2/callback',
    scope: 'openid email',
    code_challenge_method: 'S256',
  })
  assert.match(nonce ?? '', /^[\w-]{43}$/)
  assert.match(code_challenge ?? '', /^[\w-]{43}$/)
  assert.ok(!state?.includes('a/b'))
  const [cookie, ...more] = headers.all('set-cookie')
  assert.deepEqual(more, [])
  assert.match(
    cookie ?? '',
    /^__Host-postern\.nonce\.\w+=[\w-]+; Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=900$/,
  )
})

test('after a login the visitor gets the requested page, and the service learns who it is', async () => {
  const { browser, provider, logged } = setUp()
  const back = await logIn(browser, provider, { path: '/a/b?c=d' })
  assert.equal(back.status, 302)
  assert.equal(back.location, '/a/b?c=d')
  assert.equal(back.headers.get('cache-control'), 'no-store')
  assert.deepEqual([...browser.cookies.keys()], ['__Host-postern.session'])
  assert.match(
    back.headers.all('set-cookie')[0] ?? '',
    /^__Host-postern\.session=[\w-]{43}; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
  )
  const { status, upstream, ctx } = await browser.visit({ path: '/a/b?c=d', headers: { 'x-own': '1' } })
  assert.equal(status, 200)
  assert.deepEqual(Object.fromEntries(upstream ?? []), {
    'x-own': '1',
    'postern-auth-user-id': 'ada',
    'postern-auth-user-name': 'Ada Lovelace',
    'postern-auth-user-email': 'ada@example.com',
    'postern-auth-oauth-access-token': 'access-1',
  })
  assert.equal(ctx.found.get('oauth.decision'), 'allow')
  assert.equal(ctx.found.get('oauth.user.email'), 'ada@example.com')
  const secrets = ['access-1', 'hush-hush', browser.cookies.get('__Host-postern.session') ?? '']
  for (const secret of secrets) assert.ok(!logged.join('').includes(secret))
})

test('a login in memory is checked synchronously', async () => {
  const { browser, provider, phases } = setUp()
  await logIn(browser, provider)
  const before = provider.asked.length
  const { ctx } = await browser.visit()
  assert.equal(phases.request?.({ ...ctx, slots: new Map(), found: new Map() }), undefined)
  assert.equal(provider.asked.length, before)
})

test('cookies of others go upstream as they were sent, and ours never', async () => {
  const { browser, provider } = setUp({ cookie_prefix: 'my.' })
  await logIn(browser, provider)
  const session = `__Host-my.session=${browser.cookies.get('__Host-my.session')}`
  browser.cookies.clear()
  const cases: [sent: string[], left: string[]][] = [
    [[session], []],
    [[`a=1; ${session}; b="2;3`], [`a=1; b="2;3`]],
    [[`${session}; __Host-my.nonce.0=x; __Host-my.sessions=1`], ['__Host-my.sessions=1']],
    [
      ['a=1', session, '__Host-my.nonce.=; b=2'],
      ['a=1', 'b=2'],
    ],
    [[`__Host-my.nonce.x =1;${session}`], []],
  ]
  for (const [cookie, left] of cases) {
    const { upstream, status } = await browser.visit({ headers: { cookie } })
    assert.equal(status, 200, cookie.join(' | '))
    assert.deepEqual(upstream?.all('cookie'), left)
  }
})

test('OPTIONS pass without a login where configured, and name no user', async () => {
  const { browser, provider } = setUp({ options_passthrough: true })
  await logIn(browser, provider)
  const { status, upstream } = await browser.visit({ method: 'OPTIONS' })
  assert.equal(status, 200)
  assert.deepEqual([...(upstream ?? [])], [])
  const stranger = new TestBrowser(setUp().phases)
  assert.equal((await stranger.visit({ method: 'OPTIONS' })).status, 302)
})

test('a login ends after inactivity, and at its longest duration whatever happens', async () => {
  const idle = setUp({ inactivity_timeout: 60 })
  await logIn(idle.browser, idle.provider)
  for (let i = 0; i < 3; i++) {
    idle.later(50_000)
    assert.equal((await idle.browser.visit()).status, 200)
  }
  idle.later(61_000)
  assert.equal((await idle.browser.visit()).status, 302)

  const long = setUp({ maximum_duration: 100 })
  const { headers } = await logIn(long.browser, long.provider)
  assert.match(headers.all('set-cookie')[0] ?? '', /; Max-Age=100$/)
  for (const wait of [50_000, 49_000]) {
    long.later(wait)
    assert.equal((await long.browser.visit()).status, 200)
  }
  long.later(2000)
  assert.equal((await long.browser.visit()).status, 302)
})

test('a login counts only for its host, route, provider, client and scopes', async () => {
  const { browser, provider, tools } = setUp()
  await logIn(browser, provider)
  assert.equal((await browser.visit()).status, 200)
  assert.equal((await browser.visit({ host: 'other.example.com' })).status, 302)
  assert.equal((await browser.visit({ routeId: 'edghtsrt_2' })).status, 302)
  const secretChanged = { ...settings, client_secret: 'another' }
  assert.equal((await new TestBrowser(compileOidc(secretChanged, tools), browser.cookies).visit()).status, 200)
  for (const changed of [{ client_id: 'app2' }, { scopes: ['email'] }]) {
    const phases = compileOidc({ ...settings, ...changed }, tools)
    assert.equal((await new TestBrowser(phases, browser.cookies).visit()).status, 302)
  }
})

test('a second route adds to the session of the browser, under a new secret', async () => {
  const { browser, provider } = setUp()
  await logIn(browser, provider)
  const before = browser.cookies.get('__Host-postern.session')
  await logIn(browser, provider, { routeId: 'edghtsrt_2' })
  assert.notEqual(browser.cookies.get('__Host-postern.session'), before)
  assert.equal((await browser.visit()).status, 200)
  assert.equal((await browser.visit({ routeId: 'edghtsrt_2' })).status, 200)
  browser.cookies.set('__Host-postern.session', before ?? '')
  assert.equal((await browser.visit()).status, 302)
})

test('a session secret that was planted in a browser is not used for its login', async () => {
  const { browser, provider, phases } = setUp()
  const attacker = new TestBrowser(phases)
  await logIn(attacker, provider)
  const planted = attacker.cookies.get('__Host-postern.session') ?? ''
  browser.cookies.set('__Host-postern.session', planted)
  provider.claims = { sub: 'victim' }
  await logIn(browser, provider, { routeId: 'edghtsrt_2' })
  assert.equal((await browser.visit({ routeId: 'edghtsrt_2' })).upstream?.get('postern-auth-user-id'), 'victim')
  assert.equal((await attacker.visit({ routeId: 'edghtsrt_2' })).status, 302)
})

test('logout ends all logins of the host, and its cookie becomes useless', async () => {
  for (const path of ['/postern/logout', '/auth/logout']) {
    const { browser, provider } = setUp()
    await logIn(browser, provider)
    const session = browser.cookies.get('__Host-postern.session') ?? ''
    const { status, location } = await browser.visit({ path })
    assert.deepEqual([status, location], [302, '/'])
    assert.equal(browser.cookies.size, 0)
    browser.cookies.set('__Host-postern.session', session)
    assert.equal((await browser.visit()).status, 302)
  }
})

test('the login path makes the user give credentials again, and then goes to a path of this host', async () => {
  const { browser, provider } = setUp()
  await logIn(browser, provider)
  for (const path of ['/postern/login', '/auth/authn']) {
    const { status, location } = await browser.visit({ path: `${path}?to=%2Fx%3Fy%3D1` })
    assert.equal(status, 302)
    assert.equal(new URL(location).searchParams.get('prompt'), 'login')
    assert.equal((await browser.visit({ path: provider.authorize(location) })).location, '/x?y=1')
  }
})

test('login paths accept no other methods', async () => {
  const { browser } = setUp({ options_passthrough: true })
  for (const path of ['/oauth2/callback', '/postern/oidc/callback', '/postern/login', '/postern/logout']) {
    for (const method of ['PUT', 'HEAD', 'OPTIONS', ...(path.endsWith('logout') ? [] : ['POST'])]) {
      assert.equal((await browser.visit({ path, method })).status, 405, `${method} ${path}`)
    }
  }
})

test('the callback is claimed by the route that the state names, and a login by the route of its path', () => {
  const { phases } = setUp()
  const claim = (path: string, query: string, served = ''): PathUse | undefined =>
    phases.reserves
      ?.find((each) => each.path === path)
      ?.pathUse({
        host: 'a',
        query,
        headers: headerList({}),
        routeId: 'edghtsrt_1',
        serves: (asked) => asked === served,
      })
  assert.equal(claim('/oauth2/callback', 'code=1&state=edghtsrt_1.abc'), 'own')
  for (const query of ['', 'state=', 'state=edghtsrt_2.abc', 'state=edghtsrt_1', 'state=.', 'state=%']) {
    assert.equal(claim('/oauth2/callback', query), 'spare', query)
  }
  assert.equal(claim('/postern/login', 'to=/app/x%3Fy', '/app/x'), 'own')
  assert.equal(claim('/postern/login', '', '/'), 'own')
  assert.equal(claim('/auth/authn', 'to=//evil.test/app', '/'), 'own')
  assert.equal(claim('/postern/login', 'to=/other', '/app'), 'spare')
})

test('each fault of a callback has its own error, and nobody is let in', async () => {
  const good = async () => {
    const stage = setUp()
    const { location } = await stage.browser.visit({ path: '/a' })
    return { ...stage, path: stage.provider.authorize(location) }
  }
  const wrong: Record<string, (stage: Awaited<ReturnType<typeof good>>) => Promise<Page>> = {
    LOGIN_STATE_MISSING: ({ browser, path }) => browser.visit({ path: path.replace('state=', 'stat=') }),
    LOGIN_STATE_INVALID: ({ browser, path }) =>
      browser.visit({ path: path.replace('state=edghtsrt_1.', 'state=edghtsrt_1.0') }),
    LOGIN_STATE_EXPIRED: ({ browser, path, later }) => {
      later(15 * 60_000 + 1000)
      return browser.visit({ path })
    },
    LOGIN_WRONG_HOST: ({ browser, path }) => browser.visit({ path, host: 'b.example.com' }),
    LOGIN_OTHER_BROWSER: ({ phases, path }) => new TestBrowser(phases).visit({ path }),
    LOGIN_CODE_REFUSED: ({ browser, path }) => browser.visit({ path: path.replace('code=', 'code=x') }),
    LOGIN_DENIED: ({ browser, path }) => browser.visit({ path: path.replace('code=', 'error=access_denied&c=') }),
    LOGIN_PROVIDER_ERROR: ({ browser, path }) => browser.visit({ path: path.replace('code=', 'error=%0Ax&c=') }),
    LOGIN_EXCHANGE_FAILED: ({ browser, provider, path }) => {
      provider.tokenAnswer = { status: 401, body: '{"error":"invalid_client"}' }
      return browser.visit({ path })
    },
    LOGIN_NO_ID_TOKEN: ({ browser, provider, path }) => {
      provider.idToken = () => Promise.resolve(undefined)
      return browser.visit({ path })
    },
    LOGIN_TOKEN_REFUSED: ({ browser, provider, path }) => {
      provider.claims = { nonce: 'another' }
      return browser.visit({ path })
    },
    LOGIN_CLAIMS_REFUSED: ({ browser, provider, path }) => {
      provider.claims = { sub: 'a'.repeat(256) }
      return browser.visit({ path })
    },
  }
  for (const [code, go] of Object.entries(wrong)) {
    const stage = await good()
    const page = await go(stage)
    assert.equal(page.code, code)
    assert.ok(!stage.browser.cookies.has('__Host-postern.session'), code)
    assert.equal((await stage.browser.visit()).status, 302, code)
  }
})

test('a state of one edge or route is refused at another', async () => {
  const { browser, provider } = setUp()
  const { location } = await browser.visit()
  const path = provider.authorize(location)
  assert.equal((await browser.visit({ path, edgeId: 'edghts_2' })).code, 'LOGIN_STATE_INVALID')
  assert.equal((await browser.visit({ path, routeId: 'edghtsrt_2' })).code, 'LOGIN_STATE_INVALID')
  assert.equal(
    (await browser.visit({ path: path.replace('edghtsrt_1', 'edghtsrt_2'), routeId: 'edghtsrt_2' })).code,
    'LOGIN_STATE_INVALID',
  )
  assert.equal((await browser.visit({ path })).location, '/')
})

test('an attempt that began at one provider does not end at another', async () => {
  const { browser, provider, tools } = setUp()
  const { location } = await browser.visit()
  const path = provider.authorize(location)
  const changed = compileOidc({ ...settings, client_id: 'app2' }, tools)
  const asked = provider.asked.length
  assert.equal((await new TestBrowser(changed, browser.cookies).visit({ path })).code, 'LOGIN_STATE_INVALID')
  assert.equal(provider.asked.length, asked)
})

test('a callback cannot be used a second time', async () => {
  const { browser, provider } = setUp()
  const { location } = await browser.visit()
  const nonce = new Map(browser.cookies)
  const path = provider.authorize(location)
  assert.equal((await browser.visit({ path })).location, '/')
  assert.equal((await browser.visit({ path })).code, 'LOGIN_OTHER_BROWSER')
  for (const [name, value] of nonce) browser.cookies.set(name, value)
  assert.equal((await browser.visit({ path })).code, 'LOGIN_CODE_REFUSED')
})

test('a browser that asks for many pages at once keeps few cookies', async () => {
  const { browser, provider, later } = setUp()
  let location = ''
  for (let i = 0; i < 30; i++) {
    ;({ location } = await browser.visit({ path: `/${i}` }))
    later(1)
  }
  assert.equal(browser.cookies.size, 5)
  assert.equal((await browser.visit({ path: provider.authorize(location) })).location, '/29')
})

test('a provider that is down means 502 and lets nobody in, until it is back', async () => {
  const { browser, provider, later } = setUp()
  provider.isDown = true
  assert.equal((await browser.visit()).code, 'LOGIN_PROVIDER_DOWN')
  const asked = provider.asked.length
  assert.equal((await browser.visit()).code, 'LOGIN_PROVIDER_DOWN')
  assert.equal(provider.asked.length, asked, 'it is left alone for a moment')
  provider.isDown = false
  later(2000)
  const { location } = await browser.visit()
  const path = provider.authorize(location)
  provider.isDown = true
  assert.equal((await browser.visit({ path })).code, 'LOGIN_EXCHANGE_FAILED')
})

test('users stay logged in while the provider is down', async () => {
  const { browser, provider } = setUp()
  await logIn(browser, provider)
  provider.isDown = true
  assert.equal((await browser.visit()).status, 200)
})

test('the discovery document is read once, and later again in the background', async () => {
  const { browser, provider, later } = setUp()
  const count = () => provider.asked.filter((path) => path.includes('well-known')).length
  await Promise.all([browser.visit(), browser.visit(), browser.visit()])
  assert.equal(count(), 1)
  later(15 * 60_000)
  provider.isDown = true
  assert.equal((await browser.visit()).status, 302)
  assert.equal(count(), 2)
})

test('a discovery document of another issuer, or without endpoints, is refused', async () => {
  const wrong: Record<string, unknown>[] = [
    { issuer: 'https://evil.example.com' },
    { issuer: `${ISSUER}.evil.test` },
    { issuer: undefined },
    { authorization_endpoint: undefined },
    { authorization_endpoint: 'javascript:alert(1)' },
    { authorization_endpoint: 'http://id.example.com/auth' },
    { token_endpoint: undefined },
    { token_endpoint: 'http://id.example.com/token' },
    { jwks_uri: undefined },
    { jwks_uri: 'file:///etc/passwd' },
  ]
  for (const metadata of wrong) {
    const { browser, provider } = setUp()
    provider.metadata = metadata
    assert.equal((await browser.visit()).code, 'LOGIN_PROVIDER_DOWN', JSON.stringify(metadata))
  }
})

test('the client secret is sent in a header, or in the form if the provider does not accept the header', async () => {
  for (const methods of [undefined, ['client_secret_basic', 'client_secret_post'], ['client_secret_post']]) {
    const { browser, provider } = setUp()
    if (methods) provider.metadata = { token_endpoint_auth_methods_supported: methods }
    await logIn(browser, provider)
    const { headers = {}, body } = provider.lastTokenRequest ?? {}
    const isPost = methods?.length === 1
    assert.equal(headers.authorization !== undefined, !isPost)
    assert.equal(String(body).includes('client_secret=hush-hush'), isPost)
  }
})

test('asks userinfo for the address when the token has none, and accepts it only for the same user', async () => {
  const { browser, provider } = setUp()
  provider.claims = { email: undefined }
  provider.userinfo = { sub: 'ada', email: 'ada@mail.example.com' }
  await logIn(browser, provider)
  assert.equal((await browser.visit()).upstream?.get('postern-auth-user-email'), 'ada@mail.example.com')
  const other = setUp()
  other.provider.claims = { email: undefined }
  other.provider.userinfo = { sub: 'eve', email: 'ada@mail.example.com' }
  assert.equal((await logIn(other.browser, other.provider)).code, 'LOGIN_TOKEN_REFUSED')
})

test('an unverified address is not passed to the service', async () => {
  for (const email_verified of [false, 'false', null, 0, 'no', '', 'FALSE']) {
    const { browser, provider } = setUp()
    provider.claims = { email_verified }
    await logIn(browser, provider)
    const { upstream } = await browser.visit()
    assert.equal(upstream?.get('postern-auth-user-id'), 'ada')
    assert.equal(upstream?.has('postern-auth-user-email'), false)
  }
})

test('an address counts when it is verified or the provider does not say', async () => {
  for (const email_verified of [undefined, true, 'true']) {
    const { browser, provider } = setUp()
    provider.claims = { email: 'ada@example.com', email_verified }
    await logIn(browser, provider)
    assert.equal((await browser.visit()).upstream?.get('postern-auth-user-email'), 'ada@example.com')
  }
})

test('an address is unverified when the token or userinfo says so', async () => {
  for (const [token, more] of [
    [true, false],
    [false, true],
    [false, undefined],
    [undefined, false],
  ]) {
    const { browser, provider } = setUp()
    provider.claims = { email: undefined, email_verified: token }
    provider.userinfo = { sub: 'ada', email: 'ada@example.com', email_verified: more }
    await logIn(browser, provider)
    const { upstream } = await browser.visit()
    assert.equal(upstream?.get('postern-auth-user-id'), 'ada')
    assert.equal(upstream?.has('postern-auth-user-email'), false, JSON.stringify([token, more]))
  }
})

test('when the provider is asked again, an address counts only if it did before or is now verified', async () => {
  const cases: [claims: object, later: object, email: string | undefined][] = [
    [{}, { email: 'ada@example.com' }, 'ada@example.com'],
    [{}, {}, 'ada@example.com'],
    [{}, { email: 'ada@example.com', email_verified: false }, undefined],
    [{}, { email_verified: false }, undefined],
    [{ email_verified: false }, { email: 'ada@example.com' }, undefined],
    [{ email_verified: false }, {}, undefined],
    [{ email_verified: false }, { email: 'ada@example.com', email_verified: true }, 'ada@example.com'],
  ]
  for (const [claims, answer, email] of cases) {
    const { browser, provider, later } = setUp({ check_interval: 60 })
    provider.claims = { email: 'ada@example.com', ...claims }
    provider.userinfo = { sub: 'ada' }
    await logIn(browser, provider)
    provider.userinfo = { sub: 'ada', ...answer }
    later(61_000)
    const { status, upstream } = await browser.visit()
    assert.deepEqual([status, upstream?.get('postern-auth-user-email')], [200, email], JSON.stringify([claims, answer]))
  }
})

test('changed keys of the provider are read again, but not with every token', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const { browser, provider, phases } = setUp()
  const reads = () => provider.asked.filter((path) => path === '/jwks').length
  await logIn(browser, provider)
  assert.equal(reads(), 1)
  provider.keys = [await newKey('ES256')]
  assert.equal((await logIn(new TestBrowser(phases), provider)).code, 'LOGIN_TOKEN_REFUSED')
  assert.equal(reads(), 1)
  t.mock.timers.tick(1000)
  assert.equal((await logIn(new TestBrowser(phases), provider)).location, '/')
  assert.equal(reads(), 2)
})

test('a login that another process knows is waited for', async () => {
  const { browser, provider, tools } = setUp()
  await logIn(browser, provider)
  const { sessions } = tools
  const elsewhere = {
    find: async (place: Parameters<typeof sessions.find>[0]) => sessions.find(place),
    begin: sessions.begin.bind(sessions),
    seen: sessions.seen.bind(sessions),
    renew: sessions.renew.bind(sessions),
    end: sessions.end.bind(sessions),
    endUser: sessions.endUser.bind(sessions),
    useAnswer: sessions.useAnswer.bind(sessions),
  }
  const phases = compileOidc(settings, { ...tools, sessions: elsewhere })
  assert.equal((await new TestBrowser(phases, browser.cookies).visit()).status, 200)
  assert.equal((await new TestBrowser(phases).visit()).status, 302)
  const away = { ...elsewhere, find: () => Promise.reject(new Error('the store is away')) }
  const broken = compileOidc(settings, { ...tools, sessions: away })
  await assert.rejects(new TestBrowser(broken, browser.cookies).visit(), /the store is away/)
})

test('an expired session cookie does not hide a valid one, and only a few are tried', async () => {
  const { browser, provider, phases } = setUp()
  await logIn(browser, provider)
  const good = `__Host-postern.session=${browser.cookies.get('__Host-postern.session')}`
  const stale = `__Host-postern.session=${'A'.repeat(43)}`
  const status = async (...cookies: string[]) =>
    (await new TestBrowser(phases).visit({ headers: { cookie: cookies.join('; ') } })).status
  assert.equal(await status(stale, good), 200)
  assert.equal(await status('__Host-postern.session=x', stale, stale, good), 200)
  assert.equal(await status(stale, stale, stale, good), 302)
})
