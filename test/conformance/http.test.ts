/** The API as an HTTP server: 405 with Allow, CORS, slashes, HEAD, persistent connections, no redirects (D12, D13). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { routeTable } from '../../src/control-plane/api/routes.ts'
import { ApiClient } from '../support/api-client.ts'
import { head, type RawAnswer, RawConnection, sendRaw } from '../support/raw-http.ts'
import { assertEnvelope, header } from './envelope.ts'
import { eachTarget, type Target } from './target.ts'

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD']
const ORIGIN = 'https://page.example.com'

/** Every path of the API, with ids of the right form, and the methods it takes. */
const paths = Map.groupBy(routeTable(), ({ path, resource }) =>
  path.replace('{id}', `${resource.prefix}${'1'.repeat(27)}`).replace('{edge_id}', `edghts_${'1'.repeat(27)}`),
)

/** These tests never reach the store, so one kind is enough. */
const ONE_STORE = { stores: ['sqlite'] } as const

eachTarget((target) => {
  for (const [path, routes] of paths) {
    const takes = routes.map(({ method }) => method).sort()

    test(`${path} takes ${takes.join(', ')} and answers others with 405`, async () => {
      for (const method of METHODS) {
        if (takes.some((taken) => taken === method) || (method === 'HEAD' && takes.includes('GET'))) continue
        for (const address of [path, `${path}/`]) {
          const answer = await target.api.send(method, address)
          assert.equal(answer.status, 405, `${method} ${address}`)
          if (method !== 'HEAD') assertEnvelope(answer, 405, 'ERR_METHOD_NOT_ALLOWED')
          const allowed = (answer.headers.get('allow') ?? '').split(/, */)
          // The header may or may not name HEAD and OPTIONS, which are implied.
          assert.deepEqual(allowed.filter((each) => each !== 'HEAD' && each !== 'OPTIONS').sort(), takes)
        }
      }
    })

    test(`a page of another origin may call ${path}`, async () => {
      const anonymous = new ApiClient(target.url, null)
      for (const method of takes) {
        const answer = await anonymous.send('OPTIONS', path, {
          headers: {
            origin: ORIGIN,
            'access-control-request-method': method,
            'access-control-request-headers': 'authorization,content-type,service-version',
            'service-version': '',
          },
        })
        assert.ok(answer.status === 204 || answer.status === 200, `${answer.status} ${answer.text}`)
        assert.equal(answer.headers.get('access-control-allow-origin'), ORIGIN)
        assert.equal(answer.headers.get('access-control-max-age'), '600')
        assert.equal(answer.headers.get('access-control-allow-credentials'), null)
        const methods = (answer.headers.get('access-control-allow-methods') ?? '').split(/, */)
        assert.ok(methods.includes(method), `${method} is not among ${methods.join()}`)
        const names = (answer.headers.get('access-control-allow-headers') ?? '').toLowerCase().split(/, */)
        for (const name of ['authorization', 'content-type', 'service-version']) assert.ok(names.includes(name), name)
      }
    })
  }

  test('the calling page can read every kind of answer, and caches keep origins apart', async () => {
    const anonymous = new ApiClient(target.url, null)
    const headers = { origin: ORIGIN }
    const answers = [
      await target.api.send('GET', '/api_keys', { headers }),
      await target.api.send('POST', '/ip_policies', { body: {}, headers }),
      await target.api.send('POST', '/ip_policies', { body: '{', headers }),
      await target.api.send('GET', '/nowhere', { headers }),
      await target.api.send('PUT', '/api_keys', { body: {}, headers }),
      await anonymous.send('GET', '/api_keys', { headers }),
    ]
    for (const answer of answers) {
      assert.equal(answer.headers.get('access-control-allow-origin'), ORIGIN, answer.text)
      assert.equal(answer.headers.get('access-control-allow-credentials'), null)
      assert.match(answer.headers.get('vary') ?? '', /\borigin\b/i)
      assert.match(answer.headers.get('access-control-expose-headers') ?? '', /service-operation-id/i)
    }
  })

  test('a preflight has no effect', async () => {
    const { id } = await target.api.create('/ip_policies')
    const headers = { origin: ORIGIN, 'access-control-request-method': 'DELETE' }
    await target.api.send('OPTIONS', `/ip_policies/${id}`, { headers })
    await target.api.get(`/ip_policies/${id}`)
  })

  test('a request without an origin gets no CORS headers', async () => {
    const answer = await target.api.send('GET', '/api_keys')
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
  })

  describe('slashes', () => {
    test('that are trailing or doubled are ignored, without a redirect', async () => {
      const { id, uri } = await target.api.create('/ip_policies')
      for (const path of [
        `/ip_policies/${id}/`,
        `//ip_policies/${id}`,
        `/ip_policies//${id}`,
        `///ip_policies/${id}//`,
      ]) {
        const answer = await raw(target, 'GET', path)
        assert.equal(answer.status, 200, `${path}: ${answer.text}`)
        assert.equal(answer.body.uri, uri)
      }
      for (const path of ['/ip_policies/', '//ip_policies', '/ip_policies/?limit=1']) {
        const answer = await raw(target, 'GET', path)
        assert.equal(answer.status, 200, `${path}: ${answer.text}`)
        assert.equal(new URL(answer.body.uri).pathname, '/ip_policies')
      }
    })

    test('do not bypass authentication', async () => {
      for (const path of ['/ip_policies/', '//ip_policies', '/healthz/../ip_policies', '/docs/..//ip_policies']) {
        const lines = [`GET ${path} HTTP/1.1`, `Host: ${new URL(target.url).host}`, 'Service-Version: 2']
        const answer = await sendRaw(target.url, head(lines))
        assert.notEqual(answer.status, 200, path)
      }
    })
  })

  test('no answer of the API is a redirect', async () => {
    for (const path of paths.keys()) {
      for (const address of [path, `${path}/`, `/${path}`, path.toUpperCase()]) {
        const { status, headers } = await raw(target, 'GET', address)
        assert.ok((status < 300 || status >= 400) && !headers.has('location'), `${address}: ${status}`)
      }
    }
  })

  describe('HEAD', () => {
    test('is GET without the body', async () => {
      const { id } = await target.api.create('/ip_policies')
      for (const path of ['/ip_policies?limit=1', `/ip_policies/${id}`, '/tunnels']) {
        const [full, short] = [await target.api.send('GET', path), await target.api.send('HEAD', path)]
        assert.equal(short.status, 200)
        assert.equal(short.text, '')
        assert.equal(short.headers.get('content-type'), full.headers.get('content-type'))
        assert.equal(short.headers.get('content-length'), full.headers.get('content-length'))
      }
    })

    test('gets the same refusals', async () => {
      const anonymous = new ApiClient(target.url, null)
      assert.equal((await anonymous.send('HEAD', '/ip_policies')).status, 401)
      assert.equal((await target.api.send('HEAD', '/ip_policies', { headers: { 'service-version': '' } })).status, 400)
      assert.equal((await target.api.send('HEAD', '/ip_policies?limit=0')).status, 400)
      assert.equal((await target.api.send('HEAD', `/ip_policies/ipp_${'1'.repeat(27)}`)).status, 404)
      assert.equal((await target.api.send('HEAD', '/nowhere')).status, 404)
    })
  })

  test('connections are kept for 75 seconds or more, after refusals too', async () => {
    const { token } = await target.api.create('/api_keys')
    const connection = await RawConnection.open(target.url)
    try {
      for (const path of ['/api_keys', '/nowhere', '/api_keys/nonsense', '/api_keys?limit=0', '/api_keys']) {
        const lines = [`Host: ${new URL(target.url).host}`, `Authorization: Bearer ${token}`, 'Service-Version: 2']
        const answer = await connection.exchange(head([`GET ${path} HTTP/1.1`, ...lines]))
        const seconds = Number(/timeout=(\d+)/.exec(header(answer, 'keep-alive') ?? '')?.[1])
        assert.ok(seconds >= 75, `${path}: keep-alive ${header(answer, 'keep-alive')}`)
        assert.ok(connection.isOpen)
      }
    } finally {
      connection.close()
    }
  })

  test('pipelined requests are answered in order', async () => {
    const { token } = await target.api.create('/api_keys')
    const connection = await RawConnection.open(target.url)
    const lines = [`Host: ${new URL(target.url).host}`, `Authorization: Bearer ${token}`, 'Service-Version: 2']
    const request = (path: string) => head([`GET ${path} HTTP/1.1`, ...lines])
    try {
      const first = await connection.exchange(request('/api_keys') + request('/nowhere') + request('/tunnels'))
      assert.ok(first.body.keys)
      assertEnvelope(await connection.exchange(''), 404)
      assert.ok((await connection.exchange('')).body.tunnels)
    } finally {
      connection.close()
    }
  })

  test('public pages need no key', async () => {
    const anonymous = new ApiClient(target.url, null)
    for (const path of ['/healthz', '/readyz', '/openapi.json']) {
      assert.equal((await anonymous.send('GET', path, { headers: { 'service-version': '' } })).status, 200, path)
    }
  })
}, ONE_STORE)

async function raw(target: Target, method: string, path: string): Promise<RawAnswer> {
  const { id, token } = await target.api.create('/api_keys')
  const lines = [`Host: ${new URL(target.url).host}`, `Authorization: Bearer ${token}`, 'Service-Version: 2']
  try {
    return await sendRaw(target.url, head([`${method} ${path} HTTP/1.1`, ...lines]))
  } finally {
    await target.api.delete(`/api_keys/${id}`)
  }
}
