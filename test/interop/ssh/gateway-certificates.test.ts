/** The gateway with user certificates, by this machine's `ssh`: who is let in, as which credential, and how long. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Json } from '../../support/api-client.ts'
import { eachStore } from '../../support/databases.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import { httpUpstream, type Owner } from '../../support/upstream.ts'
import { visit } from '../../support/visitor.ts'
import { type Key, keyFolder, makeKey, missing, type Ssh, ssh } from './openssh.ts'

const keyKinds: Readonly<Record<string, string[]>> = {
  ed25519: ['-t', 'ed25519'],
  'ecdsa-256': ['-t', 'ecdsa', '-b', '256'],
  'ecdsa-384': ['-t', 'ecdsa', '-b', '384'],
  'ecdsa-521': ['-t', 'ecdsa', '-b', '521'],
  'rsa-3072': ['-t', 'rsa', '-b', '3072'],
}

const REFUSED = /Permission denied \(publickey\)/

eachStore((store) => {
  describe('SSH certificates at the gateway', { skip: missing }, () => {
    let platform: Platform
    let folder = ''
    let authority: Json
    let key: Key
    let count = 0

    before(async () => {
      platform = await startPlatform({ databaseUrl: await store.url() })
      folder = keyFolder()
      key = makeKey(folder, 'certified')
      authority = await platform.admin.create('/ssh_certificate_authorities')
    })
    after(() => platform.stop())

    /** A credential whose key is unused: only certificates log in to it. */
    async function credential(acl: readonly string[] = []): Promise<string> {
      const { publicLine } = makeKey(folder, `credential-${count++}`)
      return (await platform.admin.create('/ssh_credentials', { public_key: publicLine, acl })).id
    }

    /** A certificate for a key, and its file. */
    async function certify(body: Json, of = key): Promise<{ id: string; file: string }> {
      const { id, certificate } = await platform.admin.create('/ssh_user_certificates', {
        ssh_certificate_authority_id: authority.id,
        public_key: of.publicLine,
        ...body,
      })
      return { id, file: saved(certificate) }
    }

    function saved(certificate: string): string {
      const file = join(folder, `${count++}-cert.pub`)
      writeFileSync(file, `${certificate}\n`)
      return file
    }

    interface Going {
      readonly of?: Key
      readonly place?: string
      readonly command?: string[]
      readonly user?: string
    }

    async function tunnel(
      t: Owner,
      file: string,
      { of = key, place = '443', command = ['http'], user }: Going = {},
    ): Promise<Ssh> {
      const service = await httpUpstream(t)
      const args = ['-o', `CertificateFile=${file}`, '-R', `${place}:${service.address}`]
      return ssh(t, platform, of, args, command, user === undefined ? {} : { user })
    }

    async function credentialsOnline(): Promise<string[]> {
      const { tunnel_sessions } = (await platform.admin.get('/tunnel_sessions')) as {
        tunnel_sessions: { credential: { id: string } }[]
      }
      return tunnel_sessions.map(({ credential: { id } }) => id)
    }

    for (const [name, options] of Object.entries(keyKinds)) {
      test(`a certificate of a ${name} key serves visitors, as the credential that it names`, async (t) => {
        const of = makeKey(folder, `key-${count++}`, options)
        const id = await credential()
        const { file } = await certify({ principals: ['root', id] }, of)
        const client = await tunnel(t, file, { of })
        assert.equal((await visit(await client.url(), platform)).status, 200)
        assert.ok((await credentialsOnline()).includes(id))
        await client.stop()
      })
    }

    for (const body of [{ private_key_type: 'ecdsa', elliptic_curve: 'p384' }, { private_key_type: 'rsa' }]) {
      test(`a certificate by an authority of ${JSON.stringify(body)} logs in too`, async (t) => {
        const { id: ssh_certificate_authority_id } = await platform.admin.create('/ssh_certificate_authorities', body)
        const { file } = await certify({ ssh_certificate_authority_id, principals: [await credential()] })
        await (await tunnel(t, file)).url()
      })
    }

    test('the ACL of the credential applies', async (t) => {
      const { file } = await certify({ principals: [await credential(['bind:mine.localhost'])] })
      const mine = await tunnel(t, file, { place: 'mine.localhost:443' })
      await mine.url()
      const other = await tunnel(t, file, { place: 'other.localhost:443' })
      await other.says(/ERR_NGROK_316/)
      assert.notEqual(await other.ended, 0)
    })

    test('of several credentials, the user name selects the one to log in as', async (t) => {
      const [one, two] = [await credential(), await credential()]
      const { file } = await certify({ principals: [one, two] })
      const unclear = await tunnel(t, file)
      await unclear.says(/several SSH credentials/)
      assert.equal(await unclear.ended, 255)
      const clear = await tunnel(t, file, { user: two })
      await clear.url()
      const online = await credentialsOnline()
      assert.ok(online.includes(two) && !online.includes(one))
    })

    test('a forced command runs, whatever the client requests', async (t) => {
      const principals = [await credential()]
      const { file } = await certify({
        principals,
        critical_options: { 'force-command': 'http --domain forced.localhost' },
      })
      const client = await tunnel(t, file, { command: ['tcp'] })
      assert.match(await client.url(), /^https:\/\/forced\.localhost/)
      const bad = await certify({ principals, critical_options: { 'force-command': 'rm -rf /' } })
      const refused = await tunnel(t, bad.file)
      await refused.says(/ERR_NGROK_1108/)
      assert.equal(await refused.ended, 1)
    })

    test('a certificate for the address of the client logs in', async (t) => {
      const principals = [await credential()]
      const { file } = await certify({ principals, critical_options: { 'source-address': '127.0.0.1' } })
      await (await tunnel(t, file)).url()
    })

    const shut: [what: string, body: Json, says: RegExp][] = [
      ['for other addresses', { critical_options: { 'source-address': '192.0.2.0/24' } }, /address/],
      ['with an unknown option', { critical_options: { 'dance@example.com': '' } }, /critical option/],
      ['without principals', { principals: [] }, /names no SSH credential/],
      ['for other users', { principals: ['root'] }, /names no SSH credential/],
      ['that has expired', { valid_after: '2020-01-01T00:00:00Z', valid_until: '2021-01-01T00:00:00Z' }, REFUSED],
    ]
    for (const [what, body, says] of shut) {
      test(`a certificate ${what} is refused`, async (t) => {
        const { file } = await certify({ principals: [await credential()], ...body })
        const client = await tunnel(t, file)
        await client.says(says)
        assert.equal(await client.ended, 255)
        assert.match(client.err(), REFUSED)
      })
    }

    test('a certificate of a foreign authority, and one of another key, are refused', async (t) => {
      const id = await credential()
      const foreign = makeKey(folder, `foreign-${count++}`)
      const subject = makeKey(folder, `subject-${count++}`)
      execFileSync('ssh-keygen', ['-q', '-s', foreign.file, '-I', 'me', '-n', id, `${subject.file}.pub`])
      const client = await tunnel(t, `${subject.file}-cert.pub`, { of: subject })
      await client.says(/issued this certificate/)
      assert.equal(await client.ended, 255)
      const { file } = await certify({ principals: [id] })
      const other = await tunnel(t, file, { of: makeKey(folder, `other-${count++}`) })
      assert.equal(await other.ended, 255)
    })

    test('a deleted certificate no longer logs in, and its sessions end', async (t) => {
      const id = await credential()
      const [doomed, spared] = [await certify({ principals: [id] }), await certify({ principals: [id] })]
      const [gone, staying] = [await tunnel(t, doomed.file), await tunnel(t, spared.file)]
      await Promise.all([gone.url(), staying.url()])
      // A new description does not affect the session.
      await platform.admin.send('PATCH', `/ssh_user_certificates/${doomed.id}`, { body: { description: 'doomed' } })
      await platform.admin.delete(`/ssh_user_certificates/${doomed.id}`)
      await gone.says(/SSH certificate was deleted/)
      assert.equal(await gone.ended, 255)
      const again = await tunnel(t, doomed.file)
      await again.says(/or it was deleted/)
      assert.equal(await again.ended, 255)
      assert.equal((await visit(await staying.url(), platform)).status, 200)
    })

    test('deleting a credential ends the sessions that certificates started for it', async (t) => {
      const id = await credential()
      const { file } = await certify({ principals: [id] })
      const client = await tunnel(t, file)
      await client.url()
      await platform.admin.delete(`/ssh_credentials/${id}`)
      await client.says(/credential was deleted/)
      const again = await tunnel(t, file)
      await again.says(/does not name an SSH credential/)
      assert.equal(await again.ended, 255)
    })
  })
})
