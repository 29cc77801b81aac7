/** Logins of visitors, as the API lists and ends them. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { timestamp } from '../../src/lib/clock.ts'
import { resourceShapes } from '../conformance/resource-shapes.ts'
import type { Json } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { EDGE_ID, type Logins, openLogins, ROUTE_ID, USER_AGENT } from '../support/logins.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

const NOBODY = '1'.repeat(27)

describe('logins in the API', () => {
  eachStore((store) => {
    let dataDir: string
    let databaseUrl: string
    let platform: Platform
    let logins: Logins
    const start = async () => {
      platform = await startPlatform({ dataDir, databaseUrl })
      logins = await openLogins(platform)
    }
    const stop = async () => {
      await logins.close()
      await platform.stop()
    }
    const sessions = async (): Promise<Json[]> => (await platform.admin.get('/app/sessions')).application_sessions
    const users = async (): Promise<Json[]> => (await platform.admin.get('/app/users')).application_users

    before(async () => {
      dataDir = await mkdtemp(join(tmpdir(), 'postern-logins-'))
      databaseUrl = await store.url()
      await start()
    })
    after(async () => {
      await stop()
      await rm(dataDir, { recursive: true, force: true })
    })
    beforeEach(async () => {
      for (const { id } of await users()) await platform.admin.delete(`/app/users/${id}`)
    })

    test('a login is shown with its user, its browser and its route', async () => {
      assert.deepEqual([await users(), await sessions()], [[], []])
      const at = Date.now()
      await logins.logIn({ secret: 'a', at })
      const [session, ...others] = await sessions()
      const [user] = await users()
      assert.equal(others.length, 0)
      resourceShapes.application_session(session, 'session')
      resourceShapes.application_user(user, 'user')
      const now = timestamp(at)
      assert.deepEqual(session, {
        id: session.id,
        uri: `${platform.url}/app/sessions/${session.id}`,
        public_url: 'https://app.example.com',
        browser_session: {
          user_agent: {
            raw: USER_AGENT,
            browser_name: 'Firefox',
            browser_version: '128',
            device_type: 'Desktop',
            os_name: 'Linux',
            os_version: '',
          },
          ip_address: '192.0.2.7',
          location: null,
        },
        application_user: { id: user.id, uri: `${platform.url}/app/users/${user.id}` },
        created_at: now,
        last_active: now,
        expires_at: timestamp(at + 3_600_000),
        endpoint: null,
        edge: { id: EDGE_ID, uri: `${platform.url}/edges/https/${EDGE_ID}` },
        route: { id: ROUTE_ID, uri: `${platform.url}/edges/https/${EDGE_ID}/routes/${ROUTE_ID}` },
      })
      assert.deepEqual(user, {
        id: user.id,
        uri: `${platform.url}/app/users/${user.id}`,
        identity_provider: { name: 'oidc', url: 'https://id.example.com' },
        provider_user_id: 'u-1',
        username: 'ada',
        email: 'ada@example.com',
        name: 'Ada Lovelace',
        created_at: now,
        last_active: now,
        last_login: now,
      })
      assert.deepEqual(await platform.admin.get(`/app/sessions/${session.id}`), session)
      assert.deepEqual(await platform.admin.get(`/app/users/${user.id}`), user)
    })

    test('a login at an endpoint of an agent names the endpoint instead of an edge', async () => {
      const edgeId = `ep_${NOBODY}`
      await logins.logIn({ secret: 'a', edgeId })
      const [{ endpoint, edge, route }] = (await sessions()) as [Json]
      assert.deepEqual(
        [endpoint, edge, route],
        [{ id: edgeId, uri: `${platform.url}/endpoints/${edgeId}` }, null, null],
      )
    })

    test('lists come in pages, newest first', async () => {
      for (const secret of ['a', 'b', 'c']) await logins.logIn({ secret, user: { id: secret } })
      for (const [path, key] of [
        ['/app/users', 'application_users'],
        ['/app/sessions', 'application_sessions'],
      ] as const) {
        const all = (await platform.admin.get(path))[key].map(({ id }: Json) => id)
        assert.equal(all.length, 3)
        assert.deepEqual(all, all.toSorted().toReversed())
        const first = await platform.admin.get(`${path}?limit=2`)
        assert.deepEqual(
          first[key].map(({ id }: Json) => id),
          all.slice(0, 2),
        )
        assert.equal(first.next_page_uri, `${platform.url}${path}?before_id=${all[1]}&limit=2`)
        const last = await platform.admin.get(`${path}?limit=2&before_id=${all[1]}`)
        assert.deepEqual([last[key].map(({ id }: Json) => id), last.next_page_uri], [all.slice(2), null])
        await platform.admin.refused('ERR_BAD_CURSOR', 'GET', `${path}?before_id=x`)
      }
    })

    test('a deleted session is over, and its user and other sessions stay', async () => {
      await logins.logIn({ secret: 'a' })
      await logins.logIn({ secret: 'b' })
      const [newest] = await sessions()
      await platform.admin.delete(`/app/sessions/${newest.id}`)
      await platform.admin.refused('ERR_NOT_FOUND', 'DELETE', `/app/sessions/${newest.id}`)
      await platform.admin.refused('ERR_NOT_FOUND', 'GET', `/app/sessions/${newest.id}`)
      assert.deepEqual([await logins.isLoggedIn('a'), await logins.isLoggedIn('b')], [true, false])
      assert.equal((await users()).length, 1)
    })

    test('a deleted user has no sessions, and others keep theirs', async () => {
      for (const secret of ['a', 'b']) await logins.logIn({ secret })
      const [user] = await users()
      await logins.logIn({ secret: 'c', user: { id: 'u-2' } })
      await platform.admin.delete(`/app/users/${user.id}`)
      await platform.admin.refused('ERR_NOT_FOUND', 'DELETE', `/app/users/${user.id}`)
      const found = await Promise.all(['a', 'b', 'c'].map((secret) => logins.isLoggedIn(secret)))
      assert.deepEqual(found, [false, false, true])
      assert.equal((await sessions()).length, 1)
    })

    test('logins survive a restart', async () => {
      await logins.logIn({ secret: 'a' })
      const before = await sessions()
      await stop()
      await start()
      const ids = (list: Json[]) => list.map(({ id }) => id)
      assert.deepEqual(ids(await sessions()), ids(before))
      assert.equal(await logins.isLoggedIn('a'), true)
    })

    test('no answer and no log line holds a secret of a login', async () => {
      await logins.logIn({ secret: 'cookie-secret-of-a-browser' })
      const text = JSON.stringify([await sessions(), await users(), platform.log])
      assert.match(text, /ada@example\.com/)
      assert.doesNotMatch(text, /cookie-secret|token-of-the-provider|sealed:/)
    })

    if (store.name === 'postgres') {
      test('a login that is revoked at one server is refused at another that has it cached', async () => {
        for (const secret of ['a', 'b']) {
          await logins.logIn({ secret, user: { id: secret } })
          assert.equal(await logins.isLoggedIn(secret), true)
        }
        const [session] = await sessions()
        await platform.admin.delete(`/app/sessions/${session.id}`)
        await until('the session is refused', async () => !(await logins.isLoggedIn('b')))
        const user = (await users()).find(({ provider_user_id: id }) => id === 'a')
        await platform.admin.delete(`/app/users/${user.id}`)
        await until('the user is refused', async () => !(await logins.isLoggedIn('a')))
      })
    }
  })
})
