import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '../../lib/log/create-log.ts'
import { check } from '../../lib/shape/check.ts'
import { MemorySessions } from '../login/memory-sessions.ts'
import { type Page, TestBrowser } from '../login/testing/test-browser.ts'
import { testTools } from '../testing/test-tools.ts'
import type { OAuthSettings } from './form.ts'
import { oauth } from './form.ts'
import { ada, TestOAuth } from './testing/test-answers.ts'
import { compileOAuth } from './traffic.ts'

const base = testTools()

/** A provider, a route that logs in with it, and a browser; `later` moves the clock, `change` compiles other settings. */
function setUp(name: string, more: Record<string, unknown> = {}, others: Record<string, unknown> = {}) {
  const { tokenUrl = '', answers = {} } = ada[name] ?? {}
  const provider = new TestOAuth(tokenUrl, { ...answers })
  const logged: string[] = []
  let ahead = 0
  const tools = {
    ...base,
    sessions: new MemorySessions(),
    fetch: provider.fetch,
    now: () => Date.UTC(2026, 0, 1) + ahead,
    log: createLog({ level: 'debug', format: 'json', destination: { write: (line) => logged.push(line) } }),
  }
  const change = (changed: Record<string, unknown>) => {
    assert.ok(oauth.at.route)
    const application = { client_id: 'app', client_secret: 'hush-hush', ...changed }
    const config = check(oauth.at.route, { provider: { [name]: application }, ...others }) as unknown as OAuthSettings
    return compileOAuth(config, tools)
  }
  const later = (ms: number): void => {
    ahead += ms
  }
  return { provider, browser: new TestBrowser(change(more)), change, later, logged }
}

async function logIn({ browser, provider }: ReturnType<typeof setUp>): Promise<Page> {
  const { location } = await browser.visit({ path: '/a' })
  return browser.visit({ path: provider.authorize(location) })
}

const scopes: Record<string, string> = {
  amazon: 'profile',
  facebook: 'email public_profile',
  github: 'read:user user:email',
  gitlab: 'read_user',
  google: 'openid email profile',
  linkedin: 'openid profile email',
  microsoft: 'openid profile email User.Read',
  twitch: 'user:read:email',
}

for (const [name, scope] of Object.entries(scopes)) {
  test(`a visitor logs in with ${name}, and the service knows the user`, async () => {
    const stage = setUp(name, { scopes: ['more'], email_addresses: ['ada@example.com'] })
    const { location } = await stage.browser.visit()
    const { searchParams, protocol } = new URL(location)
    assert.equal(protocol, 'https:')
    assert.equal(searchParams.get('scope'), `${scope} more`)
    assert.equal(searchParams.get('response_type'), 'code')
    assert.equal(searchParams.get('redirect_uri'), 'https://app.example.com/oauth2/callback')
    assert.equal(searchParams.get('code_challenge_method'), name === 'linkedin' ? null : 'S256')
    assert.equal((await logIn(stage)).location, '/a')
    const { status, upstream } = await stage.browser.visit()
    assert.equal(status, 200)
    assert.match(upstream?.get('postern-auth-user-id') ?? '', /^[\w.]+$/)
    assert.equal(upstream?.get('postern-auth-user-name'), 'Ada')
    assert.equal(upstream?.get('postern-auth-user-email')?.toLowerCase(), 'ada@example.com')
    assert.equal(upstream?.get('postern-auth-oauth-access-token'), 'access-1')
    assert.doesNotMatch(stage.logged.join(''), /access-1|hush-hush|code-1/)
  })

  test(`${name}: a user who is on no list is not let in`, async () => {
    const stage = setUp(name, {
      email_addresses: ['boss@evil.test', 'written-down@example.org'],
      email_domains: ['evil.test', 'mail.example.com', 'com'],
    })
    assert.equal((await logIn(stage)).code, 'LOGIN_NOT_ALLOWED')
    assert.equal((await stage.browser.visit()).status, 302)
  })

  test(`${name}: malformed answers let nobody in`, async () => {
    for (const answer of [null, [], {}, 'x', 1, { id: {}, sub: [], user_id: null, data: [null] }, { data: 'x' }]) {
      const stage = setUp(name)
      for (const path of Object.keys(stage.provider.answers)) stage.provider.answers[path] = answer
      assert.match((await logIn(stage)).code ?? '', /^LOGIN_(CLAIMS_REFUSED|EXCHANGE_FAILED)$/, JSON.stringify(answer))
      assert.ok(!stage.browser.cookies.has('__Host-postern.session'))
    }
  })
}

