/** The inspector in a real browser: requests appear without a reload, a capture keeps them, and they are replayed. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { startAgent } from '../../support/agent-process.ts'
import type { Json } from '../../support/api-client.ts'
import type { TestChromium } from '../../support/browser.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { httpUpstream, type Owner, type Seen } from '../../support/upstream.ts'
import { type Ask, visit } from '../../support/visitor.ts'
import { withBrowser } from './browser-suite.ts'
import { WatchedPage } from './watched-page.ts'

await withBrowser('the inspector of the dashboard in a real browser', suite)

function suite(chromium: TestChromium): void {
  let platform: Platform
  let browser: Browser
  let shown: WatchedPage
  let page: Page
  const closers: (() => unknown)[] = []
  const owner: Owner = { after: (close) => closers.push(close) }

  before(async () => {
    platform = await startPlatform()
    browser = await chromium.launch({ names: '' })
    shown = await WatchedPage.open(browser, `${platform.url}/`)
    page = shown.page
    await shown.signIn(platform.apiKey)
    const { address } = await httpUpstream(owner)
    await startAgent(owner, {
      server: platform.agents,
      caFile: platform.caFile,
      authtoken: platform.authtoken,
      tunnels: { web: { proto: 'http', addr: address, domain: 'hello.localhost' } },
    })
  })
  after(async () => {
    for (const close of closers.reverse()) await close()
    await browser?.close()
    await platform?.stop()
    await chromium.close()
  })

  const everyday: readonly Ask[] = [
    ...['/', '/assets/app.css', '/assets/app.js', '/products?page=2', '/products/4711'].map((path) => ({ path })),
    { path: '/cart', method: 'POST', body: '{"product": 4711}' },
    { path: '/cart/4711', method: 'DELETE' },
    { path: '/webhooks/payments', method: 'POST', body: '{"event": "paid"}' },
  ]
  const visitor = async (ask: Ask): Promise<void> => {
    const answer = await visit(`https://hello.localhost:${platform.httpsPort}`, { ca: platform.ca }, ask)
    assert.equal(answer.status, 200)
  }

  test('a request appears without a reload, with its destination and duration', async () => {
    await shown.goTo('/traffic', 'Traffic')
    await page.getByText('No requests yet').waitFor()
    await visitor({ path: '/first?%3Cb%3E=1' })
    await page.getByRole('link', { name: /\/first/ }).waitFor()
    for (const ask of everyday) await visitor(ask)
    await page.getByText(`${everyday.length + 1} requests`).waitFor()
    await shown.assertGoodInAllLooks('traffic')
    await page.getByLabel('Method').fill('POST')
    await page.getByLabel('Method').press('Enter')
    await page.getByText('2 requests').waitFor()
    await page.getByLabel('Method').fill('')
    await page.getByLabel('Method').press('Enter')
    await page.getByRole('link', { name: /\/first/ }).click()
    await page.getByRole('heading', { name: /^GET \/first/, level: 1 }).waitFor()
    await page.getByText('Not captured: no capture was running.').first().waitFor()
    await shown.assertAccessible('an exchange without heads')
  })

  test('what a capture keeps is shown, and an edited replay is shown beside the original', async () => {
    await page.getByRole('button', { name: 'Capture headers and bodies' }).click()
    await page.getByText('Capturing new requests').waitFor()
    await visitor({ path: '/second', method: 'POST', body: '<script>alert(1)</script>' })
    await shown.goTo('/traffic', 'Traffic')
    await page.getByRole('link', { name: /\/second/ }).click()
    await page.getByText('<script>alert(1)</script>').first().waitFor()
    await page.getByRole('button', { name: 'Edit and replay' }).click()
    await page.getByLabel('Path and query').fill('/third')
    await page.getByLabel('Body', { exact: true }).fill('changed')
    await page.getByRole('button', { name: 'Send edited request' }).click()
    await page.getByRole('heading', { name: 'POST /third', level: 1 }).waitFor()
    await page.getByRole('link', { name: 'Original' }).waitFor()
    await page.getByText(/^The responses differ in .* of the body/).waitFor()
    await page.locator('.compared ins').filter({ hasText: '"url": "/third"' }).waitFor()
    const said = await page.locator('pre').filter({ hasText: '"url": "/third"' }).textContent()
    const seen = JSON.parse(said ?? '') as Seen
    assert.deepEqual([seen.method, seen.url, seen.body], ['POST', '/third', 'changed'])
    await shown.assertGoodInAllLooks('replay')
    await page.getByRole('button', { name: 'Show as curl' }).click()
    await page.getByRole('dialog').getByText('curl \\').waitFor()
    await shown.assertAccessible('a request as a command')
    await page.getByRole('button', { name: 'Close' }).click()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save as HAR' }).click(),
    ])
    assert.match(download.suggestedFilename(), /^ex_\w+\.har$/)
    const { log }: Json = JSON.parse(await readFile(await download.path(), 'utf8'))
    assert.deepEqual([log.version, log.entries.length, log.entries[0].request.method], ['1.2', 1, 'POST'])
    assert.match(log.entries[0].request.url, /\/third$/)
  })

  test('the overview shows past traffic, and ends where its content does', async () => {
    await shown.goTo('/', 'Overview')
    await page.locator('.plot').nth(4).waitFor()
    const plots = page.locator('section', { has: page.getByRole('heading', { name: 'Traffic' }) })
    const day = plots.getByRole('button', { name: 'Last 24 hours' })
    await day.click()
    await plots.locator('.is-live').waitFor()
    assert.deepEqual([await day.getAttribute('aria-pressed'), await page.locator('.plot').count()], ['true', 5])
    await shown.assertAccessible('plots of the last day')
    await plots.getByRole('button', { name: 'Last 15 minutes' }).click()
    await page.locator('.plot').nth(4).waitFor()
    await until('what is online is counted', async () => (await page.locator('.numbers').textContent())?.includes('1'))
    await shown.assertGoodInAllLooks('overview')
    await page.setViewportSize({ width: 390, height: 860 })
    const blank = `document.documentElement.scrollHeight -
      document.querySelector('main > :last-child').getBoundingClientRect().bottom - scrollY`
    // The menu closes when the window gets narrow.
    await until('nothing follows the content', async () => (await page.evaluate<number>(blank)) < 100)
  })

  test('no errors were logged, and no other origin was called', () => assert.deepEqual(shown.faults, []))
}
