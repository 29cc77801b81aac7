/** The inspector in a real browser: requests appear by themselves, are kept by a capture, and are played again. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { startAgent } from '../../support/agent-process.ts'
import type { TestChromium } from '../../support/browser.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { httpUpstream, type Owner, type Seen } from '../../support/upstream.ts'
import { type Ask, visit } from '../../support/visitor.ts'
import { withBrowser } from './browser-suite.ts'
import { looks, WatchedPage } from './watched-page.ts'

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

  const visitor = async (ask: Ask): Promise<void> => {
    const answer = await visit(`https://hello.localhost:${platform.httpsPort}`, { ca: platform.ca }, ask)
    assert.equal(answer.status, 200)
  }

  test('a request appears by itself, with where it went and how long it took', async () => {
    await shown.goTo('/traffic', 'Traffic')
    await page.getByText('No request yet').waitFor()
    await visitor({ path: '/first?%3Cb%3E=1' })
    await page.getByRole('link', { name: /\/first/ }).waitFor()
    for (const look of looks) {
      await shown.look(look)
      await shown.assertAccessible(`traffic, ${look.theme}, ${look.width}`)
      await shown.picture(`traffic-${look.theme}-${look.width}`)
    }
    await shown.look({ theme: 'light', width: 1280 })
    await page.getByRole('link', { name: /\/first/ }).click()
    await page.getByRole('heading', { name: /^GET \/first/, level: 1 }).waitFor()
    await page.getByText('Not kept: no capture was running.').first().waitFor()
    await shown.assertAccessible('an exchange without heads')
  })

  test('what a capture keeps is shown, and played again with changes beside the original', async () => {
    await page.getByRole('button', { name: 'Keep heads and bodies from now on' }).click()
    await page.getByText('What comes now is kept').waitFor()
    await visitor({ path: '/second', method: 'POST', body: '<script>alert(1)</script>' })
    await shown.goTo('/traffic', 'Traffic')
    await page.getByRole('link', { name: /\/second/ }).click()
    await page.getByText('<script>alert(1)</script>').first().waitFor()
    await page.getByRole('button', { name: 'Change it first' }).click()
    await page.getByLabel('Path and query').fill('/third')
    await page.getByLabel('Body', { exact: true }).fill('changed')
    await page.getByRole('button', { name: 'Send it changed' }).click()
    await page.getByRole('heading', { name: 'POST /third', level: 1 }).waitFor()
    await page.getByText('What it repeated').waitFor()
    await page.getByText(/^They differ in .* of the body/).waitFor()
    await page.locator('.compared ins').filter({ hasText: '"url": "/third"' }).waitFor()
    const said = await page.locator('pre').filter({ hasText: '"url": "/third"' }).textContent()
    const seen = JSON.parse(said ?? '') as Seen
    assert.deepEqual([seen.method, seen.url, seen.body], ['POST', '/third', 'changed'])
    for (const look of looks) {
      await shown.look(look)
      await shown.assertAccessible(`a replay, ${look.theme}, ${look.width}`)
      await shown.picture(`replay-${look.theme}-${look.width}`)
    }
    await shown.look({ theme: 'light', width: 1280 })
    await page.getByRole('button', { name: 'As curl' }).click()
    await page.getByRole('dialog').getByText(/^curl/).waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
  })

  test('nothing was logged as an error, and nobody else was asked', () => assert.deepEqual(shown.faults, []))
}