const unverified: Record<string, Record<string, unknown>> = {
  github: { 'api.github.com/user/emails': [{ email: 'ada@example.com', verified: false, primary: true }] },
  gitlab: { 'gitlab.com/api/v4/user': { id: 1, email: 'ada@example.com', confirmed_at: null } },
  google: { 'openidconnect.googleapis.com/v1/userinfo': { sub: '1', email: 'ada@example.com', email_verified: false } },
  linkedin: { 'api.linkedin.com/v2/userinfo': { sub: '1', email: 'ada@example.com' } },
  microsoft: {
    'graph.microsoft.com/v1.0/me': {
      id: '1',
      mail: 'ada@example.com',
      userPrincipalName: 'ada_example.com#EXT#@evil.onmicrosoft.com',
    },
  },
}

for (const [name, answers] of Object.entries(unverified)) {
  test(`${name}: an unverified address lets nobody in, and is not passed on`, async () => {
    const listed = setUp(name, { email_addresses: ['ada@example.com'], email_domains: ['example.com'] })
    Object.assign(listed.provider.answers, answers)
    assert.equal((await logIn(listed)).code, 'LOGIN_NOT_ALLOWED')
    const open = setUp(name)
    Object.assign(open.provider.answers, answers)
    assert.equal((await logIn(open)).location, '/a')
    assert.equal((await open.browser.visit()).upstream?.has('postern-auth-user-email'), false)
  })
}

const members: [name: string, lists: Record<string, string[]>, isIn: boolean][] = [
  ['github', { email_domains: ['example.com'] }, true],
  ['github', { organizations: ['acme'] }, true],
  ['github', { organizations: ['acme2'] }, false],
  ['github', { teams: ['ACME/web'] }, true],
  ['github', { teams: ['12'] }, true],
  ['github', { teams: ['acme/webx', '7', '1'] }, false],
  ['github', { teams: ['other/web'], organizations: ['acme'] }, true],
  ['github', { teams: ['other/web'], organizations: ['other'], email_addresses: ['ada@example.com'] }, true],
  ['google', { groups: ['team@example.com'] }, true],
  ['google', { groups: ['teams@example.com'] }, false],
]

for (const [name, lists, isIn] of members) {
  test(`${name} with ${JSON.stringify(lists)} ${isIn ? 'lets in' : 'keeps out'}`, async () => {
    const stage = setUp(name, lists)
    const { location, code } = await logIn(stage)
    assert.deepEqual([location, code], isIn ? ['/a', undefined] : ['', 'LOGIN_NOT_ALLOWED'])
  })
}

const githubAllows: [lists: Record<string, string[]>, organization?: string, team?: string][] = [
  [{}],
  [{ email_domains: ['example.com'] }],
  [{ organizations: ['other', 'ACME'] }, 'Acme'],
  [{ teams: ['other/web', 'acme/web'] }, 'Acme', 'Acme/web'],
  [{ teams: ['12'] }, 'Acme', 'Acme/web'],
  [{ teams: ['acme/ops', '12'] }, 'Acme', 'Acme/ops'],
  [{ teams: ['acme/web'], organizations: ['second', 'acme'] }, 'second', 'Acme/web'],
  [{ teams: ['other/x'], organizations: ['other'], email_addresses: ['ada@example.com'] }],
]

