/** Lists, ids and URLs: pages, queries, ids and `uri` fields (D3 to D6). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { routeTable } from '../../src/control-plane/api/routes.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { startPlatform } from '../support/platform.ts'
import { head, type RawAnswer, sendRaw } from '../support/raw-http.ts'
import { assertEnvelope, comparable } from './envelope.ts'
import { createSample } from './samples.ts'
import { eachTarget, type Target } from './target.ts'
import { kindsOn } from './ways-to-the-store.ts'

const lists = routeTable().filter(({ action }) => action === 'list')
const gets = routeTable().filter(({ action }) => action === 'get')
/** More than one page has at most. */
const ITEMS = 120
const CREATIONS = 100
/** Of a quarter of a megabyte each: more than a page holds. */
const LARGE_ITEMS = 40

eachTarget((target) => {
  describe('pages', () => {
    const made: string[] = []
    before(async () => {
      for (let i = 0; i < ITEMS; i++) made.push((await target.api.create('/ip_policies', { description: `${i}` })).id)
    })

    for (const limit of [undefined, 1, 7, 50, 99, 100]) {
      test(`${limit ?? 'no'} limit: every item once, newest first, by following next_page_uri`, async () => {
        const size = limit ?? 100
        const pages = await follow(target, `/ip_policies${limit === undefined ? '' : `?limit=${limit}`}`)
        const ids: string[] = pages.flatMap((page) => page.ip_policies.map((item: Json) => item.id))
        assert.deepEqual(ids, ids.toSorted().reverse(), 'newest first')
        assert.equal(new Set(ids).size, ids.length)
        const ours = new Set(made)
        assert.deepEqual(
          ids.filter((id) => ours.has(id)),
          made.toReversed(),
        )
        for (const [i, page] of pages.entries()) {
          const isLast = i === pages.length - 1
          assert.equal(page.uri, `${target.url}/ip_policies`, 'the uri of a list has no query')
          assert.deepEqual(Object.keys(page).sort(), ['ip_policies', 'next_page_uri', 'uri'])
          assert.ok(page.ip_policies.length > 0, 'no page is empty')
          if (isLast) assert.equal(page.next_page_uri, null)
          else {
            assert.equal(page.ip_policies.length, size)
            const next = new URL(page.next_page_uri)
            assert.equal(next.origin + next.pathname, page.uri)
            assert.equal(next.searchParams.get('limit'), String(size))
            assert.equal(next.searchParams.get('before_id'), page.ip_policies.at(-1).id)
          }
        }
      })
    }

    test('a page ends when its items take much, and by following next_page_uri every item comes once', async () => {
      const ids: string[] = []
      const body = 'x'.repeat(255 * 1024)
      for (let i = 0; i < LARGE_ITEMS; i++) ids.push((await target.api.create('/backends/http_response', { body })).id)
      const pages = await follow(target, '/backends/http_response?limit=100')
      const sizes = pages.map((page) => JSON.stringify(page).length)
      assert.ok(Math.max(...sizes) < 8.5 * 1024 * 1024, String(sizes))
      const seen: string[] = pages.flatMap((page) => page.backends.map(({ id }: Json) => id))
      assert.equal(new Set(seen).size, seen.length)
      assert.deepEqual(
        seen.filter((id) => ids.includes(id)),
        ids.toReversed(),
      )
    })

    test('a last page that is exactly full has no next page', async () => {
      const oldest = (await everyId(target)).slice(-20)
      const start = oldest[0]
      for (const [limit, hasNext] of [
        [18, true],
        [19, false],
        [20, false],
      ] as const) {
        const page = await target.api.get(`/ip_policies?before_id=${start}&limit=${limit}`)
        assert.deepEqual(
          page.ip_policies.map((item: Json) => item.id),
          oldest.slice(1, 1 + limit),
        )
        assert.equal(page.next_page_uri !== null, hasNext, `limit ${limit}`)
      }
    })

    test('before_id is exclusive, and a position in the order even if it does not exist', async () => {
      const [first, second, third] = [await policy(target), await policy(target), await policy(target)]
      const after = async (id: string) =>
        (await target.api.get(`/ip_policies?before_id=${id}&limit=1`)).ip_policies[0].id
      assert.equal(await after(third), second)
      assert.equal(await after(second), first)
      await target.api.delete(`/ip_policies/${second}`)
      assert.equal(await after(third), first, 'a deleted item is skipped')
      assert.equal(await after(second), first, 'a deleted id still has its place')
      assert.equal(await after(`ipp_${'z'.repeat(27)}`), third, 'an id that never existed has one too')
    })

    test('before the oldest item there is an empty list with no next page', async () => {
      const page = await target.api.get(`/ip_policies?before_id=ipp_${'0'.repeat(27)}`)
      assert.deepEqual(page, { ip_policies: [], uri: `${target.url}/ip_policies`, next_page_uri: null })
    })

    test('following pages skips and repeats nothing while items come and go', async () => {
      const first = await target.api.get('/ip_policies?limit=3')
      await policy(target)
      await target.api.delete(`/ip_policies/${first.ip_policies.at(-1).id}`)
      const seen = first.ip_policies.map((item: Json) => item.id)
      const second = await target.api.get(pathOf(first.next_page_uri))
      for (const { id } of second.ip_policies) assert.ok(id < seen.at(-1), 'nothing comes twice')
      assert.equal(second.ip_policies.length, 3, 'nothing is skipped')
    })
  })

  describe('queries', () => {
    const bad: readonly string[] = [
      'limit=0',
      'limit=101',
      'limit=1000000000000',
      'limit=-1',
      'limit=1.5',
      'limit=1.0',
      'limit=1e1',
      'limit=0x10',
      'limit=010',
      'limit=%2B5',
      'limit=%205',
      'limit=5%20',
      'limit=',
      'limit',
      'limit=ten',
      'limit=NaN',
      'limit=%D9%A5',
      'limit=5;x=1',
      'limit=5?x=1',
      'limit=5&limit=5',
      'limit=5&limit=6',
      'limit[]=5',
      'Limit=5',
      'page=2',
      'offset=10',
      'filter=x',
      'before=x',
      'constructor=x',
      '__proto__=x',
      '=x',
      'before_id=',
      'before_id',
      'before_id=x',
      'before_id=%00',
    ]
    /** One for each way in which they are wrong. */
    const few = ['limit=0', 'limit=101', 'limit=1.5', 'limit=5&limit=6', 'page=2', '__proto__=x', 'before_id=x']
    for (const { path, resource } of lists) {
      const { prefix } = resource
      const other = prefix === 'ipp_' ? 'ak_' : 'ipp_'
      const ids = [
        prefix,
        `${prefix}${'1'.repeat(26)}`,
        `${prefix}${'1'.repeat(28)}`,
        `${prefix}${'1'.repeat(26)}-`,
        `${prefix}${'1'.repeat(26)}%C3%A9`,
        `${prefix}${'1'.repeat(27)}%0A`,
        `%20${prefix}${'1'.repeat(27)}`,
        `${prefix.toUpperCase()}${'1'.repeat(27)}`,
        `${other}${'1'.repeat(27)}`,
        '1'.repeat(27),
      ]
      test(`${path} takes limit and before_id, and is a list of ${resource.listKey}`, async () => {
        for (const query of ['', '?', '?limit=1', '?limit=100', `?before_id=${prefix}${'1'.repeat(27)}&limit=5`]) {
          const page = await target.api.get(`${path}${query}`)
          assert.deepEqual(Object.keys(page).sort(), [resource.listKey ?? '', 'next_page_uri', 'uri'].sort())
          assert.equal(page.uri, `${target.url}${path}`)
        }
      })

      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres') continue
      test(`${path} refuses unknown and wrong parameters`, async () => {
        const twice = `before_id=${prefix}${'1'.repeat(27)}&before_id=${prefix}${'1'.repeat(27)}`
        // All lists read their query in one way, which knows only the prefix of their ids and their filters.
        const wrong = path === '/ip_policies' || resource.filters ? bad : few
        for (const query of [...wrong, twice, ...ids.map((id) => `before_id=${id}`)]) {
          const answer = await target.api.send('GET', `${path}?${query}`)
          assert.equal(answer.status, 400, `${query}: ${answer.text.slice(0, 200)}`)
          assertEnvelope(answer, 400)
        }
      })
    }

    test('operations other than lists take no query', async () => {
      const id = await policy(target)
      for (const query of ['limit=1', 'before_id=x', 'x=1', 'dry_run=true']) {
        for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
          const answer = await target.api.send(method, `/ip_policies/${id}?${query}`)
          assertEnvelope(answer, 400, 'ERR_UNKNOWN_QUERY')
        }
        assertEnvelope(await target.api.send('POST', `/ip_policies?${query}`, { body: {} }), 400, 'ERR_UNKNOWN_QUERY')
      }
      await target.api.get(`/ip_policies/${id}`)
    })
  })

  describe('ids', () => {
    const kindsHere = new Set<string>(kindsOn(target))
    test(`${CREATIONS} creations have ids of one form that strictly increase`, async () => {
      let last = ''
      for (let i = 0; i < CREATIONS; i++) {
        const { id } = await target.api.create('/credentials')
        assert.match(id, /^cr_[0-9A-Za-z]{27}$/)
        assert.ok(id > last, `${id} after ${last}`)
        last = id
      }
    })

    test('creations at the same time never share an id', async () => {
      const made = await Promise.all(Array.from({ length: 50 }, () => policy(target)))
      assert.equal(new Set(made).size, made.length)
    })

    for (const { path, resource } of gets) {
      if (!resource.verbs.includes('create') || !kindsHere.has(resource.kind)) continue
      test(`${path} of the wrong form is 404, like an id that does not exist`, async () => {
        const { path: address, made, collection } = await createSample(target.api, resource)
        assert.match(made.id, new RegExp(`^${resource.prefix}[0-9A-Za-z]{27}$`))
        assert.equal(made.uri, `${target.url}${address}`, 'uri is where it is found')
        assert.deepEqual(
          (await target.api.send('GET', address)).body,
          (await target.api.send('GET', pathOf(made.uri))).body,
        )
        const text = made.id.slice(resource.prefix.length)
        const unknown = await target.api.send('GET', `${collection}/${resource.prefix}${'0'.repeat(27)}`)
        assertEnvelope(unknown, 404, 'ERR_NOT_FOUND')
        const wrong = [
          text,
          `zz_${text}`,
          `${resource.prefix.toUpperCase()}${text}`,
          `${made.id}1`,
          made.id.slice(0, -1),
          `${resource.prefix}${text.slice(1)}-`,
          `${resource.prefix}${text.slice(1)}%C3%A9`,
          `${made.id}%00`,
          `${made.id}%20`,
          `%20${made.id}`,
          `${made.id}%0A`,
          `${made.id},${made.id}`,
          `${made.id}.json`,
          '%2e%2e%2fapi_keys',
          resource.prefix,
          'a'.repeat(99),
          'a'.repeat(101),
          'a'.repeat(3000),
        ]
        for (const id of wrong) {
          const answer = await target.api.send('GET', `${collection}/${id}`)
          assert.deepEqual(comparable(answer), comparable(unknown), `${collection}/${id}`)
        }
      })
    }
  })

  describe('addresses', () => {
    const hosts = ['api.example.com', 'api.example.com:8080', 'API.Example.com', '127.0.0.1:1', '[::1]:7400', 'a_b-c']
    for (const host of hosts) {
      // How addresses are shown does not depend on the store, so one host is enough for the second.
      if (target.name === 'postgres' && host !== hosts[0]) continue
      test(`a caller that sends Host: ${host} gets addresses under it`, async () => {
        const id = await policy(target)
        const base = `http://${host}/ip_policies`
        assert.equal((await asHost(target, host, `/ip_policies/${id}`)).body.uri, `${base}/${id}`)
        const list = (await asHost(target, host, '/ip_policies?limit=1')).body
        assert.equal(list.uri, base)
        assert.ok(list.next_page_uri.startsWith(`${base}?`), list.next_page_uri)
        const edge = await target.api.create('/edges/tcp', { ip_restriction: { ip_policy_ids: [id] } })
        const seen = (await asHost(target, host, `/edges/tcp/${edge.id}`)).body
        assert.equal(seen.uri, `http://${host}/edges/tcp/${edge.id}`)
        assert.deepEqual(seen.ip_restriction.ip_policies, [{ id, uri: `${base}/${id}` }])
        const module = (await asHost(target, host, `/edges/tcp/${edge.id}/ip_restriction`)).body
        assert.deepEqual(module.ip_policies, [{ id, uri: `${base}/${id}` }])
      })
    }

    const badHosts = [
      '',
      'a b',
      'a/b',
      'a\\b',
      'user@host',
      'user:pass@host',
      'a?b',
      'a#b',
      'a"b',
      '<script>',
      "a'b",
      'a%2fb',
      'a,b',
      'host:',
      'host:x',
      'host:99999',
      'host:123456',
      ':80',
      '[::1',
      '[zz]',
      '[:::::]',
      '256.256.256.256',
      'a..b/../c',
    ]
    for (const host of badHosts) {
      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres') continue
      test(`Host: ${JSON.stringify(host)} is refused`, async () => {
        assertEnvelope(await asHost(target, host, '/ip_policies?limit=1'), 400)
      })
    }

    test('two Host headers, or none in HTTP/1.1, are refused', async () => {
      const { host } = new URL(target.url)
      for (const lines of [[], [`Host: ${host}`, `Host: ${host}`], [`Host: ${host}`, 'Host: other.example.com']]) {
        assertEnvelope(await bare(target, ['GET /ip_policies?limit=1 HTTP/1.1', ...lines]), 400)
      }
    })

    test('headers that only a proxy should set do not change any uri', async () => {
      const { host } = new URL(target.url)
      const lines = [
        `Host: ${host}`,
        'X-Forwarded-Host: evil.example.com',
        'X-Forwarded-Proto: https',
        'Forwarded: host=e',
      ]
      const { body } = await bare(target, ['GET /ip_policies?limit=1 HTTP/1.1', ...lines])
      assert.equal(body.uri, `${target.url}/ip_policies`)
    })
  })
})

