/** Pages of other sites, in the browser of a person who is signed in to the dashboard. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { TestChromium } from '../../support/browser.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { withBrowser } from './browser-suite.ts'
import { WatchedPage } from './watched-page.ts'

await withBrowser('attacks on the dashboard in a real browser', suite)

function suite(chromium: TestChromium): void {
  let platform: Platform
  let browser: Browser
  let signedIn: WatchedPage
  let evil: Page
  /** What the browser sent to the attacker. */
  const cookies: string[] = []
  /** The attacker's page on this machine: on another port, so the same site but another origin. */
  const site = createServer(({ headers }, response) => {
    cookies.push(headers.cookie ?? '')
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>x')
  })

  before(async () => {
    platform = await startPlatform()
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve))
    browser = await chromium.launch({ names: 'MAP evil.example.com 127.0.0.1' })
    signedIn = await WatchedPage.open(browser, `${platform.url}/`)
    await signedIn.signIn(platform.apiKey)
    evil = await signedIn.context.newPage()
  })
  after(async () => {
    await browser?.close()
    await platform?.stop()
    site.close()
    await chromium.close()
  })

  const others = (): string[] => {
    // It listens on TCP.
    const { port } = site.address() as AddressInfo
    return [`http://127.0.0.1:${port}/`, `http://evil.example.com:${port}/`]
  }
  const policies = async (): Promise<number> => (await platform.admin.get('/ip_policies')).ip_policies.length

  test('their scripts can neither read nor write', async () => {
    for (const address of others()) {
      await evil.goto(address)
      const got = await evil.evaluate(async (url) => {
        const tried: string[] = []
        const headers = { 'service-version': '2' }
        const body = JSON.stringify({ description: 'by a script of another site' })
        for (const init of [
          { credentials: 'include', headers },
          { credentials: 'include' },
          { credentials: 'include', mode: 'no-cors' },
          { credentials: 'include', method: 'POST', headers, body },
          { credentials: 'include', method: 'POST', mode: 'no-cors', body },
        ] as const) {
          const path = 'method' in init ? '/ip_policies' : '/api_keys'
          try {
            const answer = await fetch(`${url}${path}`, init)
            tried.push(`${answer.type} ${answer.status} ${await answer.text()}`)
          } catch {
            tried.push('failed')
          }
        }
        return tried
      }, platform.url)
      for (const each of got) assert.doesNotMatch(each, /^\w+ 2|"keys"|ak_/, address)
      assert.equal(await policies(), 0, address)
    }
  })

  test('their forms can neither write nor sign in or out', async () => {
    for (const address of others()) {
      for (const path of ['/ip_policies', '/page/session']) {
        await evil.goto(address)
        const answered = evil.waitForResponse((response) => response.url() === `${platform.url}${path}`)
        await evil.setContent(
          `<form method="post" enctype="text/plain" action="${platform.url}${path}"><input name='{"api_key":"' value='${platform.apiKey}"}'></form>`,
        )
        await Promise.all([evil.waitForURL(`${platform.url}${path}`), evil.evaluate('document.forms[0].submit()')])
        const answer = await answered
        await evil.waitForLoadState()
        assert.ok([401, 403].includes(answer.status()), `${path} ${answer.status()}`)
        assert.equal((await answer.allHeaders())['set-cookie'], undefined)
      }
    }
    assert.equal(await policies(), 0)
    await signedIn.page.reload()
    await signedIn.page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
  })

  test('a service on another port of the host gets the cookie, with which it can do nothing', async () => {
    cookies.length = 0
    await evil.goto(others()[0] ?? '')
    const [cookie = ''] = cookies
    assert.match(cookie, /postern-page-\d+=/)
    const { url } = platform
    const forged = { cookie, 'sec-fetch-site': 'same-origin', origin: url, 'service-version': '2' }
    assert.equal((await fetch(`${url}/api_keys`, { headers: forged })).status, 401)
    assert.deepEqual(await (await fetch(`${url}/page/session`, { headers: forged })).json(), { session: null })
    const body = JSON.stringify({ description: 'by a service on another port' })
    assert.equal((await fetch(`${url}/ip_policies`, { method: 'POST', headers: forged, body })).status, 401)
    const secrets = await evil.evaluate(() => JSON.stringify(localStorage))
    assert.equal(secrets, '{}')
  })

  test('they cannot frame it, keep a reference to its window, or send it messages', async () => {
    await evil.goto(others()[0] ?? '')
    await evil.setContent(`<iframe src="${platform.url}/"></iframe>`)
    const frame = await until('the frame is there', () => evil.frames()[1])
    await until('the browser has refused it', () => frame.url().startsWith('chrome-error:'))
    await evil.waitForLoadState()
    await evil.goto(others()[0] ?? '')
    const [opened] = await Promise.all([
      evil.context().waitForEvent('page'),
      evil.evaluate((url) => {
        const holder = globalThis as unknown as { opened: unknown; open: (url: string) => unknown }
        holder.opened = holder.open(url)
      }, `${platform.url}/`),
    ])
    await opened.getByRole('heading', { level: 1 }).waitFor()
    // Its opener policy cuts the tie: the opener sees a closed window.
    await until('the tie is cut', () => evil.evaluate('opened.closed'))
    assert.equal(await opened.evaluate('window.opener'), null)
    await opened.close()
  })

  test('a foreign name that is pointed at the server gets the page, but no sign-in', async () => {
    const address = platform.url.replace('127.0.0.1', 'evil.example.com')
    await evil.goto(`${address}/`)
    await evil.getByLabel('API key').fill(platform.apiKey)
    await evil.getByRole('button', { name: 'Sign in' }).click()
    await evil.getByText('opened at `localhost`').waitFor()
    const read = await evil.evaluate(async () => {
      const answer = await fetch('/api_keys', { headers: { 'service-version': '2' }, credentials: 'include' })
      return answer.status
    })
    assert.equal(read, 401)
    const names = (await signedIn.context.cookies()).map(({ domain }) => domain)
    assert.deepEqual(names, ['127.0.0.1'])
  })
}