for (const [lists, organization, team] of githubAllows) {
  test(`the service gets the GitHub organization or team that matches ${JSON.stringify(lists)}`, async () => {
    const stage = setUp('github', lists)
    stage.provider.answers['api.github.com/user/orgs'] = [{ login: 'Acme' }, { login: 'second' }]
    stage.provider.answers['api.github.com/user/teams'] = ['web', 'ops'].map((slug, i) => ({
      id: 12 + i,
      slug,
      organization: { login: 'Acme' },
    }))
    await logIn(stage)
    const { upstream } = await stage.browser.visit()
    assert.equal(upstream?.get('postern-auth-github-user-id'), 'ada')
    assert.equal(upstream?.get('postern-auth-github-organization'), organization)
    assert.equal(upstream?.get('postern-auth-github-team'), team)
  })
}

test('what the service gets about GitHub changes when GitHub answers differently', async () => {
  const stage = setUp('github', { teams: ['acme/web', 'acme/ops'] }, { auth_check_interval: 60 })
  await logIn(stage)
  const team = async () => (await stage.browser.visit()).upstream?.get('postern-auth-github-team')
  assert.equal(await team(), 'Acme/web')
  const moved = { id: 13, slug: 'ops', organization: { login: 'Acme' } }
  stage.provider.answers['api.github.com/user/teams'] = [moved]
  stage.later(60_000)
  assert.equal(await team(), 'Acme/ops')
})

test('GitHub lists are read page by page, and scopes requested only where they are needed', async () => {
  const stage = setUp('github', { organizations: ['last'] })
  const first = Array.from({ length: 100 }, (_, i) => ({ login: `org${i}` }))
  stage.provider.answers['api.github.com/user/orgs'] = (url: URL) =>
    url.searchParams.get('page') === '1' ? first : [{ login: 'last' }]
  const { location } = await stage.browser.visit()
  assert.equal(new URL(location).searchParams.get('scope'), 'read:user user:email read:org')
  assert.equal((await logIn(stage)).location, '/a')
  assert.ok(!stage.provider.asked.some(({ url }) => url.pathname.includes('teams')))
})

test('no address breaks out of the query for groups', async () => {
  const stage = setUp('google', { groups: ['team@example.com'] })
  stage.provider.answers['openidconnect.googleapis.com/v1/userinfo'] = {
    sub: '1',
    email: "o'x\\@example.com",
    email_verified: true,
  }
  await logIn(stage)
  const queries = stage.provider.asked.map(({ url }) => url.searchParams.get('query')).filter((each) => each !== null)
  assert.equal(
    queries[0],
    String.raw`member_key_id == 'o\'x\\@example.com' && 'cloudidentity.googleapis.com/groups.discussion_forum' in labels`,
  )
})

test('a wrong answer of the token endpoint lets nobody in', async () => {
  const wrong: [answer: unknown, code: string][] = [
    [{ error: 'bad_verification_code' }, 'LOGIN_CODE_REFUSED'],
    [{ error: 'invalid_grant' }, 'LOGIN_CODE_REFUSED'],
    [{ error: 'incorrect_client_credentials', access_token: 'access-1' }, 'LOGIN_EXCHANGE_FAILED'],
    [{ error: { message: 'x' }, access_token: 'access-1' }, 'LOGIN_EXCHANGE_FAILED'],
    [{ access_token: '' }, 'LOGIN_EXCHANGE_FAILED'],
    [{ access_token: 'a\r\nb: c' }, 'LOGIN_EXCHANGE_FAILED'],
    [{ access_token: ['access-1'] }, 'LOGIN_EXCHANGE_FAILED'],
    [{ access_token: 'another' }, 'LOGIN_EXCHANGE_FAILED'],
    [null, 'LOGIN_EXCHANGE_FAILED'],
    ['access-1', 'LOGIN_EXCHANGE_FAILED'],
  ]
  for (const [answer, code] of wrong) {
    const stage = setUp('github')
    stage.provider.tokenAnswer = answer
    assert.equal((await logIn(stage)).code, code, JSON.stringify(answer))
  }
  const down = setUp('github')
  const { location } = await down.browser.visit()
  down.provider.isDown = true
  assert.equal((await down.browser.visit({ path: down.provider.authorize(location) })).code, 'LOGIN_EXCHANGE_FAILED')
})

