/** The dashboard on bad days: a server that goes down and comes back, endless lists and lines, and keyboard only. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { TestChromium } from '../../support/browser.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { withBrowser } from './browser-suite.ts'
import { WatchedPage } from './watched-page.ts'

await withBrowser('the dashboard on bad days', suite)

function suite(chromium: TestChromium): void {
  let dataDir: string
  let platform: Platform
  let browser: Browser
  let shown: WatchedPage
  let page: Page

  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'postern-page-'))
    platform = await startPlatform({ dataDir })
    browser = await chromium.launch({ names: '' })
    shown = await WatchedPage.open(browser, `${platform.url}/`)
    page = shown.page
    await shown.signIn(platform.apiKey)
  })
  after(async () => {
    await browser?.close()
    await platform?.stop()
    await chromium.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  const drawn = () => page.locator('tbody tr[aria-rowindex]').count()

  test('of ten thousand rows only the visible ones are drawn, and all can be searched and reached', async () => {
    await page.route(/\/tunnels\?/, (route) => {
      const from = Number(/before_id=tn_0*(\d+)/.exec(route.request().url())?.[1] ?? -1) + 1
      const tunnels = Array.from({ length: 100 }, (_, i) => ({
        id: `tn_${String(from + i).padStart(27, '0')}`,
        started_at: '2026-01-01T00:00:00Z',
        forwards_to: `service-${from + i}`,
      }))
      return route.fulfill({ json: { tunnels, uri: 'u', next_page_uri: from + 100 < 10_000 ? 'more' : null } })
    })
    await shown.goTo('/tunnels', 'Tunnels')
    await page.getByText('10,000 tunnels').waitFor()
    assert.ok((await drawn()) < 80, `${await drawn()} rows`)
    await page.locator('.table-box').evaluate((box) => box.scrollTo(0, box.scrollHeight))
    await page.getByText('service-9999', { exact: true }).waitFor()
    assert.ok((await drawn()) < 80)
    await page.keyboard.press('/')
    await page.keyboard.type('service-5123')
    await page.getByText('1 of 10,000 tunnels').waitFor()
    assert.equal(await drawn(), 1)
    await page.getByLabel('Search tunnels').fill('')
    await page.locator('.table-box').evaluate((box) => box.scrollTo(0, 0))
    const title = page.getByRole('columnheader', { name: 'forwards to' })
    await title.getByRole('button').focus()
    await page.keyboard.press('Enter')
    await page.locator('tr[aria-rowindex="2"]', { hasText: /service-0\b/ }).waitFor()
    assert.equal(await title.getAttribute('aria-sort'), 'ascending')
    await page.keyboard.press('Enter')
    await page.locator('tr[aria-rowindex="2"]', { hasText: 'service-9999' }).waitFor()
    assert.equal(await title.getAttribute('aria-sort'), 'descending')
    await shown.assertAccessible('a long table')
    await page.unroute(/\/tunnels\?/)
  })

  test('an endless line is cut, and the rest is shown on a click', async () => {
    const line = `<b>${'x'.repeat(250_000)}`
    const { id } = await platform.admin.create('/backends/http_response', { body: line, status_code: 200 })
    await shown.goTo(`/backends/http_response/${id}`, /bkdhr_/)
    const more = page.getByRole('button', { name: /248,003 more characters/ })
    await more.click()
    await until(
      'more is shown',
      async () => (await page.locator('dd .plain').allTextContents()).join('').length > 100_000,
    )
    assert.equal(await page.locator('dd b').count(), 0)
  })

  test('everything can be reached by keyboard alone', async () => {
    await shown.goTo('/', 'Overview')
    await page.reload()
    await page.getByText('Start an agent').waitFor()
    await page.keyboard.press('Tab')
    assert.equal(await page.locator(':focus').textContent(), 'Skip to content')
    const names = new Set<string>()
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab')
      names.add(String(await page.evaluate('document.activeElement.textContent')))
    }
    for (const name of ['HTTPS edges', 'Sign out', 'Create an authtoken and insert it'])
      assert.ok(names.has(name), name)
    await page.getByRole('link', { name: 'Domains' }).focus()
    await page.keyboard.press('Enter')
    await until(
      'the title has the focus',
      async () => (await page.locator(':focus').textContent()) === 'Reserved domains',
    )
  })

  test('while the server is down the page says so and shows nothing as live; then it recovers', async () => {
    const { host } = new URL(platform.url)
    // On the overview, the numbers at the top and the plots below each show whether they are live; traffic is a stream.
    const views = [
      { watched: shown, path: '/', title: 'Overview', lives: 2 },
      { watched: await WatchedPage.openIn(shown, `${platform.url}/`), path: '/traffic', title: 'Traffic', lives: 1 },
    ]
    for (const { watched, path, title, lives } of views) {
      await watched.goTo(path, title)
      await until(`${title} is live`, async () => (await watched.page.locator('.is-live').count()) === lives)
      assert.deepEqual(watched.faults, [])
      watched.allowFaults(/ERR_CONNECTION|ERR_INCOMPLETE|Failed to load/)
    }
    await platform.stop()
    for (const { watched, title, lives } of views) {
      await watched.page.getByText('The server has not responded since').waitFor()
      const old = watched.page.getByText(/^as of \d\d:\d\d:\d\d/)
      await until(`${title} says of when it is`, async () => (await old.count()) === lives)
      assert.equal(await watched.page.locator('.is-live').count(), 0)
      await watched.assertAccessible(`${title} without its server`)
    }
    await shown.picture('away')
    platform = await startPlatform({ dataDir, flags: { 'api-listen': host } })
    for (const { watched, title, lives } of views) {
      await until(`${title} is live again`, async () => (await watched.page.locator('.is-live').count()) === lives)
      await watched.page.getByText('The server has not responded since').waitFor({ state: 'detached' })
    }
    await views[1]?.watched.page.close()
  })

  test('deleting a key signs its user out at once', async () => {
    const { token, id } = await platform.member()
    const other = await WatchedPage.open(browser, `${platform.url}/`)
    await other.signIn(token)
    assert.equal(await other.page.getByRole('link', { name: 'Users', exact: true }).count(), 0)
    await platform.admin.send('DELETE', `/users/${id}`)
    await other.page.getByLabel('API key').waitFor()
    await other.close()
  })

  test('signing out leaves nothing behind', async () => {
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('API key').waitFor()
    assert.deepEqual(await shown.context.cookies(), [])
    await page.goBack()
    await page.getByLabel('API key').waitFor()
    assert.deepEqual(shown.faults, [])
  })
}
