/** Authentication, version and rate limit: D1, D2, D14, D14a, D14b and parts 5 and 9 of the contract. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ApiClient } from '../support/api-client.ts'
import { startPlatform } from '../support/platform.ts'
import { head, type RawAnswer, sendRaw } from '../support/raw-http.ts'
import { assertEnvelope, comparable, header } from './envelope.ts'
import { eachTarget, type Target } from './target.ts'

const UNKNOWN = '2abcdefghijklmnopqrstuvwxyz_2abcdefghijklmnopqrstuvwxyz'

eachTarget((target) => {
  describe('authentication', () => {
    /** The `Authorization` header to send, given a valid token; undefined for no header. */
    const refused: readonly [what: string, value: (token: string, id: string) => string | undefined][] = [
      ['nothing', () => undefined],
      ['an empty value', () => ''],
      ['a scheme alone', () => 'Bearer'],
      ['a scheme and a space', () => 'Bearer '],
      ['a token alone', (token) => token],
      ['another scheme', (token) => `Basic ${Buffer.from(`${token}:`).toString('base64')}`],
      ['the token under another scheme', (token) => `Token ${token}`],
      ['no space after the scheme', (token) => `Bearer${token}`],
      ['a quoted token', (token) => `Bearer "${token}"`],
      ['text after the token', (token) => `Bearer ${token} x`],
      ['two in one value', (token) => `Bearer ${token}, Bearer ${token}`],
      ['one character more', (token) => `Bearer ${token}x`],
      ['one character less', (token) => `Bearer ${token.slice(0, -1)}`],
      ['a token in another case', (token) => `Bearer ${token.toUpperCase()}`],
      ['the id of the key', (_token, id) => `Bearer ${id}`],
      ['a well-formed unknown token', () => `Bearer ${UNKNOWN}`],
      ['a very long token', (token) => `Bearer ${token}${'a'.repeat(8000)}`],
      ['characters that tokens never have', () => "Bearer ' OR 1=1 --".replaceAll(' OR', '\tOR')],
      ['a wildcard', () => `Bearer ${'%'.repeat(40)}`],
    ]
    for (const [what, value] of refused) {
      test(`${what} is 401, with the same answer as all others`, async () => {
        const { id, token } = await target.api.create('/api_keys')
        const sent = value(token, id)
        const answer = await get(target, [...(sent === undefined ? [] : [`Authorization: ${sent}`])])
        assertEnvelope(answer, 401, 'ERR_UNAUTHENTICATED')
        assert.equal(header(answer, 'www-authenticate'), 'Bearer')
        assert.deepEqual(comparable(answer), comparable(await get(target, [])))
      })
    }

    test('a deleted key is 401, with the same answer as all others', async () => {
      const { id, token } = await target.api.create('/api_keys')
      assert.equal((await get(target, [`Authorization: Bearer ${token}`])).status, 200)
      await target.api.delete(`/api_keys/${id}`)
      const answer = await get(target, [`Authorization: Bearer ${token}`])
      assert.deepEqual(comparable(answer), comparable(await get(target, [])))
    })

    test('an authtoken does not open the API', async () => {
      const { token } = await target.api.create('/credentials')
      const answer = await get(target, [`Authorization: Bearer ${token}`])
      assert.deepEqual(comparable(answer), comparable(await get(target, [])))
    })

    test('two Authorization headers are 401, whatever they say', async () => {
      const { token } = await target.api.create('/api_keys')
      const good = `Authorization: Bearer ${token}`
      for (const other of [good, `Authorization: Bearer ${UNKNOWN}`, 'authorization:']) {
        for (const lines of [
          [good, other],
          [other, good],
        ]) {
          assert.deepEqual(comparable(await get(target, lines)), comparable(await get(target, [])))
        }
      }
    })

    test('a token works in the Authorization header only', async () => {
      const { token } = await target.api.create('/api_keys')
      for (const name of ['authorization', 'access_token', 'token', 'api_key', 'key', 'bearer']) {
        assertEnvelope(await get(target, [], `/api_keys?${name}=${token}`), 401)
        assertEnvelope(await get(target, [], `/api_keys?${name}=Bearer%20${token}`), 401)
      }
      for (const line of [`Cookie: token=${token}`, `X-Api-Key: ${token}`, `Proxy-Authorization: Bearer ${token}`]) {
        assertEnvelope(await get(target, [line]), 401)
      }
    })

    test('the scheme is read in any case', async () => {
      const { token } = await target.api.create('/api_keys')
      for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
        assert.equal((await get(target, [`Authorization: ${scheme} ${token}`])).status, 200)
      }
    })

    test('the token of a creation works at once and is never shown again', async () => {
      const { id, token } = await target.api.create('/api_keys')
      const mine = new ApiClient(target.url, token)
      assert.equal((await mine.get(`/api_keys/${id}`)).token, null)
      assert.equal((await mine.update(`/api_keys/${id}`, { description: 'x' })).token, null)
      const { keys } = await mine.get('/api_keys')
      assert.ok(keys.every((key: { token: unknown }) => key.token === null))
    })
  })

  describe('version', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    const cases: readonly [headers: readonly string[], status: 200 | 400][] = [
      [['Service-Version: 2'], 200],
      [['service-version:2'], 200],
      [['Service-Version:  2 '], 200],
      [['Ngrok-Version: 2'], 200],
      [['Service-Version: 2', 'Ngrok-Version: 2'], 200],
      [[], 400],
      [['Service-Version:'], 400],
      [['Service-Version: 0'], 400],
      [['Service-Version: 1'], 400],
      [['Service-Version: 3'], 400],
      [['Service-Version: 02'], 400],
      [['Service-Version: 2.0'], 400],
      [['Service-Version: v2'], 400],
      [['Service-Version: 2, 2'], 400],
      [['Service-Version: 2', 'Service-Version: 2'], 400],
      [['Service-Version: 2', 'Service-Version: 1'], 400],
      [['Ngrok-Version: 1'], 400],
      [['Ngrok-Version: 2', 'Ngrok-Version: 2'], 400],
      [['Service-Version: 2', 'Ngrok-Version: 1'], 400],
      [['Service-Version: 1', 'Ngrok-Version: 2'], 400],
      [['X-Service-Version: 2'], 400],
      [['Version: 2'], 400],
    ]
    for (const [lines, status] of cases) {
      test(`${lines.join(' and ') || 'no header'} is ${status}`, async () => {
        const { token } = await target.api.create('/api_keys')
        const answer = await bare(target, 'GET', '/api_keys', [`Authorization: Bearer ${token}`, ...lines])
        assert.equal(answer.status, status, answer.text)
        if (status === 400) assert.match(answer.body.msg, /`?2`/, 'it names the version to send')
      })
    }
  })

  describe('the order of refusals', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    const cases: readonly [has: { key: boolean; version: boolean }, method: string, path: string, status: number][] = [
      [{ key: false, version: false }, 'GET', '/api_keys', 401],
      [{ key: false, version: false }, 'GET', '/nowhere', 401],
      [{ key: false, version: true }, 'GET', '/nowhere', 401],
      [{ key: false, version: true }, 'GET', '/', 401],
      [{ key: false, version: true }, 'GET', '/%zz', 401],
      [{ key: false, version: true }, 'PUT', '/api_keys', 401],
      [{ key: false, version: true }, 'GET', '/api_keys?limit=0', 401],
      [{ key: false, version: true }, 'GET', '/api_keys/nonsense', 401],
      [{ key: false, version: true }, 'PROPFIND', '/api_keys', 401],
      [{ key: true, version: false }, 'GET', '/nowhere', 400],
      [{ key: true, version: false }, 'PUT', '/api_keys', 400],
      [{ key: true, version: false }, 'GET', '/api_keys/nonsense', 400],
      [{ key: true, version: true }, 'GET', '/nowhere', 404],
      [{ key: true, version: true }, 'GET', '/', 404],
      [{ key: true, version: true }, 'GET', '/%zz', 404],
      [{ key: true, version: true }, 'GET', '/API_KEYS', 404],
      [{ key: true, version: true }, 'PUT', '/api_keys', 405],
      [{ key: true, version: true }, 'PROPFIND', '/api_keys', 405],
    ]
    for (const [has, method, path, status] of cases) {
      const sent = [has.key && 'key', has.version && 'version'].filter(Boolean).join(' and ') || 'nothing'
      test(`${method} ${path} with ${sent} is ${status}`, async () => {
        const { token } = await target.api.create('/api_keys')
        const lines = [
          ...(has.key ? [`Authorization: Bearer ${token}`] : []),
          ...(has.version ? ['Service-Version: 2'] : []),
        ]
        assertEnvelope(await bare(target, method, path, lines), status)
      })
    }

    test('a body is read only after authentication', async () => {
      const anonymous = new ApiClient(target.url, null)
      const sendings = [
        { body: '{"description":' },
        { body: 'x', headers: { 'content-type': 'text/plain' } },
        { body: { nonsense: 1 } },
      ]
      for (const sending of sendings) assertEnvelope(await anonymous.send('POST', '/api_keys', sending), 401)
    })
  })
})

