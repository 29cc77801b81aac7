import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { Sealer } from '../../lib/secrets/seal.ts'
import { PageSessions } from './page-session.ts'

const sealer = new Sealer(randomBytes(32))
const NOW = Date.parse('2026-03-01T12:00:00Z')
const HOUR = 3_600_000
const API_URL = 'https://api.example.com/base'

type Headers = Readonly<Record<string, string | readonly string[]>>

/** A request as Node's parser hands it over. */
function request(method: string, headers: Headers): IncomingMessage {
  const message = new IncomingMessage(new Socket())
  message.method = method
  const distinct = Object.entries(headers).map(([name, value]) => [name, [value].flat()])
  Object.defineProperty(message, 'headersDistinct', { value: Object.fromEntries(distinct) })
  return message
}

const nothingEnded = { has: async () => false, add: async () => {} }

function sessions(apiUrl: string | null = null, now = NOW): PageSessions {
  return new PageSessions({ sealer, now: () => now, apiUrl: () => apiUrl, ended: nothingEnded })
}

/** What a browser and its page would send after a sign-in at `origin`. */
function signedInAt(origin: string) {
  const { cookie, secret } = sessions().begin('the_key', origin)
  return { cookie: cookie.split(';')[0] ?? '', 'postern-page': secret }
}

const HERE = { host: 'localhost:7400', 'sec-fetch-site': 'same-origin' }
const local = { ...HERE, ...signedInAt('http://localhost:7400') }
const secure = signedInAt('https://api.example.com')

describe('the cookie is valid for', () => {
  const cases: [what: string, method: string, headers: Headers, apiUrl?: string][] = [
    ['a read of the page', 'GET', local],
    ['a read of the page that names its origin', 'GET', { ...local, origin: 'http://localhost:7400' }],
    ['a write of the page', 'POST', { ...local, origin: 'http://localhost:7400' }],
    [
      'the page at an IPv4 address',
      'DELETE',
      {
        ...local,
        host: '192.0.2.7:7400',
        origin: 'http://192.0.2.7:7400',
        ...signedInAt('http://192.0.2.7:7400'),
      },
    ],
    ['the page at an IPv6 address', 'GET', { ...local, host: '[::1]:7400', ...signedInAt('http://[::1]:7400') }],
    ['the page beside other cookies', 'GET', { ...local, cookie: `a=b; ${local.cookie}; c=d` }],
    [
      'the page at `--api-url`',
      'PUT',
      {
        ...local,
        host: 'api.example.com',
        origin: 'https://api.example.com',
        ...secure,
      },
      API_URL,
    ],
    ['the page at localhost, where `--api-url` names another', 'GET', local, API_URL],
  ]
  for (const [what, method, headers, apiUrl] of cases) {
    test(what, async () => {
      const { key, until } = (await sessions(apiUrl ?? null).sessionOf(request(method, headers))) ?? {}
      assert.deepEqual({ key, until }, { key: 'the_key', until: NOW + 12 * HOUR })
    })
  }
})

