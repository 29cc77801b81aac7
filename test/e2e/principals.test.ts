/** Users and bots that are deactivated or deleted, and what members may not change (D65). */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openAdmin } from '../../src/server/compose/open-admin.ts'
import { readSettings } from '../../src/server/config/read-settings.ts'
import { ownDriver } from '../interop/agents/own-driver.ts'
import { ApiClient } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { until } from '../support/until.ts'

/** How long a session may last after its credential was revoked (D25). */
const ENDED_MS = 5000

eachStore((store) => {
  async function start(t: { after(close: () => unknown): void }): Promise<Platform> {
    const platform = await startPlatform({ databaseUrl: await store.url() })
    t.after(() => platform.stop())
    return platform
  }

  /** An agent that is online with a credential of this owner. */
  async function online(t: { after(close: () => unknown): void }, { admin, agents, ca }: Platform, ownerId: string) {
    const { token } = await admin.create('/credentials', { owner_id: ownerId })
    const agent = await ownDriver.connect({ server: agents, ca, authtoken: token })
    t.after(() => agent.close())
    await agent.open({ addr: 1 })
    return token
  }

  const sessions = async ({ admin }: Platform): Promise<number> =>
    (await admin.get('/tunnel_sessions')).tunnel_sessions.length

  for (const path of ['/bot_users', '/users']) {
    for (const end of ['set inactive', 'deleted'] as const) {
      test(`${path}: one that is ${end} loses its keys at once and its live sessions within seconds`, async (t) => {
        const platform = await start(t)
        const { admin, agents: server, ca } = platform
        const { id } = await admin.create(path, { name: 'the one' })
        const { token: key } = await admin.create('/api_keys', { owner_id: id })
        const authtoken = await online(t, platform, id)
        // Another owner, whose session must stay.
        await online(t, platform, platform.adminId)
        assert.equal(await sessions(platform), 2)

        if (end === 'deleted') await admin.delete(`${path}/${id}`)
        else await admin.update(`${path}/${id}`, { active: false })
        await new ApiClient(platform.url, key).refused('ERR_UNAUTHENTICATED', 'GET', '/api_keys')
        await until('its session has ended', async () => (await sessions(platform)) === 1, { limitMs: ENDED_MS })
        await assert.rejects(ownDriver.connect({ server, ca, authtoken }), /ERR_NGROK_107|authtoken/)
        assert.equal(await sessions(platform), 1)
      })
    }
  }

  test('a member cannot change the IP policy of an enforced restriction, which could lock admins out', async (t) => {
    const platform = await start(t)
    const { admin } = platform
    const member = await platform.member()
    const policy = await admin.create('/ip_policies')
    const rule = await admin.create('/ip_policy_rules', {
      ip_policy_id: policy.id,
      action: 'allow',
      cidr: '127.0.0.0/8',
    })
    const lockOut = { ip_policy_id: policy.id, action: 'deny', cidr: '127.0.0.1/32' }
    const restriction = await admin.create('/ip_restrictions', { type: 'api', ip_policy_ids: [policy.id] })
    // While it is not enforced, it protects nothing.
    const draft = await member.api.create('/ip_policy_rules', { ...lockOut, cidr: '192.0.2.0/24' })
    await member.api.delete(`/ip_policy_rules/${draft.id}`)
    await admin.update(`/ip_restrictions/${restriction.id}`, { enforced: true })

    const calls = [
      ['POST', '/ip_policy_rules', lockOut],
      ['PATCH', `/ip_policy_rules/${rule.id}`, { cidr: '192.0.2.0/24' }],
      ['DELETE', `/ip_policy_rules/${rule.id}`, undefined],
      ['PATCH', `/ip_policies/${policy.id}`, { description: 'mine' }],
      ['DELETE', `/ip_policies/${policy.id}`, undefined],
    ] as const
    for (const [method, path, body] of calls) {
      const refused = await member.api.refused('ERR_FORBIDDEN', method, path, body ? { body } : {})
      assert.match(refused.msg, /enforced IP restriction of type `api`.*only an admin/)
    }
    assert.equal((await admin.get('/ip_policy_rules')).ip_policy_rules.length, 1)
    await member.api.get(`/ip_policies/${policy.id}`)

    // Other policies can still be changed by members, and this one by admins.
    const other = await member.api.create('/ip_policies')
    await member.api.create('/ip_policy_rules', { ...lockOut, ip_policy_id: other.id })
    await admin.update(`/ip_policies/${policy.id}`, { description: 'ours' })
    await admin.update(`/ip_restrictions/${restriction.id}`, { enforced: false })
    await member.api.update(`/ip_policies/${policy.id}`, { description: 'free again' })
  })

  test('while a restriction becomes enforced, a rule by a member is added before it or not at all', async (t) => {
    const platform = await start(t)
    const { admin } = platform
    const member = await platform.member()
    const { id: policyId } = await admin.create('/ip_policies')
    await admin.create('/ip_policy_rules', { ip_policy_id: policyId, action: 'allow', cidr: '127.0.0.0/8' })
    const { id } = await admin.create('/ip_restrictions', { type: 'api', ip_policy_ids: [policyId] })
    for (let round = 0; round < 5; round++) {
      const rules = Array.from({ length: 8 }, (_, i) => ({
        ip_policy_id: policyId,
        action: 'allow',
        cidr: `10.${round}.${i}.0/24`,
      }))
      const enforcing = admin.update(`/ip_restrictions/${id}`, { enforced: true })
      const answers = await Promise.all(rules.map((body) => member.api.send('POST', '/ip_policy_rules', { body })))
      await enforcing
      for (const { status } of answers) assert.ok(status === 201 || status === 403, String(status))
      const counted = (await admin.get('/ip_policy_rules')).ip_policy_rules.length
      await member.api.refused('ERR_FORBIDDEN', 'POST', '/ip_policy_rules', {
        body: { ...rules[0], cidr: '10.9.9.0/24' },
      })
      assert.equal((await admin.get('/ip_policy_rules')).ip_policy_rules.length, counted)
      await admin.update(`/ip_restrictions/${id}`, { enforced: false })
    }
  })

  test('the last active admin cannot be deleted, deactivated or demoted', async (t) => {
    const platform = await start(t)
    const { admin, adminId } = platform
    const path = `/users/${adminId}`
    const changes = [{ active: false }, { role: 'member' }, { active: false, role: 'member' }]
    const allRefused = async () => {
      for (const body of changes) await admin.refused('ERR_LAST_ADMIN', 'PATCH', path, { body })
      await admin.refused('ERR_LAST_ADMIN', 'DELETE', path)
      const database = await openDatabase(platform)
      await assert.rejects(database.setUserActive(adminId, false), /last active admin/)
      await assert.rejects(database.deleteUser(adminId), /last active admin/)
      await database.close()
    }
    await allRefused()
    // Neither a member nor an inactive admin counts.
    await admin.create('/users', { name: 'member' })
    await admin.create('/users', { name: 'asleep', role: 'admin', active: false })
    await allRefused()
    const second = await platform.member('admin')
    await admin.update(path, { role: 'member' })
    await admin.refused('ERR_FORBIDDEN', 'GET', '/users')
    await second.api.delete(path)
    await second.api.refused('ERR_LAST_ADMIN', 'DELETE', `/users/${second.id}`)
  })

  test('when two admins delete each other at the same moment, one remains', async (t) => {
    const platform = await start(t)
    for (let round = 0; round < 5; round++) {
      const [a, b] = [await platform.member('admin'), await platform.member('admin')]
      // The first admin is inactive during the round.
      await a.api.update(`/users/${platform.adminId}`, { active: false })
      const answers = await Promise.all([
        a.api.send('DELETE', `/users/${b.id}`),
        b.api.send('DELETE', `/users/${a.id}`),
      ])
      const statuses = answers.map(({ status }) => status)
      assert.equal(statuses.filter((status) => status === 204).length, 1, statuses.join())
      const [left] = [a, b].filter((_, i) => answers[1 - i]?.status !== 204)
      assert.ok(left)
      await left.api.update(`/users/${platform.adminId}`, { active: true })
      await platform.admin.delete(`/users/${left.id}`)
    }
  })

  test('a start after the first admin was deleted creates no new admin', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-principals-'))
    t.after(() => rm(dataDir, { recursive: true }))
    const options = { dataDir, databaseUrl: await store.url() }
    const before = await startPlatform(options)
    const second = await before.member('admin')
    await second.api.delete(`/users/${before.adminId}`)
    await before.stop()
    const after = await startPlatform(options)
    t.after(() => after.stop())
    await after.admin.refused('ERR_UNAUTHENTICATED', 'GET', '/users')
    const users = (await new ApiClient(after.url, second.token).get('/users')).users
    assert.deepEqual(
      users.map(({ id }: { id: string }) => id),
      [second.id],
    )
  })

  test('`postern admin` deactivates, activates and deletes users while the server runs', async (t) => {
    const platform = await start(t)
    const member = await platform.member()
    const database = await openDatabase(platform)
    t.after(() => database.close())
    assert.equal((await database.setUserActive(member.id, false)).active, false)
    await until('its key opens nothing', async () => (await member.api.send('GET', '/api_keys')).status === 401)
    await database.setUserActive(member.id, true)
    await until('its key opens all again', async () => (await member.api.send('GET', '/api_keys')).status === 200)
    const { id } = await member.api.create('/ip_policies')
    await database.deleteUser(member.id)
    assert.equal((await member.api.send('GET', '/api_keys')).status, 401)
    await platform.admin.get(`/ip_policies/${id}`)
    await assert.rejects(database.deleteUser(member.id), /no user with this id/)
  })
})

type Database = Awaited<ReturnType<typeof openAdmin>>

function openDatabase({ databaseUrl, dataDir }: Platform): Promise<Database> {
  const flags = { 'data-dir': dataDir, 'database-url': databaseUrl }
  return openAdmin(readSettings({ flags, env: {}, cwd: dataDir }))
}