describe('the rate limit', () => {
  const LIMIT = 5

  test('counts all keys of one owner together; beyond it is 429 with the seconds to wait', async () => {
    const platform = await startPlatform({ flags: { 'api-rate-limit': String(LIMIT) } })
    try {
      const [busy, calm] = [(await platform.member()).api, (await platform.member()).api]
      const { token } = await busy.create('/api_keys')
      const another = new ApiClient(platform.url, token)
      for (let i = 2; i < LIMIT; i++) await busy.get('/ip_policies')
      await another.get('/ip_policies')
      assertEnvelope(await another.send('GET', '/ip_policies'), 429, 'ERR_RATE_LIMITED')
      for (const path of ['/ip_policies', '/api_keys', '/nowhere']) {
        const answer = await busy.send('GET', path)
        assertEnvelope(answer, 429, 'ERR_RATE_LIMITED')
        const wait = Number(answer.headers.get('retry-after'))
        assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 60, `Retry-After: ${wait}`)
      }
      await calm.get('/ip_policies')
      const stranger = new ApiClient(platform.url, UNKNOWN)
      for (let i = 0; i <= LIMIT; i++) assertEnvelope(await stranger.send('GET', '/ip_policies'), 401)
    } finally {
      await platform.stop()
    }
  })

  test('refuses before anything is stored', async () => {
    const platform = await startPlatform({ flags: { 'api-rate-limit': '1' } })
    try {
      const { api } = await platform.member()
      await api.create('/ip_policies', { description: 'first' })
      await api.refused('ERR_RATE_LIMITED', 'POST', '/ip_policies', { body: { description: 'second' } })
      const { ip_policies } = await platform.admin.get('/ip_policies')
      assert.deepEqual(
        ip_policies.map((policy: { description: string }) => policy.description),
        ['first'],
      )
    } finally {
      await platform.stop()
    }
  })

  test('is off unless it is set', async () => {
    const platform = await startPlatform()
    try {
      for (let i = 0; i < 300; i++) await platform.admin.get('/ip_policies')
    } finally {
      await platform.stop()
    }
  })
})

/** A GET of a list with exactly these lines and the version. */
function get(target: Target, lines: readonly string[], path = '/api_keys?limit=1'): Promise<RawAnswer> {
  return bare(target, 'GET', path, ['Service-Version: 2', ...lines])
}

function bare(target: Target, method: string, path: string, lines: readonly string[]): Promise<RawAnswer> {
  const { host } = new URL(target.url)
  return sendRaw(target.url, head([`${method} ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...lines]))
}
