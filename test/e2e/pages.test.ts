import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Platform, startPlatform } from '../support/platform.ts'

describe('pages that need no key', () => {
  let platform: Platform
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.stop())

  test('the docs page and its script come from this server, and the browser is told to load nothing else', async () => {
    const page = await fetch(`${platform.url}/docs/`)
    assert.equal(page.status, 200)
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.match(policy, /default-src 'none'/)
    assert.doesNotMatch(policy, /https?:|\*/)
    const html = await page.text()
    assert.doesNotMatch(html, /(src|href)="(https?:)?\/\//)
    const [, script = ''] = /<script src="([^"]+)"/.exec(html) ?? []
    const code = await fetch(new URL(script, page.url))
    assert.equal(code.status, 200)
    assert.match(code.headers.get('content-type') ?? '', /javascript/)
  })

  test('readiness tells where the server listens', async () => {
    const { status, addresses } = (await (await fetch(`${platform.url}/readyz`)).json()) as {
      status: string
      addresses: Record<string, string>
    }
    assert.equal(status, 'ready')
    assert.equal(`http://${addresses.api}`, platform.url)
    assert.equal(`http://${addresses.metrics}/metrics`, platform.metricsUrl)
  })

  test('metrics count calls by route and status, and nothing a caller sends becomes a label', async () => {
    await platform.admin.get('/api_keys')
    await platform.admin.send('GET', '/no/such/address/at/all')
    await platform.admin.send('BREW', '/api_keys')
    const text = await (await fetch(platform.metricsUrl)).text()
    assert.match(text, /postern_api_request_seconds_count\{method="GET",route="\/api_keys",status="200"\} 1/)
    assert.match(text, /postern_api_request_seconds_count\{method="GET",route="none",status="404"\} 1/)
    assert.match(text, /postern_api_refusals_total\{status="404"\} 1/)
    assert.doesNotMatch(text, /no\/such|BREW/)
    assert.match(text, /process_cpu_seconds_total/)
  })

  test('metrics are on their own listener only', async () => {
    assert.equal((await fetch(`${platform.url}/metrics`)).status, 401)
    assert.equal((await fetch(new URL('/api_keys', platform.metricsUrl))).status, 404)
  })
})
