/** The page of a name whose certificate could not be got: a button that has it tried again now. */
import { after, before, test } from 'node:test'
import type { Browser } from 'playwright-core'
import type { TestChromium } from '../../support/browser.ts'
import { portToKeep } from '../../support/free-port.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { until } from '../../support/until.ts'
import { withBrowser } from './browser-suite.ts'
import { WatchedPage } from './watched-page.ts'

await withBrowser('another try for a certificate, asked for on the page', suite)

function suite(chromium: TestChromium): void {
  let platform: Platform
  let browser: Browser

  before(async () => {
    const flags = { 'acme-directory': `http://127.0.0.1:${await portToKeep()}/` }
    platform = await startPlatform({ flags, orderTimes: { firstPauseMs: 3_600_000, lookMs: 50 } })
    browser = await chromium.launch({ names: '' })
  })
  after(async () => {
    await browser?.close()
    await platform?.stop()
    await chromium.close()
  })

  test('it is there while an order waits, and says what came of it', async () => {
    const { id } = await platform.admin.create('/reserved_domains', {
      domain: 'app.example.com',
      certificate_management_policy: {},
    })
    const plain = await platform.admin.create('/reserved_domains', { domain: 'plain.example.com' })
    await until('the order has failed', async () => {
      const { certificate_management_status: status } = await platform.admin.get(`/reserved_domains/${id}`)
      return status.provisioning_job.error_code !== null
    })
    const shown = await WatchedPage.open(browser, `${platform.url}/`)
    const { page } = shown
    await shown.signIn(platform.apiKey)
    await shown.goTo(`/reserved_domains/${id}`, 'app.example.com')
    const button = page.getByRole('button', { name: 'Try now' })
    await button.click()
    await page.getByText('Another try begins within seconds.').waitFor()
    shown.allowFaults(/429/)
    await button.click()
    await page.getByText('asked for within the last minute').waitFor()
    await shown.assertAccessible('a name whose certificate waits')
    await shown.goTo(`/reserved_domains/${plain.id}`, 'plain.example.com')
    await page.getByRole('button', { name: 'Delete' }).waitFor()
    await button.waitFor({ state: 'detached' })
  })
}