describe('--api-url', () => {
  for (const base of ['https://api.example.com', 'https://example.com:8443/manage']) {
    test(`${base} prefixes every address, whatever the Host header`, async () => {
      const platform = await startPlatform({ flags: { 'api-url': base } })
      try {
        const { id } = await platform.admin.create('/ip_policies')
        await platform.admin.create('/ip_policies')
        const policy = await platform.admin.get(`/ip_policies/${id}`)
        assert.equal(policy.uri, `${base}/ip_policies/${id}`)
        const list = await platform.admin.get('/ip_policies?limit=1')
        assert.equal(list.uri, `${base}/ip_policies`)
        assert.ok(list.next_page_uri.startsWith(`${base}/ip_policies?`), list.next_page_uri)
      } finally {
        await platform.stop()
      }
    })
  }
})

/** All pages from `path` on, following each `next_page_uri`. */
async function follow(target: Target, path: string): Promise<Json[]> {
  const pages = [await target.api.get(path)]
  for (let page = pages[0]; page.next_page_uri !== null; page = pages.at(-1)) {
    assert.ok(page.next_page_uri.startsWith(`${target.url}/`), 'absolute, and on the same server')
    pages.push(await target.api.get(page.next_page_uri))
  }
  return pages
}

async function everyId(target: Target): Promise<string[]> {
  const pages = await follow(target, '/ip_policies')
  return pages.flatMap((page) => page.ip_policies.map((item: Json) => item.id))
}

async function policy(target: Target): Promise<string> {
  return (await target.api.create('/ip_policies')).id
}

function pathOf(uri: string): string {
  const { pathname, search } = new URL(uri)
  return pathname + search
}

function asHost(target: Target, host: string, path: string): Promise<RawAnswer> {
  return bare(target, [`GET ${path} HTTP/1.1`, `Host: ${host}`])
}

async function bare(target: Target, lines: readonly string[]): Promise<RawAnswer> {
  const { id, token } = await target.api.create('/api_keys')
  await new ApiClient(target.url, token).get('/api_keys?limit=1')
  try {
    return await sendRaw(target.url, head([...lines, `Authorization: Bearer ${token}`, 'Service-Version: 2']))
  } finally {
    await target.api.delete(`/api_keys/${id}`)
  }
}
