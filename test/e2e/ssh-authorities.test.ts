/** Stored keys of SSH certificate authorities: sealed, bound to their place, and kept by rotation, restart and backup. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readSshCertificate } from '../../src/lib/ssh-keys/ssh-certificate.ts'
import { readSshPublicKey } from '../../src/lib/ssh-keys/ssh-public-key.ts'
import { openAdmin } from '../../src/server/compose/open-admin.ts'
import { readSettings } from '../../src/server/config/read-settings.ts'
import { sshPublicKey } from '../conformance/samples.ts'
import type { Json } from '../support/api-client.ts'
import { changeDatabase, queryDatabase } from '../support/change-database.ts'
import { databaseContents } from '../support/database-contents.ts'
import { eachStore } from '../support/databases.ts'
import { type Platform, type PlatformOptions, startPlatform } from '../support/platform.ts'
import { postern } from '../support/server-process.ts'

const kinds = [{}, { private_key_type: 'ecdsa' }, { private_key_type: 'rsa', key_size: 2048 }]

/** Asserts that the authority still signs with the key that it showed when it was created. */
async function assertSigns({ admin }: Platform, { id, public_key }: Json): Promise<void> {
  assert.equal((await admin.get(`/ssh_certificate_authorities/${id}`)).public_key, public_key)
  const { certificate } = await admin.create('/ssh_user_certificates', {
    ssh_certificate_authority_id: id,
    public_key: sshPublicKey(),
  })
  const { authorityBlob } = readSshCertificate(Buffer.from(String(certificate).split(' ')[1] ?? '', 'base64'))
  assert.deepEqual(authorityBlob, readSshPublicKey(public_key).blob)
}

eachStore((store) => {
  async function lasting(t: TestContext): Promise<Required<Pick<PlatformOptions, 'dataDir' | 'databaseUrl'>>> {
    const dataDir = await mkdtemp(join(tmpdir(), 'postern-ssh-ca-'))
    t.after(() => rm(dataDir, { recursive: true }))
    return { dataDir, databaseUrl: await store.url() }
  }

  async function start(t: TestContext, options: PlatformOptions): Promise<Platform> {
    const platform = await startPlatform(options)
    t.after(() => platform.stop())
    return platform
  }

  test('no key is readable in the database or the log, and all survive a rotation and a restart', async (t) => {
    const data = await lasting(t)
    const before = await start(t, data)
    const made: Json[] = []
    for (const kind of kinds) made.push(await before.admin.create('/ssh_certificate_authorities', kind))
    for (const each of made) await assertSigns(before, each)
    const contents = await databaseContents(data.databaseUrl)
    assert.ok(contents.includes(String(made[0].public_key)), 'the test looks in the right place')
    assert.doesNotMatch(contents, /PRIVATE KEY/)
    await before.stop()
    assert.doesNotMatch(before.log.join(''), /PRIVATE KEY/)

    const flags = { 'data-dir': data.dataDir, 'database-url': data.databaseUrl }
    const admin = await openAdmin(readSettings({ flags, env: {}, cwd: data.dataDir }))
    // The keys of the TLS authority and of the SSH host, and these.
    assert.equal(await admin.rotateKey(), 2 + kinds.length)
    await admin.close()
    const after = await start(t, data)
    for (const each of made) await assertSigns(after, each)
  })

  test('a key that was moved to another authority in the database signs nothing', async (t) => {
    const data = await lasting(t)
    const platform = await start(t, data)
    const { admin } = platform
    const [mine, theirs] = [
      await admin.create('/ssh_certificate_authorities'),
      await admin.create('/ssh_certificate_authorities'),
    ]
    const sealed = async ({ id }: Json): Promise<{ fields: string; key: string }> => {
      const [row] = await queryDatabase(data.databaseUrl, `SELECT fields FROM resources WHERE id = '${id}'`)
      const fields = String(row?.fields)
      return { fields, key: /sealed:2:[^"]+/.exec(fields)?.[0] ?? '' }
    }
    const [a, b] = [await sealed(mine), await sealed(theirs)]
    assert.notEqual(a.key, '')
    const moved = a.fields.replace(a.key, b.key)
    await changeDatabase(data.databaseUrl, [`UPDATE resources SET fields = '${moved}' WHERE id = '${mine.id}'`])
    for (const path of ['/ssh_user_certificates', '/ssh_host_certificates']) {
      await admin.refused('ERR_SECRET_UNREADABLE', 'POST', path, {
        body: { ssh_certificate_authority_id: mine.id, public_key: sshPublicKey() },
      })
    }
    await assertSigns(platform, theirs)
  })

  test('a backup holds authorities and certificates, and restored authorities still sign', async (t) => {
    const data = await lasting(t)
    const before = await start(t, data)
    const authority = await before.admin.create('/ssh_certificate_authorities')
    await assertSigns(before, authority)
    const listed = await before.admin.get('/ssh_user_certificates')
    await before.stop()
    const env = { POSTERN_BACKUP_PASSPHRASE: 'correct horse battery staple' }
    const file = join(data.dataDir, 'all.backup')
    const from = ['--data-dir', data.dataDir, '--database-url', data.databaseUrl]
    assert.equal((await postern(['backup', file, ...from], { env })).code, 0)
    const restored = { dataDir: join(data.dataDir, 'restored'), databaseUrl: await store.url() }
    const to = ['--data-dir', restored.dataDir, '--database-url', restored.databaseUrl]
    assert.equal((await postern(['restore', file, ...to], { env })).code, 0)
    const after = await start(t, restored)
    const [certificate] = (await after.admin.get('/ssh_user_certificates')).ssh_user_certificates
    assert.equal(certificate.certificate, listed.ssh_user_certificates[0].certificate)
    await assertSigns(after, authority)
  })
})
