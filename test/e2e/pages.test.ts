import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type Platform, startPlatform } from '../support/platform.ts'

describe('pages that need no key', () => {
  let platform: Platform
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.stop())

  test('the docs page and its script come from this server, and the browser may load nothing else', async () => {
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

  test('stalled readers of the docs script share one copy, and a cached script is not sent again', async (t) => {
    const { hostname, port } = new URL(platform.url)
    const [, script = ''] = /<script src="([^"]+)"/.exec(await (await fetch(`${platform.url}/docs/`)).text()) ?? []
    const address = new URL(script, `${platform.url}/docs/`)
    const whole = await fetch(address, { headers: { 'accept-encoding': 'identity' } })
    const bytes = Buffer.from(await whole.arrayBuffer())
    assert.ok(bytes.length > 1_000_000)
    assert.equal(whole.headers.get('content-length'), String(bytes.length))

    const before = process.memoryUsage()
    const readers = Array.from({ length: 64 }, () => {
      const socket = connect(Number(port), hostname).on('error', () => {})
      t.after(() => socket.destroy())
      socket.write(`GET ${address.pathname} HTTP/1.1\r\nHost: a\r\nAccept-Encoding: identity\r\n\r\n`)
      return socket
    })
    await Promise.all(
      readers.map(async (socket) => {
        await once(socket, 'readable')
        assert.match(String(socket.read(15)), /^HTTP\/1\.1 200/)
      }),
    )
    const { arrayBuffers, external } = process.memoryUsage()
    const grown = arrayBuffers + external - before.arrayBuffers - before.external
    assert.ok(grown < 12 * bytes.length, `${grown} bytes for 64 readers of ${bytes.length}`)

    for (const coding of ['br', 'gzip', 'identity']) {
      const headers = { 'accept-encoding': coding }
      const answer = await fetch(address, { headers })
      assert.equal(answer.headers.get('content-encoding') ?? 'identity', coding)
      assert.ok(bytes.equals(Buffer.from(await answer.arrayBuffer())), coding)
      const etag = answer.headers.get('etag') ?? ''
      const again = await fetch(address, { headers: { ...headers, 'if-none-match': `W/"other", ${etag}` } })
      assert.deepEqual([again.status, (await again.arrayBuffer()).byteLength], [304, 0])
    }
  })

  test('readiness shows where the server listens', async () => {
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

  test('a browser at the bare address gets the dashboard, and programs get the same answer as before', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    for (const path of ['/', '/?utm=1', '//']) {
      const page = await fetch(`${platform.url}${path}`, { headers: { accept } })
      assert.equal(page.status, 200, path)
      assert.match(page.headers.get('content-type') ?? '', /^text\/html/)
      assert.match(await page.text(), /<title>Postern<\/title>/)
    }
    const asked = async (method: string, path: string, headers: Record<string, string>) => {
      const answer = await fetch(`${platform.url}${path}`, { method, headers })
      const text = await answer.text()
      return [answer.status, text === '' ? '' : (JSON.parse(text) as { error_code: string }).error_code]
    }
    const key = { authorization: `Bearer ${platform.apiKey}`, 'service-version': '2' }
    assert.deepEqual(await asked('GET', '/', {}), [401, 'ERR_UNAUTHENTICATED'])
    assert.deepEqual(await asked('GET', '/', { accept: 'application/json' }), [401, 'ERR_UNAUTHENTICATED'])
    assert.deepEqual(await asked('GET', '/', { accept, ...key }), [404, 'ERR_ROUTE_NOT_FOUND'])
    assert.deepEqual(await asked('POST', '/', { accept }), [401, 'ERR_UNAUTHENTICATED'])
    assert.deepEqual(await asked('GET', '/api_keys', { accept }), [401, 'ERR_UNAUTHENTICATED'])
    assert.deepEqual(await asked('GET', '/other', { accept }), [401, 'ERR_UNAUTHENTICATED'])
    assert.equal((await fetch(platform.url, { method: 'HEAD', headers: { accept } })).status, 200)
  })
})
