import assert from 'node:assert/strict'
import { copyFile, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openAdmin } from '../../src/server/compose/open-admin.ts'
import { readSettings } from '../../src/server/config/read-settings.ts'
import { changeDatabase } from '../support/change-database.ts'
import { databaseContents } from '../support/database-contents.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'

const SECRET = 'the-client-secret-of-this-test'
const PASSWORD = 'ada:the-password-inside-a-policy'
const OAUTH_SECRET = 'the-secret-inside-an-oauth-provider'

const oidc = { issuer: 'https://login.example.com', client_id: 'app', client_secret: SECRET }
// Disabled, since a route has one login.
const oauth = { enabled: false, provider: { github: { client_id: 'app', client_secret: OAUTH_SECRET } } }
const policy = { inbound: [{ actions: [{ type: 'basic-auth', config: { credentials: [PASSWORD] } }] }] }

/** Creates a route with secrets; returns its path. */
async function makeRoute({ admin }: Platform): Promise<string> {
  const edge = await admin.create('/edges/https')
  const body = { match_type: 'path_prefix', match: '/', oauth, oidc, policy }
  const route = await admin.create(`/edges/https/${edge.id}/routes`, body)
  return `/edges/https/${edge.id}/routes/${route.id}`
}

async function assertReadable(platform: Platform, path: string): Promise<void> {
  const route = await platform.admin.get(path)
  assert.equal(route.oidc.client_secret, SECRET)
  assert.equal(route.oauth.provider.github.client_secret, OAUTH_SECRET)
  assert.deepEqual(route.policy.inbound[0].actions[0].config, { credentials: [PASSWORD] })
}