describe('the cookie is not valid', () => {
  const foreign = { ...local, host: 'evil.example.com:7400', origin: 'http://evil.example.com:7400' }
  const cases: [what: string, method: string, headers: Headers, apiUrl?: string][] = [
    ['without Sec-Fetch-Site', 'GET', { ...local, 'sec-fetch-site': [] }],
    ['on a request from another site', 'GET', { ...local, 'sec-fetch-site': 'cross-site' }],
    ['on a request from the same site, but another origin', 'GET', { ...local, 'sec-fetch-site': 'same-site' }],
    ['on a typed address or a followed link', 'GET', { ...local, 'sec-fetch-site': 'none' }],
    ['where Sec-Fetch-Site comes twice', 'GET', { ...local, 'sec-fetch-site': ['same-origin', 'same-origin'] }],
    ['on a write without Origin', 'POST', local],
    ['on a write from another origin', 'POST', { ...local, origin: 'http://evil.example.com' }],
    ['on a write from another port', 'POST', { ...local, origin: 'http://localhost:3000' }],
    ['on a write from another scheme', 'POST', { ...local, origin: 'https://localhost:7400' }],
    ['on a write from an opaque origin', 'POST', { ...local, origin: 'null' }],
    ['on a read from another origin', 'GET', { ...local, origin: 'http://evil.example.com' }],
    ['where Origin comes twice', 'POST', { ...local, origin: ['http://localhost:7400', 'http://localhost:7400'] }],
    ['under a foreign name that points here', 'GET', { ...foreign, ...signedInAt('http://evil.example.com:7400') }],
    ['under a name below localhost', 'GET', { ...local, host: 'app.localhost:7400' }],
    ['under a foreign name that begins like ours', 'GET', { ...foreign, host: 'localhost.evil.example.com:7400' }],
    ['without a Host', 'GET', { ...local, host: [] }],
    ['with two Hosts', 'GET', { ...local, host: ['localhost:7400', 'localhost:7400'] }],
    ['with a malformed Host', 'GET', { ...local, host: 'local host' }],
    ['that was made for another port', 'GET', { ...local, cookie: local.cookie.replace('7400', '7401') }],
    ['that was made for another origin', 'GET', { ...local, ...signedInAt('http://127.0.0.1:7400') }],
    ['without the secret of the page', 'GET', { ...local, 'postern-page': [] }],
    ['with the secret of another sign-in', 'GET', { ...local, 'postern-page': secure['postern-page'] }],
    ['with two secrets', 'GET', { ...local, 'postern-page': [local['postern-page'], local['postern-page']] }],
    ['that comes twice', 'GET', { ...local, cookie: `${local.cookie}; ${local.cookie}` }],
    ['that comes in two headers', 'GET', { ...local, cookie: [local.cookie, local.cookie] }],
    [
      'that was changed',
      'GET',
      { ...local, cookie: local.cookie.replace(/:(.)(?=[^:]*$)/, (_, first) => `:${first === 'A' ? 'B' : 'A'}`) },
    ],
    ['that is empty', 'GET', { ...local, cookie: 'postern-page-7400=' }],
    ['that is not a sealed value', 'GET', { ...local, cookie: 'postern-page-7400=the_key' }],
    ['that is very long', 'GET', { ...local, cookie: `postern-page-7400=${'a'.repeat(100_000)}` }],
    [
      'that lacks __Host- at an address with https',
      'GET',
      { ...local, ...secure, host: 'api.example.com', cookie: secure.cookie.replace('__Host-', '') },
      API_URL,
    ],
    ['at `--api-url` when it says http', 'GET', { ...local, host: 'api.example.com' }, API_URL],
    ['at a port that `--api-url` does not name', 'GET', { ...local, host: 'api.example.com:8443' }, API_URL],
  ]
  for (const [what, method, headers, apiUrl] of cases) {
    test(what, async () => {
      assert.equal(await sessions(apiUrl ?? null).sessionOf(request(method, headers)), undefined)
    })
  }

  test('after twelve hours', async () => {
    assert.ok(await sessions(null, NOW + 12 * HOUR - 1).sessionOf(request('GET', local)))
    assert.equal(await sessions(null, NOW + 12 * HOUR).sessionOf(request('GET', local)), undefined)
  })

  test('once it was signed out', async () => {
    const ended = new Set<string>()
    const of = new PageSessions({
      ...{ sealer, now: () => NOW, apiUrl: () => null },
      ended: { has: async ({ id }) => ended.has(id), add: async ({ id }) => void ended.add(id) },
    })
    // Nobody signs out whoever has the cookie, by sending it without the secret.
    await of.end(request('GET', { ...local, 'postern-page': [] }), 'http://localhost:7400')
    assert.ok(await of.sessionOf(request('GET', local)))
    await of.end(request('GET', local), 'http://localhost:7400')
    assert.equal(await of.sessionOf(request('GET', local)), undefined)
    assert.ok(await of.sessionOf(request('GET', { ...HERE, ...signedInAt('http://localhost:7400') })))
  })

  test('of a server with another key', async () => {
    const others = new PageSessions({
      ...{ sealer: new Sealer(randomBytes(32)), now: () => NOW, apiUrl: () => null },
      ended: nothingEnded,
    })
    assert.equal(await others.sessionOf(request('GET', local)), undefined)
  })
})

test('no script can read the cookie, no other site sends it, and over https no other host can set it', async () => {
  const flags = (origin: string) =>
    sessions()
      .begin('the_key', origin)
      .cookie.replace(/=[^;]*;/, '=…;')
  assert.equal(flags('http://localhost:7400'), 'postern-page-7400=…; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200')
  assert.equal(
    flags('https://api.example.com'),
    '__Host-postern-page=…; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure',
  )
  const signedOut = await sessions().end(request('DELETE', {}), 'https://api.example.com')
  assert.match(signedOut, /^__Host-postern-page=; .*Max-Age=0; Secure$/)
  assert.doesNotMatch(local.cookie, /the_key/)
})
