import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Platform, startPlatform } from '../support/platform.ts'
import { head, type RawAnswer, sendRaw } from '../support/raw-http.ts'

describe('the dashboard', () => {
  let platform: Platform
  let host: string
  before(async () => {
    platform = await startPlatform()
    host = new URL(platform.url).host
  })
  after(() => platform.stop())

  interface Sent {
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: unknown
  }

  /** The headers that a browser sends from the page itself, overridden by others; an empty one removes its header. */
  const ask = (method: string, path: string, { headers = {}, body }: Sent = {}): Promise<RawAnswer> => {
    const text = body === undefined ? '' : JSON.stringify(body)
    const all: Record<string, string> = {
      Host: host,
      Origin: `http://${host}`,
      'Sec-Fetch-Site': 'same-origin',
      'Service-Version': '2',
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(text)),
      Connection: 'close',
      ...headers,
    }
    const lines = Object.entries(all).filter(([, value]) => value !== '')
    const sent = head([`${method} ${path} HTTP/1.1`, ...lines.map(([name, value]) => `${name}: ${value}`)])
    return sendRaw(platform.url, `${sent}${text}`)
  }

  /** What a browser and its page send after a sign-in. */
  const signIn = async (key = platform.apiKey): Promise<{ Cookie: string; 'Postern-Page': string }> => {
    const answer = await ask('POST', '/page/session', { body: { api_key: key } })
    assert.equal(answer.status, 200, answer.text)
    const cookie = answer.headers.get('set-cookie')?.[0]?.split(';')[0] ?? ''
    return { Cookie: cookie, 'Postern-Page': answer.body.secret }
  }

  test('is served to browsers at the bare address, with nothing inline and nothing from other origins', async () => {
    const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
    const page = await fetch(`${platform.url}/`, { headers: { accept } })
    assert.equal(page.status, 200)
    const html = await page.text()
    assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|style=|\son\w+=|(src|href)="(https?:)?\/\//)
    const policy = page.headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; script-src 'self'; style-src 'self';/)
    assert.match(policy, /frame-ancestors 'none'/)
    assert.doesNotMatch(policy, /unsafe|https?:|\*|data:/)
    for (const [name, value] of [
      ['x-content-type-options', 'nosniff'],
      ['referrer-policy', 'no-referrer'],
      ['cross-origin-opener-policy', 'same-origin'],
      ['cross-origin-resource-policy', 'same-origin'],
      ['cache-control', 'no-cache'],
    ] as const) {
      assert.equal(page.headers.get(name), value)
    }
    const files = [...html.matchAll(/(?:src|href)="\.\/(page\/[^"]+)"/g)].map(([, file = '']) => file)
    assert.ok(files.length >= 3, html)
    let bytes = 0
    for (const file of files) {
      const answer = await fetch(`${platform.url}/${file}`, { headers: { 'accept-encoding': 'br' } })
      assert.equal(answer.status, 200, file)
      assert.match(answer.headers.get('cache-control') ?? '', /immutable/)
      assert.match(answer.headers.get('content-type') ?? '', /javascript|css|svg/)
      bytes += Number(answer.headers.get('content-length'))
    }
    assert.ok(bytes < 150_000, `${bytes} bytes`)
    assert.equal((await fetch(`${platform.url}/page/none.js`)).status, 404)
    assert.equal((await fetch(`${platform.url}/page/..%2findex.html`)).status, 404)
  })

  test('signs in with an API key, which a cookie then replaces, and signs out', async () => {
    const cookie = await signIn()
    const who = await ask('GET', '/page/session', { headers: cookie })
    assert.deepEqual([who.body.session.user_id, who.body.session.role], [platform.adminId, 'admin'])
    assert.equal((await ask('GET', '/api_keys', { headers: cookie })).status, 200)
    const made = await ask('POST', '/ip_policies', { headers: cookie, body: { description: 'by the page' } })
    assert.equal(made.status, 201, made.text)
    const out = await ask('DELETE', '/page/session', { headers: cookie })
    assert.equal(out.status, 204)
    assert.match(out.headers.get('set-cookie')?.[0] ?? '', /=; .*Max-Age=0/)
    // A copy of all that the browser sent opens nothing any more, and other sign-ins with the key go on.
    const copy = { headers: cookie }
    assert.deepEqual((await ask('GET', '/page/session', copy)).body, { session: null })
    assert.equal((await ask('GET', '/api_keys', copy)).status, 401)
    assert.equal((await ask('GET', '/api_keys', { headers: await signIn() })).status, 200)
  })

  test('a copy of the cookie alone opens nothing, and signs nobody out', async () => {
    const headers = await signIn()
    const copied = { headers: { Cookie: headers.Cookie } }
    assert.deepEqual((await ask('GET', '/page/session', copied)).body, { session: null })
    for (const method of ['GET', 'POST']) assert.equal((await ask(method, '/ip_policies', copied)).status, 401)
    const guessed = { headers: { ...copied.headers, 'Postern-Page': (await signIn())['Postern-Page'] } }
    assert.equal((await ask('GET', '/ip_policies', guessed)).status, 401)
    assert.equal((await ask('DELETE', '/page/session', copied)).status, 204)
    assert.equal((await ask('GET', '/ip_policies', { headers })).status, 200)
  })

  test('refuses an invalid key, naming its field, and answers without an error when nobody is signed in', async () => {
    const answer = await ask('POST', '/page/session', { body: { api_key: 'no_such_key_no_such_key_no_such_key_1' } })
    assert.deepEqual([answer.status, answer.body.details.field], [401, 'api_key'])
    assert.equal(answer.headers.get('set-cookie'), undefined)
    const nobody = await ask('GET', '/page/session')
    assert.deepEqual([nobody.status, nobody.body], [200, { session: null }])
  })

  test('signs out at once when the key is deleted, and members see what members may see', async () => {
    const { token, api } = await platform.member()
    const headers = await signIn(token)
    assert.equal((await ask('GET', '/api_keys', { headers })).body.keys.length, 1)
    assert.equal((await ask('GET', '/users', { headers })).status, 403)
    const { keys } = await api.get('/api_keys')
    await platform.admin.send('DELETE', `/api_keys/${keys[0].id}`)
    assert.equal((await ask('GET', '/api_keys', { headers })).status, 401)
    assert.deepEqual((await ask('GET', '/page/session', { headers })).body, { session: null })
  })

  test('signs out everywhere when the user is set inactive', async () => {
    const { id, token } = await platform.member()
    const [first, second] = [await signIn(token), await signIn(token)]
    await platform.admin.update(`/users/${id}`, { active: false })
    for (const headers of [first, second]) {
      assert.equal((await ask('GET', '/api_keys', { headers })).status, 401)
      assert.deepEqual((await ask('GET', '/page/session', { headers })).body, { session: null })
    }
  })

  test('needs the version header like any client, and a key in a header wins over the cookie', async () => {
    const headers = await signIn()
    assert.equal((await ask('GET', '/api_keys', { headers: { ...headers, 'Service-Version': '' } })).status, 400)
    const other = { ...headers, Authorization: 'Bearer no_such_key_no_such_key_no_such_key_1' }
    assert.equal((await ask('GET', '/api_keys', { headers: other })).status, 401)
  })

  describe('another site, with the cookie of a browser that is signed in,', () => {
    const evil = 'http://evil.example.com'
    const attacks: [what: string, headers: Record<string, string>][] = [
      ['writes from its page', { Origin: evil, 'Sec-Fetch-Site': 'cross-site' }],
      ['writes from a page of the same site', { Origin: 'http://127.0.0.1:1', 'Sec-Fetch-Site': 'same-site' }],
      ['writes from a sandbox', { Origin: 'null', 'Sec-Fetch-Site': 'cross-site' }],
      ['claims to have the same origin', { Origin: evil }],
      ['omits its origin', { Origin: '' }],
      ['leaves Sec-Fetch-Site out', { 'Sec-Fetch-Site': '' }],
      ['points its name at this server', { Host: 'evil.example.com', Origin: evil }],
      ['points its name at this server and port', { Host: 'evil.example.com:7400', Origin: `${evil}:7400` }],
    ]
    for (const [what, given] of attacks) {
      test(`${what}, and can neither write nor read`, async () => {
        const headers = { ...(await signIn()), ...given }
        const before = (await platform.admin.get('/ip_policies')).ip_policies.length
        const body = { description: 'by somebody else' }
        assert.equal((await ask('POST', '/ip_policies', { headers, body })).status, 401)
        assert.equal((await platform.admin.get('/ip_policies')).ip_policies.length, before)
        for (const [method, sent] of [
          ['POST', { api_key: platform.apiKey }],
          ['DELETE', undefined],
        ] as const) {
          const answer = await ask(method, '/page/session', { headers, body: sent })
          assert.deepEqual([answer.status, answer.body.error_code], [403, 'ERR_PAGE_NOT_HERE'])
          assert.equal(answer.headers.get('set-cookie'), undefined)
        }
        // The page itself reads without Origin.
        if (given.Origin === '') return
        const read = await ask('GET', '/api_keys', { headers })
        assert.equal(read.status, 401)
        assert.equal(read.headers.get('access-control-allow-credentials'), undefined)
        assert.deepEqual((await ask('GET', '/page/session', { headers })).body, { session: null })
      })
    }

    test('is not allowed to send it by a preflight', async () => {
      const answer = await ask('OPTIONS', '/api_keys', {
        headers: { Origin: evil, 'Access-Control-Request-Method': 'POST', 'Sec-Fetch-Site': 'cross-site' },
      })
      assert.equal(answer.status, 204)
      assert.equal(answer.headers.get('access-control-allow-credentials'), undefined)
    })
  })

  test('never logs a key', async () => {
    await signIn()
    await ask('POST', '/page/session', { body: { api_key: 'no_such_key_no_such_key_no_such_key_2' } })
    const log = platform.log.join('')
    assert.match(log, /signed in to the page/)
    assert.ok(!log.includes(platform.apiKey) && !log.includes('no_such_key_no_such_key_no_such_key_2'))
  })

  test('is closed, with all its calls, by a restriction of the dashboard or of the API; the API only by its own', async () => {
    const headers = await signIn()
    const nobody = await platform.admin.create('/ip_policies', { description: 'nobody' })
    const closing = { enforced: true, ip_policy_ids: [nobody.id] }
    const page = await platform.admin.create('/ip_restrictions', { type: 'dashboard', ...closing })
    const accept = { headers: { Accept: 'text/html', Authorization: '' } }
    assert.equal((await ask('GET', '/', accept)).status, 403)
    assert.equal((await ask('GET', '/page/session', { headers })).status, 403)
    assert.equal((await ask('POST', '/page/session', { body: { api_key: platform.apiKey } })).status, 403)
    assert.equal((await ask('GET', '/api_keys', { headers })).status, 403)
    assert.equal((await platform.admin.send('GET', '/api_keys')).status, 200)
    assert.equal((await platform.admin.send('DELETE', `/ip_restrictions/${page.id}`)).status, 204)
    assert.equal((await ask('GET', '/api_keys', { headers })).status, 200)

    await platform.admin.create('/ip_restrictions', { type: 'api', ...closing })
    assert.equal((await ask('GET', '/', accept)).status, 200)
    assert.equal((await ask('GET', '/api_keys', { headers })).status, 403)
    assert.equal((await ask('POST', '/page/session', { body: { api_key: platform.apiKey } })).status, 403)
  })
})
