import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Refusal } from '../../model/errors.ts'
import type { LoginOrigin, LoginSessions } from '../../model/logins.ts'
import { testTools } from '../testing/test-tools.ts'
import { compileLogin } from './compile-login.ts'
import type { LoginProvider } from './login-provider.ts'
import { MemorySessions } from './memory-sessions.ts'
import { storeDown } from './store-down.ts'
import { TestBrowser } from './testing/test-browser.ts'

const settings = {
  options_passthrough: false,
  cookie_prefix: '',
  inactivity_timeout: 0,
  maximum_duration: 0,
}

/** Lets in everybody, and checks them at every request. */
const provider: LoginProvider = {
  name: 'oidc',
  url: 'https://id.example.com',
  clientId: 'app',
  identity: 'identity',
  rules: '',
  checkEveryMs: 1,
  callbackPaths: ['/oauth2/callback'],
  begin: ({ state }) => Promise.resolve({ location: `/oauth2/callback?state=${state}`, kept: {} }),
  finish: () => Promise.resolve(known),
  check: () => Promise.resolve(known),
}
const known = { user: { id: 'ada', name: '', email: '', username: '' }, kept: {} }

/** Sessions whose methods in `away` fail. */
class FlakySessions extends MemorySessions {
  readonly away = new Set<keyof LoginSessions>()
  origin: LoginOrigin | undefined

  override begin(...[scope, login, origin, before]: Parameters<MemorySessions['begin']>): Promise<void> {
    this.origin = origin
    return this.#reach('begin') ?? super.begin(scope, login, origin, before)
  }

  override renew(...asked: Parameters<MemorySessions['renew']>): Promise<void> {
    return this.#reach('renew') ?? super.renew(...asked)
  }

  override end(...asked: Parameters<MemorySessions['end']>): Promise<void> {
    return this.#reach('end') ?? super.end(...asked)
  }

  #reach(what: keyof LoginSessions): Promise<never> | undefined {
    return this.away.has(what) ? storeAway() : undefined
  }
}

function storeAway(): Promise<never> {
  return Promise.reject(new Refusal('STORE_UNAVAILABLE', undefined, { headers: { 'retry-after': '7' } }))
}

/** A browser that is logged in, and the sessions behind it; every look at the clock advances it. */
async function stage() {
  const sessions = new FlakySessions()
  let now = 0
  const tools = testTools({ now: () => ++now, sessions })
  const browser = new TestBrowser(compileLogin(settings, provider, tools))
  await logIn(browser)
  assert.equal((await browser.visit()).status, 200)
  return { browser, sessions, tools }
}

async function logIn(browser: TestBrowser) {
  return browser.visit({ path: (await browser.visit()).location })
}

async function outcome(browser: TestBrowser, path = '/') {
  const { status, code, headers } = await browser.visit({ path })
  return [code ?? status, headers.get('retry-after')]
}

const tryLater = ['LOGIN_STORE_DOWN', '7']

test('a visitor who cannot be looked up is asked to retry', async () => {
  const { browser, tools, sessions } = await stage()
  const elsewhere = { ...bound(sessions), find: storeAway }
  const there = new TestBrowser(compileLogin(settings, provider, { ...tools, sessions: elsewhere }), browser.cookies)
  assert.deepEqual(await outcome(there), tryLater)
  // A visitor without a cookie is sent to log in, not looked up.
  assert.deepEqual(await outcome(new TestBrowser(compileLogin(settings, provider, tools))), [302, undefined])
})

test('a login that cannot be stored does not count, and its attempt is over', async () => {
  const { browser, sessions } = await stage()
  browser.cookies.clear()
  sessions.away.add('begin')
  const { code, headers } = await logIn(browser)
  assert.deepEqual([code, headers.get('retry-after')], tryLater)
  assert.equal(browser.cookies.size, 0)
})

test('a check whose outcome cannot be stored lets nobody in', async () => {
  const { browser, sessions } = await stage()
  sessions.away.add('renew')
  assert.deepEqual(await outcome(browser), tryLater)
  sessions.away.clear()
  assert.deepEqual(await outcome(browser), [200, undefined])
})

test('a logout that cannot be stored says so, and can be tried again', async () => {
  const { browser, sessions } = await stage()
  sessions.away.add('end')
  assert.deepEqual(await outcome(browser, '/postern/logout'), tryLater)
  sessions.away.clear()
  assert.deepEqual(await outcome(browser, '/postern/logout'), [302, undefined])
  assert.deepEqual(await outcome(browser), [302, undefined])
})

test('other errors are rethrown', async () => {
  const { browser, sessions, tools } = await stage()
  const broken = { ...bound(sessions), find: () => Promise.reject(new Error('broken')) }
  const there = new TestBrowser(compileLogin(settings, provider, { ...tools, sessions: broken }), browser.cookies)
  await assert.rejects(there.visit(), /broken/)
})

test('the store gets the URL of the provider', async () => {
  const { sessions } = await stage()
  assert.equal(sessions.origin?.providerUrl, 'https://id.example.com')
})

function bound(sessions: MemorySessions): LoginSessions {
  return {
    find: (scope) => sessions.find(scope),
    begin: (...login) => sessions.begin(...login),
    seen: (scope, at) => sessions.seen(scope, at),
    renew: (scope, login) => sessions.renew(scope, login),
    end: (scope) => sessions.end(scope),
    endUser: (owner, routeId, asked) => sessions.endUser(owner, routeId, asked),
    useAnswer: (answer) => sessions.useAnswer(answer),
  }
}

test('a visitor whose login lost a race is asked to try again; other errors are rethrown', () => {
  const lost = new Refusal('CONFLICT', undefined, { headers: { 'retry-after': '3' } })
  assert.deepEqual(storeDown(lost), { refuse: 'LOGIN_STORE_DOWN', headers: [['Retry-After', '3']] })
  for (const error of [new Refusal('NOT_FOUND'), new Error('broken')]) assert.throws(() => storeDown(error), error)
})