eachStore((store) => {
  /** A data folder and database that outlive a server. */
  async function lasting(work: (options: { dataDir: string; databaseUrl: string; keyFile: string }) => Promise<void>) {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-secrets-'))
    try {
      await work({ dataDir, databaseUrl: await store.url(), keyFile: join(dataDir, 'secret.key') })
    } finally {
      for (const platform of started.splice(0)) await platform.stop()
      await rm(dataDir, { recursive: true })
    }
  }

  const started: Platform[] = []

  /** Stops with the test, however it ends; stopping it earlier is fine. */
  async function start(options: PlatformOptions): Promise<Platform> {
    const platform = await startPlatform(options)
    started.push(platform)
    return platform
  }

  async function rotate({ dataDir, databaseUrl }: { dataDir: string; databaseUrl: string }): Promise<number> {
    const flags = { 'data-dir': dataDir, 'database-url': databaseUrl }
    const admin = await openAdmin(readSettings({ flags, env: {}, cwd: dataDir }))
    try {
      return await admin.rotateKey()
    } finally {
      await admin.close()
    }
  }

  test('a copy of the database shows no secret', () =>
    lasting(async (data) => {
      const platform = await start(data)
      await assertReadable(platform, await makeRoute(platform))
      const content = await databaseContents(data.databaseUrl)
      assert.ok(content.includes('login.example.com'), 'the test looks in the right place')
      for (const secret of [SECRET, PASSWORD, OAUTH_SECRET]) assert.ok(!content.includes(secret))
      assert.ok(content.includes('BEGIN CERTIFICATE'), 'the certificate of the authority is there')
      assert.doesNotMatch(content, /PRIVATE KEY/)
      await platform.stop()
    }))

  test('after a rotation the new key file opens everything and the old one does not start', () =>
    lasting(async (data) => {
      const before = await start(data)
      const path = await makeRoute(before)
      await before.stop()
      const old = join(data.dataDir, 'old.key')
      await copyFile(data.keyFile, old)

      assert.equal(await rotate(data), 5)
      assert.notDeepEqual(await readFile(data.keyFile), await readFile(old))
      assert.equal((await stat(data.keyFile)).mode & 0o777, 0o600)
      const after = await start(data)
      await assertReadable(after, path)
      await after.stop()
      await assert.rejects(startPlatform({ ...data, flags: { 'key-file': old } }), /is not the one that seals/)
    }))

  test('a rotation that was interrupted before its last step is finished by the next start', () =>
    lasting(async (data) => {
      const before = await start(data)
      const path = await makeRoute(before)
      await before.stop()
      const old = join(data.dataDir, 'old.key')
      await copyFile(data.keyFile, old)
      await rotate(data)
      // The state between the commit and the rename.
      await rename(data.keyFile, `${data.keyFile}.next`)
      await rename(old, data.keyFile)

      const after = await start(data)
      await assertReadable(after, path)
      await after.stop()
      await assert.rejects(stat(`${data.keyFile}.next`), { code: 'ENOENT' })
    }))

  test('a rotation that was interrupted before its commit changes nothing', () =>
    lasting(async (data) => {
      const before = await start(data)
      const path = await makeRoute(before)
      await before.stop()
      // A new key that the database does not know.
      await copyFile(data.keyFile, `${data.keyFile}.next`)
      const after = await start(data)
      await assertReadable(after, path)
      await after.stop()
      assert.equal(await rotate(data), 5)
    }))

  test('a module that cannot be opened can be replaced or deleted', () =>
    lasting(async (data) => {
      const platform = await start(data)
      const { admin } = platform
      const path = await makeRoute(platform)
      await admin.put(`${path}/webhook_verification`, { provider: 'github', secret: SECRET })
      await spoilModules(data.databaseUrl)
      await admin.refused('ERR_SECRET_UNREADABLE', 'GET', path)
      await admin.refused('ERR_SECRET_UNREADABLE', 'GET', `${path}/oidc`)

      // Each while others still cannot be opened, and one that has no secret.
      await admin.put(`${path}/compression`, {})
      await admin.put(`${path}/oidc`, oidc)
      await admin.delete(`${path}/webhook_verification`)
      await admin.refused('ERR_SEVERAL_LOGINS', 'PUT', `${path}/oauth`, { body: { ...oauth, enabled: true } })
      await admin.refused('ERR_SECRET_UNREADABLE', 'GET', path)
      await admin.update(path, { oauth, policy })
      await assertReadable(platform, path)
      assert.equal((await admin.get(path)).webhook_verification, null)
    }))

  test('the same holds for the policy of a TLS edge, which refuses other changes until then', () =>
    lasting(async (data) => {
      const { admin } = await start(data)
      const blind = { inbound: [{ expressions: ["conn.tls.version == '1.3'"], actions: [{ type: 'deny' }] }] }
      const { id } = await admin.create('/edges/tls', { tls_termination: { terminate_at: 'edge' }, policy: blind })
      const path = `/edges/tls/${id}`
      await spoilModules(data.databaseUrl)
      // Whether the policy would lose its facts is unknown.
      const upstream = { body: { terminate_at: 'upstream' } }
      await admin.refused('ERR_SECRET_UNREADABLE', 'PUT', `${path}/tls_termination`, upstream)
      await admin.put(`${path}/policy`, blind)
      await admin.refused('ERR_MODULE_NEEDS_TERMINATION', 'PUT', `${path}/tls_termination`, upstream)
      assert.deepEqual((await admin.get(path)).policy.inbound[0].expressions, blind.inbound[0]?.expressions)
    }))

  test('a server that still has the old key refuses to store secrets', () =>
    lasting(async (data) => {
      const platform = await start(data)
      const path = await makeRoute(platform)
      await rotate(data)
      await platform.admin.refused('ERR_KEY_ROTATED', 'PUT', `${path}/oidc`, { body: oidc })
      await platform.admin.refused('ERR_KEY_ROTATED', 'PUT', `${path}/oauth`, { body: oauth })
      const [, edgePath = ''] = /^(.*\/routes)/.exec(path) ?? []
      const route = { match_type: 'exact_path', match: '/new' }
      await platform.admin.refused('ERR_KEY_ROTATED', 'POST', edgePath, { body: { ...route, oidc } })
      await platform.admin.refused('ERR_KEY_ROTATED', 'GET', path)
      await platform.admin.create(edgePath, route)
      await platform.admin.put(`${path}/compression`, {})
      await platform.stop()
      const again = await start(data)
      await assertReadable(again, path)
      await again.stop()
    }))
})

/** Changes all sealed values of modules, so that no key opens them. */
async function spoilModules(databaseUrl: string): Promise<void> {
  await changeDatabase(databaseUrl, ["UPDATE modules SET config = replace(config, 'sealed:2:', 'sealed:2x:')"])
}