test('the provider is asked again after the interval, once, and never before', async () => {
  const stage = setUp('github', {}, { auth_check_interval: 60 })
  await logIn(stage)
  const before = stage.provider.asked.length
  stage.later(59_000)
  assert.equal((await stage.browser.visit()).status, 200)
  assert.equal(stage.provider.asked.length, before)
  stage.later(1000)
  const pages = await Promise.all(Array.from({ length: 5 }, () => stage.browser.visit()))
  assert.deepEqual(
    pages.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  )
  assert.equal(stage.provider.asked.length, before + 2)
  assert.equal((await stage.browser.visit()).status, 200)
  assert.equal(stage.provider.asked.length, before + 2)
})

test('a user who has left the group is refused after the interval, without asking the provider each time', async () => {
  const stage = setUp('github', { organizations: ['acme'] }, { auth_check_interval: 60 })
  await logIn(stage)
  stage.provider.answers['api.github.com/user/orgs'] = []
  assert.equal((await stage.browser.visit()).status, 200)
  stage.later(60_000)
  assert.equal((await stage.browser.visit()).code, 'LOGIN_NOT_ALLOWED')
  const asked = stage.provider.asked.length
  assert.equal((await stage.browser.visit()).code, 'LOGIN_NOT_ALLOWED')
  assert.equal(stage.provider.asked.length, asked)
  stage.provider.answers['api.github.com/user/orgs'] = [{ login: 'acme' }]
  stage.later(60_000)
  assert.equal((await stage.browser.visit()).status, 200)
})

test('at a check, a provider that is down means 502, and an expired token means a new login', async () => {
  const stage = setUp('github', {}, { auth_check_interval: 60 })
  await logIn(stage)
  stage.later(60_000)
  stage.provider.isDown = true
  assert.equal((await stage.browser.visit()).code, 'LOGIN_PROVIDER_DOWN')
  stage.provider.isDown = false
  assert.equal((await stage.browser.visit()).status, 200)
  stage.later(60_000)
  stage.provider.accepted.clear()
  assert.equal((await stage.browser.visit()).status, 302)
})

test('an expired token is renewed, only for the same user', async () => {
  const stage = setUp('google', {}, { auth_check_interval: 60 })
  stage.provider.tokenAnswer = { access_token: 'access-1', refresh_token: 'refresh-1' }
  const { location } = await stage.browser.visit()
  assert.equal(new URL(location).searchParams.get('access_type'), 'offline')
  await logIn(stage)
  stage.later(60_000)
  stage.provider.accepted = new Set(['access-2'])
  stage.provider.refreshAnswer = { access_token: 'access-2' }
  const { upstream } = await stage.browser.visit()
  assert.equal(upstream?.get('postern-auth-oauth-access-token'), 'access-2')
  assert.equal(upstream?.get('postern-auth-oauth-refresh-token'), 'refresh-1')
  stage.later(60_000)
  stage.provider.answers['openidconnect.googleapis.com/v1/userinfo'] = { sub: 'another', email_verified: true }
  assert.equal((await stage.browser.visit()).status, 302)
})

test('changed lists apply at once to users who are logged in', async () => {
  const stage = setUp('github')
  await logIn(stage)
  const visit = async (lists: Record<string, unknown>) => {
    const { status, code } = await new TestBrowser(stage.change(lists), stage.browser.cookies).visit()
    return code ?? status
  }
  assert.equal(await visit({ email_domains: ['other.test'] }), 'LOGIN_NOT_ALLOWED')
  assert.equal(await visit({ email_domains: ['example.com'] }), 200)
  // Other scopes, so the login does not count.
  assert.equal(await visit({ organizations: ['acme'] }), 302)
})
