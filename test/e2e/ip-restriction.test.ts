import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { openAdmin } from '../../src/server/compose/open-admin.ts'
import { readSettings } from '../../src/server/config/read-settings.ts'
import type { ApiClient } from '../support/api-client.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, startPlatform } from '../support/platform.ts'
import { createDatabase, dropDatabase, startPostgres } from '../support/postgres.ts'

/** An IP policy with one rule. */
async function policyOf(api: ApiClient, action: string, cidr: string): Promise<string> {
  const { id } = await api.create('/ip_policies')
  await api.create('/ip_policy_rules', { ip_policy_id: id, action, cidr })
  return id
}

/** Asks until the answer has `status`; changes by another process arrive a moment later. */
async function until(platform: Platform, status: number): Promise<void> {
  const deadline = Date.now() + 10_000
  for (;;) {
    const answer = await platform.admin.send('GET', '/api_keys')
    if (answer.status === status) return
    assert.ok(Date.now() < deadline, `still ${answer.status} ${answer.text}`)
    await pause(50)
  }
}

eachStore((store) => {
  test('an enforced IP restriction decides at once who may call, and a lifted one lets everybody in again', async (t) => {
    const platform = await startPlatform({ databaseUrl: await store.url() })
    t.after(() => platform.stop())
    const { admin } = platform
    const here = await policyOf(admin, 'allow', '127.0.0.0/8')
    const elsewhere = await policyOf(admin, 'allow', '192.0.2.0/24')

    const restriction = await admin.create('/ip_restrictions', { type: 'api', ip_policy_ids: [elsewhere] })
    await admin.get('/api_keys')
    await admin.update(`/ip_restrictions/${restriction.id}`, { ip_policy_ids: [elsewhere, here], enforced: true })
    await admin.get('/api_keys')
    assert.equal((await fetch(`${platform.url}/api_keys`)).status, 401, 'without a key nobody learns of it')

    await admin.create('/ip_policy_rules', { ip_policy_id: elsewhere, action: 'deny', cidr: '127.0.0.1/32' })
    const refused = await admin.refused('ERR_IP_NOT_ALLOWED', 'GET', '/api_keys')
    assert.equal(refused.status_code, 403)
    assert.equal((await fetch(`${platform.url}/healthz`)).status, 200)

    const flags = { 'data-dir': platform.dataDir, 'database-url': platform.databaseUrl }
    const database = await openAdmin(readSettings({ flags, env: {}, cwd: platform.dataDir }))
    assert.deepEqual(await database.liftRestrictions(['api']), ['api'])
    assert.deepEqual(await database.liftRestrictions(['api']), [])
    await database.close()
    await until(platform, 200)
    assert.equal((await admin.get(`/ip_restrictions/${restriction.id}`)).enforced, false)
  })

  test('restrictions of other parts and those not enforced do not touch the API', async (t) => {
    const platform = await startPlatform({ databaseUrl: await store.url() })
    t.after(() => platform.stop())
    const { admin } = platform
    const elsewhere = await policyOf(admin, 'allow', '192.0.2.0/24')
    for (const type of ['agent', 'dashboard', 'endpoints']) {
      await admin.create('/ip_restrictions', { type, enforced: true, ip_policy_ids: [elsewhere] })
    }
    await admin.create('/ip_restrictions', { type: 'api', enforced: false, ip_policy_ids: [elsewhere] })
    await admin.get('/api_keys')
  })
})

test('a restriction set through one server applies at the others of the same database', async (t) => {
  const shared = process.env.POSTERN_TEST_POSTGRES_URL
  const own = shared ? undefined : await startPostgres()
  const server = shared ?? own?.url ?? ''
  const databaseUrl = await createDatabase(server)
  const platforms: Platform[] = []
  t.after(async () => {
    // Before the database goes: they would keep querying it.
    for (const platform of platforms) await platform.stop()
    await dropDatabase(server, databaseUrl)
    await own?.stop()
  })
  const first = await startPlatform({ databaseUrl })
  platforms.push(first)
  const second = await startPlatform({ databaseUrl, flags: { 'key-file': `${first.dataDir}/secret.key` } })
  platforms.push(second)
  const elsewhere = await policyOf(first.admin, 'allow', '192.0.2.0/24')
  await second.admin.get('/api_keys')
  await first.admin.create('/ip_restrictions', { type: 'api', enforced: true, ip_policy_ids: [elsewhere] })
  await until(second, 403)
})
