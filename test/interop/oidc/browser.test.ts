/** Logins in a real browser with a certified provider, over both HTTP versions; a neighbour tosses cookies. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { type Recorder, recorder } from '../../e2e/edges/upstreams.ts'
import { versions } from '../../e2e/edges/visitor.ts'
import { World } from '../../e2e/edges/world.ts'
import { findChromium, type TestChromium } from '../../support/browser.ts'
import { JarClient } from './jar-client.ts'
import { CLIENT_ID, type RealProvider, realProvider } from './provider.ts'

const NAME = 'app.login.test'
const OTHER_NAME = 'evil.login.test'
const SESSION = '__Host-postern.session'

const found: TestChromium | undefined = await findChromium()

if (!found) {
  test('logins in a real browser', (t) => {
    t.diagnostic('no Chromium runs on this machine, so logins in a real browser are left out')
  })
} else {
  suite(found)
}

function suite(chromium: TestChromium): void {
  let world: World
  let service: Recorder
  let provider: RealProvider
  /** Headers of the neighbour's pages. */
  let tossed: string[] = []
  const url = (path = '/', name = NAME): string => `https://${name}:${world.platform.httpsPort}${path}`

  before(async () => {
    world = await World.start({ flags: { 'outbound-allow': '127.0.0.1/32' } })
    service = await recorder(world, (request, response) => {
      response.setHeader('content-type', 'text/html')
      const { 'postern-auth-user-id': user = 'nobody' } = request.headers
      response.end(`<!doctype html><title>${request.url}</title><p>${String(user)}`)
    })
    const other = await recorder(world, (_, response) => {
      response.setHeader('set-cookie', tossed)
      response.setHeader('content-type', 'text/html')
      response.end('<!doctype html><title>neighbour</title>')
    })
    provider = await realProvider(world, [url('/oauth2/callback'), url('/oauth2/callback', OTHER_NAME)])
    provider.hasForm = true
    const oidc = {
      issuer: provider.issuer,
      client_id: CLIENT_ID,
      client_secret: provider.clientSecret,
      scopes: ['email'],
    }
    const backend = await world.toAddress(service)
    await world.httpsEdge({
      names: [NAME],
      routes: [
        { match: '/', backend },
        { match: '/app', backend, oidc },
      ],
    })
    const theirs = await world.toAddress(other)
    await world.httpsEdge({
      names: [OTHER_NAME],
      routes: [
        { match: '/', backend: theirs },
        { match: '/app', backend: theirs, oidc },
      ],
    })
  })
  after(async () => {
    await world.stop()
    await chromium.close()
  })

  for (const version of versions) {
    describe(`over HTTP/${version}`, () => {
      let browser: Browser
      before(async () => {
        const flags = version === '2' ? [] : ['--disable-http2']
        browser = await chromium.launch({ names: 'MAP *.login.test 127.0.0.1', flags })
      })
      after(() => browser.close())

      /** A person's browser, with its own cookies. */
      const person = async (t: { after(close: () => unknown): void }): Promise<BrowserContext> => {
        const context = await browser.newContext({ ignoreHTTPSErrors: true })
        t.after(() => context.close())
        return context
      }
      const fillIn = async (page: Page, user: string): Promise<void> => {
        await page.fill('input[name=user]', user)
        await page.click('button')
      }
      const logIn = async (page: Page, user = 'ada', path = '/app/x?y=1'): Promise<void> => {
        await page.goto(url(path))
        await fillIn(page, user)
        await page.waitForURL(url(path))
      }
      /** The user that the service sees; undefined at the provider's form. */
      const whoIs = async (page: Page, path = '/app'): Promise<string | undefined> => {
        await page.goto(url(path))
        return page.url() === url(path) ? ((await page.textContent('p')) ?? '') : undefined
      }

      test('a person logs in once, comes back to the page, and is known there', async (t) => {
        const page = await (await person(t)).newPage()
        await logIn(page)
        assert.equal(await page.textContent('p'), 'ada')
        assert.equal(await page.title(), '/app/x?y=1')
        const protocol = await page.evaluate('performance.getEntriesByType("navigation")[0].nextHopProtocol')
        assert.equal(protocol, version === '2' ? 'h2' : 'http/1.1')
        assert.equal(await page.evaluate('document.cookie'), '', 'scripts see no cookie of a login')
        assert.equal(await whoIs(page, '/app/other'), 'ada')
        assert.equal(service.last.get('cookie'), undefined)
      })

      test('logout ends the login, but not the session at the provider', async (t) => {
        const context = await person(t)
        const page = await context.newPage()
        await logIn(page)
        await page.goto(url('/postern/logout'))
        assert.equal(page.url(), url('/'))
        assert.deepEqual(
          (await context.cookies(url())).map(({ name }) => name),
          [],
        )
        // The provider still knows the user, and shows no form.
        assert.equal(await whoIs(page), 'ada')
        await page.goto(url('/postern/logout'))
        await page.goto(url('/postern/login?to=/app/z'))
        await fillIn(page, 'grace')
        await page.waitForURL(url('/app/z'))
        assert.equal(await page.textContent('p'), 'grace')
      })

      test('a login that is revoked through the API ends with the next request', async (t) => {
        const context = await person(t)
        const page = await context.newPage()
        const user = `revoked-${version === '2' ? 'two' : 'one'}`
        await logIn(page, user)
        const users = (await world.api.get('/app/users')).application_users
        const { id } = users.find((each: { provider_user_id: string }) => each.provider_user_id === user)
        const sessions = (await world.api.get('/app/sessions')).application_sessions
        const session = sessions.find((each: { application_user: { id: string } }) => each.application_user.id === id)
        await world.api.delete(`/app/sessions/${session.id}`)
        await context.clearCookies({ domain: '127.0.0.1' })
        assert.equal(await whoIs(page), undefined)
        await fillIn(page, user)
        await page.waitForURL(url('/app'))
        assert.equal(await page.textContent('p'), user)
      })

      test('the back button does not lead through old steps of a login', async (t) => {
        const page = await (await person(t)).newPage()
        let callback = ''
        page.on('request', (request) => {
          if (request.url().includes('/oauth2/callback')) callback = request.url()
        })
        await page.goto(url('/'))
        await logIn(page, 'ada', '/app/1')
        await page.goto(url('/app/2'))
        await page.goBack()
        assert.deepEqual([page.url(), await page.textContent('p')], [url('/app/1'), 'ada'])
        // Back past the provider's form to where the person came from.
        await page.goBack()
        await page.goto(url('/app/2'))
        assert.equal(await page.textContent('p'), 'ada')
        // An old callback from the history is an error, and does not end the login.
        const answer = await page.goto(callback)
        assert.deepEqual([answer?.status(), answer?.headers()['postern-error-code']], [400, 'ERR_LOGIN_OTHER_BROWSER'])
        assert.equal(await whoIs(page), 'ada')
      })

      test('two tabs that log in at once both arrive, each at its own page', async (t) => {
        const context = await person(t)
        const [one, two] = [await context.newPage(), await context.newPage()]
        await Promise.all([one.goto(url('/app/one')), two.goto(url('/app/two'))])
        await fillIn(one, 'ada')
        await one.waitForURL(url('/app/one'))
        await fillIn(two, 'ada')
        await two.waitForURL(url('/app/two'))
        for (const page of [one, two]) {
          assert.equal(await page.textContent('p'), 'ada')
          assert.equal(await whoIs(page), 'ada')
        }
      })

      test('a page full of requests before a login leaves few cookies', async (t) => {
        const context = await person(t)
        const page = await context.newPage()
        await page.goto(url('/'))
        await page.evaluate(`Promise.all(Array.from({ length: 30 }, (_, i) =>
          fetch('/app/' + i, { redirect: 'manual' })))`)
        await logIn(page)
        const names = (await context.cookies(url())).map(({ name }) => name)
        assert.ok(names.includes(SESSION), names.join())
        assert.ok(names.length <= 6, names.join())
      })

      /** Sets cookies for the whole domain, from the neighbour's page. */
      const toss = async (page: Page, cookies: readonly (readonly [name: string, value: string])[]): Promise<void> => {
        tossed = cookies.flatMap(([name, value]) =>
          ['/', '/app', '/app/x', '/oauth2'].map((path) => `${name}=${value}; Domain=login.test; Secure; Path=${path}`),
        )
        await page.goto(url('/', OTHER_NAME))
        tossed = []
        // Some of them must arrive, or this tests nothing.
        await page.goto(url('/'))
        const [, value = ''] = cookies.at(-1) ?? []
        assert.ok(service.last.get('cookie')?.includes(value), service.last.get('cookie'))
      }
      /** Names that could be mistaken for a name that only the host itself can set. */
      const namesLike = (name: string): string[] => {
        const bare = name.replace('__Host-', '')
        return [bare, `\u00a0${name}`, `\u0085${name}`, `=${name}`, name, name.toUpperCase(), `__Secure-${bare}`]
      }

      test('a session cookie that a neighbour tosses neither logs in nor logs out', async (t) => {
        const attacker = await person(t)
        await logIn(await attacker.newPage(), 'mallory')
        const stolen = (await attacker.cookies(url())).find(({ name }) => name === SESSION)?.value
        assert.ok(stolen)
        const page = await (await person(t)).newPage()
        const cookies = namesLike(SESSION).map((name) => [name, stolen] as const)
        await toss(page, cookies)
        assert.equal(await whoIs(page, '/app/x'), undefined, 'a stranger remains one')
        await fillIn(page, 'ada')
        await page.waitForURL(url('/app/x'))
        assert.equal(await page.textContent('p'), 'ada')
        await toss(page, [...cookies, ...namesLike(SESSION).map((name) => [name, 'A'.repeat(43)] as const)])
        for (const path of ['/app', '/app/x']) assert.equal(await whoIs(page, path), 'ada', path)
      })

      test('a login that a neighbour began cannot be completed in another browser', async (t) => {
        // Follows the login up to the callback, which another browser then opens; this needs no person.
        const attacker = new JarClient(world.platform, version)
        provider.hasForm = false
        provider.user = 'mallory'
        let at = url('/app')
        while (!at.includes('/oauth2/callback'))
          at = new URL(String((await attacker.get(at)).headers.location), at).href
        provider.hasForm = true
        const nonces = [...attacker.jar(new URL(at).host)].filter(([name]) => name.includes('nonce'))
        assert.equal(nonces.length, 1)
        const page = await (await person(t)).newPage()
        await toss(
          page,
          nonces.flatMap(([name, value]) => namesLike(name).map((like) => [like, value] as const)),
        )
        const answer = await page.goto(at)
        assert.deepEqual([answer?.status(), answer?.headers()['postern-error-code']], [400, 'ERR_LOGIN_OTHER_BROWSER'])
        assert.equal(await whoIs(page), undefined)
      })
    })
  }
}
