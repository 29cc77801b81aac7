/** Who may see, change and create resources for whom: users, bots, admins and members (D21 to D25, contract part 5). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { resources } from '../../src/control-plane/resources/index.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { head, RawConnection } from '../support/raw-http.ts'
import { assertEnvelope, comparable } from './envelope.ts'
import { sampleBody } from './samples.ts'
import { eachTarget, type Target, unique } from './target.ts'

/** D22: resources with an owner. Listed here, so that a change of the registry cannot silently remove one. */
const owned = ['/api_keys', '/credentials', '/ssh_credentials'].map((path) => {
  const resource = resources.find((each) => each.path === path)
  assert.ok(resource, `there is no resource at ${path}`)
  return resource
})

eachTarget((target) => {
  for (const resource of owned) {
    const { path, prefix } = resource
    const listed = async (api: ApiClient): Promise<string[]> => {
      const page = await api.get(path)
      assert.equal(page.next_page_uri, null, 'few enough for one page')
      return page[resource.listKey ?? ''].map((item: Json) => item.id)
    }
    const body = (also = {}) => sampleBody(target.api, resource).then((own) => ({ ...own, ...also }))

    test(`${path}: a bot owns what it creates, and sees nothing else`, async () => {
      const [a, b] = [await bot(target), await bot(target)]
      const made = await a.api.create(path, await body())
      assert.equal(made.owner_id, a.id)
      assert.equal((await a.api.get(`${path}/${made.id}`)).owner_id, a.id)
      assert.ok((await listed(a.api)).includes(made.id))
      assert.ok(!(await listed(b.api)).includes(made.id))
      for (const id of await listed(a.api)) assert.equal((await target.api.get(`${path}/${id}`)).owner_id, a.id)
    })

    test(`${path}: another owner's id gets the same answer as an unknown one`, async () => {
      const [a, b] = [await bot(target), await bot(target)]
      const { id } = await a.api.create(path, await body())
      const unknown = `${prefix}${'0'.repeat(27)}`
      for (const [method, sending] of [
        ['GET', {}],
        ['PATCH', { body: { description: 'mine now' } }],
        ['PATCH', { body: {} }],
        ['DELETE', {}],
      ] as const) {
        const [theirs, none] = [
          await b.api.send(method, `${path}/${id}`, sending),
          await b.api.send(method, `${path}/${unknown}`, sending),
        ]
        assertEnvelope(theirs, 404, 'ERR_NOT_FOUND')
        assert.deepEqual(comparable(theirs), comparable(none), method)
      }
      const kept = await a.api.get(`${path}/${id}`)
      assert.equal(kept.description, 'a sample')
    })

    test(`${path}: another owner's id works as before_id, and reveals nothing`, async () => {
      const [a, b] = [await bot(target), await bot(target)]
      const mine = await b.api.create(path, await body())
      const theirs = await a.api.create(path, await body())
      const page = await b.api.get(`${path}?before_id=${theirs.id}&limit=1`)
      assert.deepEqual(
        page[resource.listKey ?? ''].map((item: Json) => item.id),
        [mine.id],
      )
    })

    test(`${path}: pages of a member are full, and hold only its own`, async () => {
      const [a, b] = [await bot(target), await bot(target)]
      const mine = []
      for (let i = 0; i < 3; i++) {
        mine.unshift((await a.api.create(path, await body())).id)
        await b.api.create(path, await body())
      }
      const first = await a.api.get(`${path}?limit=2`)
      const second = await a.api.get(first.next_page_uri)
      const seen = [first, second].flatMap((page) => page[resource.listKey ?? ''].map((item: Json) => item.id))
      assert.deepEqual(seen.slice(0, 3), mine)
    })

    test(`${path}: a member that names another owner is 403, and nothing is stored`, async () => {
      const [a, b] = [await bot(target), await bot(target)]
      const admin = (await target.api.create('/api_keys')).owner_id
      const before = await listed(b.api)
      for (const owner_id of [b.id, admin, `usr_${'0'.repeat(27)}`, `bot_${'0'.repeat(27)}`, 'nobody']) {
        const sent = await body({ owner_id })
        const answer = await a.api.send('POST', path, { body: sent })
        assertEnvelope(answer, 403, 'ERR_OWNER_NOT_ALLOWED')
        if (resource.kind === 'ssh_credential') await target.api.create(path, { ...sent, owner_id: a.id })
      }
      assert.deepEqual(await listed(b.api), before)
    })

    test(`${path}: an owner may name itself`, async () => {
      const a = await bot(target)
      assert.equal((await a.api.create(path, await body({ owner_id: a.id }))).owner_id, a.id)
    })

    test(`${path}: an admin creates for any owner, and sees and manages all`, async () => {
      const a = await bot(target)
      const made = await target.api.create(path, await body({ owner_id: a.id }))
      assert.equal(made.owner_id, a.id)
      assert.ok((await listed(a.api)).includes(made.id))
      await target.api.update(`${path}/${made.id}`, { description: 'by an admin' })
      assert.equal((await a.api.get(`${path}/${made.id}`)).description, 'by an admin')
      const newest = (await target.api.get(`${path}?limit=1`))[resource.listKey ?? ''][0]
      assert.equal(newest.id, made.id, 'the list of an admin holds what others own')
      await target.api.delete(`${path}/${made.id}`)
      assertEnvelope(await a.api.send('GET', `${path}/${made.id}`), 404)
    })

    test(`${path}: an admin that names an unknown owner is 400, and nothing is stored`, async () => {
      const { id: key } = await target.api.create('/api_keys')
      const [before] = (await target.api.get(`${path}?limit=1`))[resource.listKey ?? '']
      for (const owner_id of [`usr_${'0'.repeat(27)}`, `bot_${'0'.repeat(27)}`, 'usr_', 'nobody', key, '*']) {
        assertEnvelope(
          await target.api.send('POST', path, { body: await body({ owner_id }) }),
          400,
          'ERR_UNKNOWN_OWNER',
        )
      }
      const [after] = (await target.api.get(`${path}?limit=1`))[resource.listKey ?? '']
      assert.equal(after?.id, before?.id)
    })

    test(`${path}: the owner cannot be changed`, async () => {
      const [a, b] = [await bot(target), await bot(target)]
      const { id } = await a.api.create(path, await body())
      for (const api of [a.api, target.api]) {
        assertEnvelope(await api.send('PATCH', `${path}/${id}`, { body: { owner_id: b.id } }), 400)
      }
      assert.equal((await target.api.get(`${path}/${id}`)).owner_id, a.id)
    })
  }

  describe('bots', () => {
    test('are for admins only; a bot is a member', async () => {
      const a = await bot(target)
      const calls = [
        ['GET', '/bot_users'],
        ['POST', '/bot_users'],
        ['GET', `/bot_users/${a.id}`],
        ['PATCH', `/bot_users/${a.id}`],
        ['DELETE', `/bot_users/${a.id}`],
        ['GET', `/bot_users/bot_${'0'.repeat(27)}`],
        ['GET', '/bot_users/nonsense'],
      ] as const
      for (const [method, path] of calls) assertEnvelope(await a.api.send(method, path), 403, 'ERR_FORBIDDEN')
      await target.api.get(`/bot_users/${a.id}`)
    })

    test('are deleted with their keys and credentials', async () => {
      const a = await bot(target)
      const made: string[] = []
      for (const resource of owned) {
        const { id } = await a.api.create(resource.path, await sampleBody(target.api, resource))
        made.push(`${resource.path}/${id}`)
      }
      await target.api.delete(`/bot_users/${a.id}`)
      assertEnvelope(await a.api.send('GET', '/api_keys'), 401, 'ERR_UNAUTHENTICATED')
      for (const path of made) assertEnvelope(await target.api.send('GET', path), 404, 'ERR_NOT_FOUND')
      const again = { owner_id: a.id }
      assertEnvelope(await target.api.send('POST', '/api_keys', { body: again }), 400, 'ERR_UNKNOWN_OWNER')
    })

    test('are deleted without what belongs to the account', async () => {
      const a = await bot(target)
      const { id } = await a.api.create('/ip_policies')
      await target.api.delete(`/bot_users/${a.id}`)
      await target.api.get(`/ip_policies/${id}`)
    })

    test('have no access while inactive, and full access again after', async () => {
      const a = await bot(target)
      const { id } = await a.api.create('/credentials')
      await target.api.update(`/bot_users/${a.id}`, { active: false })
      const [inactive, unknown] = [
        await a.api.send('GET', '/api_keys'),
        await new ApiClient(target.url, null).send('GET', '/api_keys'),
      ]
      assertEnvelope(inactive, 401, 'ERR_UNAUTHENTICATED')
      assert.deepEqual(comparable(inactive), comparable(unknown))
      await target.api.update(`/bot_users/${a.id}`, { active: true })
      await a.api.get(`/credentials/${id}`)
    })

    test('that are inactive have keys without access', async () => {
      const { id } = await target.api.create('/bot_users', { name: unique('bot'), active: false })
      const { token } = await target.api.create('/api_keys', { owner_id: id })
      assertEnvelope(await new ApiClient(target.url, token).send('GET', '/api_keys'), 401)
    })
  })

  describe('what belongs to the account', () => {
    test('is seen and managed by any valid key', async () => {
      const [a, b] = [await bot(target), await bot(target)]
      for (const path of ['/ip_policies', '/edges/tcp', '/edges/tls', '/edges/https', '/backends/http_response']) {
        const { id } = await a.api.create(path)
        await b.api.update(`${path}/${id}`, { description: 'by another' })
        assert.equal((await a.api.get(`${path}/${id}`)).description, 'by another')
        await b.api.delete(`${path}/${id}`)
      }
    })

    test('has no owner', async () => {
      const made = await target.api.create('/ip_policies')
      assert.ok(!Object.hasOwn(made, 'owner_id'))
      assertEnvelope(
        await target.api.send('POST', '/ip_policies', { body: { owner_id: 'x' } }),
        400,
        'ERR_UNKNOWN_FIELD',
      )
    })
  })

  describe('a deleted key', () => {
    test('no longer works, even on a connection that is already open', async () => {
      const { id, token } = await target.api.create('/api_keys')
      const lines = [`Host: ${new URL(target.url).host}`, `Authorization: Bearer ${token}`, 'Service-Version: 2']
      const connection = await RawConnection.open(target.url)
      try {
        assert.equal((await connection.exchange(head(['GET /api_keys HTTP/1.1', ...lines]))).status, 200)
        assert.equal((await connection.exchange(head([`DELETE /api_keys/${id} HTTP/1.1`, ...lines]))).status, 204)
        for (const line of ['GET /api_keys', `GET /api_keys/${id}`, `DELETE /api_keys/${id}`, 'POST /ip_policies']) {
          assertEnvelope(await connection.exchange(head([`${line} HTTP/1.1`, ...lines])), 401)
        }
        assert.ok(connection.isOpen, 'it was the same connection all along')
      } finally {
        connection.close()
      }
    })

    test('does not delete what its owner created', async () => {
      const a = await bot(target)
      const { id, token } = await a.api.create('/api_keys')
      const other = await new ApiClient(target.url, token).create('/api_keys')
      await a.api.delete(`/api_keys/${id}`)
      await a.api.get(`/api_keys/${other.id}`)
    })
  })

  const { platform } = target
  if (platform) {
    test('users are admins or members, and admins see each other', async () => {
      const [admin, member] = [await platform().member('admin'), await platform().member('member')]
      const { id } = await target.api.create('/api_keys')
      await admin.api.get(`/api_keys/${id}`)
      await admin.api.get('/bot_users')
      assertEnvelope(await member.api.send('GET', `/api_keys/${id}`), 404)
      assertEnvelope(await member.api.send('GET', '/bot_users'), 403)
      assert.equal((await member.api.create('/api_keys')).owner_id, member.id)
      assert.equal((await admin.api.create('/api_keys', { owner_id: member.id })).owner_id, member.id)
    })
  }
})

/** A new bot, which counts as a member, with its own key. */
async function bot(target: Target): Promise<{ id: string; api: ApiClient }> {
  const { id } = await target.api.create('/bot_users', { name: unique('bot') })
  const { token } = await target.api.create('/api_keys', { owner_id: id })
  return { id, api: new ApiClient(target.url, token) }
}
