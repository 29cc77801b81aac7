/** SSH certificate authorities and certificates: options, defaults, and refusals. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { readSshCertificate } from '../../src/lib/ssh-keys/ssh-certificate.ts'
import { readSshPublicKey } from '../../src/lib/ssh-keys/ssh-public-key.ts'
import { ApiClient, type Json } from '../support/api-client.ts'
import { newPublicKey, openSshLine, rfc4716 } from './ssh-keys.ts'
import { eachTarget, unique } from './target.ts'
import { unknownId, World } from './world.ts'

const authorities = '/ssh_certificate_authorities'
const CERTIFICATES = ['/ssh_user_certificates', '/ssh_host_certificates'] as const
const DAY_MS = 24 * 60 * 60 * 1000

const newLine = () => openSshLine(newPublicKey('ed25519'))
const read = ({ certificate }: Json) =>
  readSshCertificate(Buffer.from(String(certificate).split(' ')[1] ?? '', 'base64'))

eachTarget((target) => {
  let world: World
  let ca: Json
  before(async () => {
    world = new World(target.api)
    ca = await target.api.create(authorities)
  })
  const body = (more: Json = {}) => ({ ssh_certificate_authority_id: ca.id, public_key: newLine(), ...more })

  describe('an SSH certificate authority', () => {
    const choices: [body: Json, type: string, key: string][] = [
      [{}, 'ssh-ed25519', 'ed25519'],
      [{ private_key_type: 'ed25519' }, 'ssh-ed25519', 'ed25519'],
      [{ private_key_type: 'ecdsa' }, 'ecdsa-sha2-nistp256', 'ecdsa'],
      [{ private_key_type: 'ecdsa', elliptic_curve: 'p384' }, 'ecdsa-sha2-nistp384', 'ecdsa'],
      [{ private_key_type: 'ecdsa', elliptic_curve: 'p521' }, 'ecdsa-sha2-nistp521', 'ecdsa'],
      [{ private_key_type: 'rsa', key_size: 2048 }, 'ssh-rsa', 'rsa'],
      [{ private_key_type: 'rsa', key_size: 3072 }, 'ssh-rsa', 'rsa'],
      [{ private_key_type: 'rsa' }, 'ssh-rsa', 'rsa'],
    ]
    for (const [sent, type, keyType] of choices) {
      // Keys are made and used before the store sees them as text, so one store is enough for all but one kind.
      if (target.name === 'postgres' && keyType !== 'ecdsa') continue
      test(`${JSON.stringify(sent)} makes a key of type ${type}, which signs`, async () => {
        const made = await target.api.create(authorities, sent)
        assert.equal(made.key_type, keyType)
        const key = readSshPublicKey(made.public_key)
        assert.equal(key.type, type)
        if (keyType === 'rsa') {
          const bytes = key.blob.readUInt32BE(4 + 7 + 4 + 3) - 1
          assert.equal(bytes * 8, sent.key_size ?? 4096)
        }
        for (const path of CERTIFICATES) {
          const signed = await target.api.create(path, body({ ssh_certificate_authority_id: made.id }))
          assert.deepEqual(read(signed).authorityBlob, key.blob)
        }
      })
    }

    const refused: [body: Json, code: string, field: string][] = [
      [{ private_key_type: 'dsa' }, 'ERR_INVALID_VALUE', 'private_key_type'],
      [{ private_key_type: 'rsa', key_size: 1024 }, 'ERR_INVALID_VALUE', 'key_size'],
      [{ private_key_type: 'rsa', key_size: '2048' }, 'ERR_INVALID_VALUE', 'key_size'],
      [{ private_key_type: 'rsa', key_size: 1e9 }, 'ERR_INVALID_VALUE', 'key_size'],
      [{ private_key_type: 'ecdsa', elliptic_curve: 'secp256k1' }, 'ERR_INVALID_VALUE', 'elliptic_curve'],
      [{ key_size: 2048 }, 'ERR_KEY_SIZE_NOT_ALLOWED', 'key_size'],
      [{ private_key_type: 'rsa', elliptic_curve: 'p256' }, 'ERR_CURVE_NOT_ALLOWED', 'elliptic_curve'],
      [{ private_key: 'x' }, 'ERR_UNKNOWN_FIELD', 'private_key'],
      [{ public_key: 'x' }, 'ERR_UNKNOWN_FIELD', 'public_key'],
    ]
    for (const [sent, code, field] of refused) {
      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres') continue
      test(`${JSON.stringify(sent)} is refused`, async () => {
        const { msg } = await target.api.refused(code, 'POST', authorities, { body: sent })
        assert.ok(msg.includes(`\`${field}\``), msg)
      })
    }

    test('never shows its private key', async () => {
      const { path, body: made } = await world.make('ssh_certificate_authority')
      const updated = (await target.api.send('PATCH', path, { body: { metadata: 'm' } })).body
      for (const shown of [made, updated, await target.api.get(path), await target.api.get(authorities)]) {
        assert.doesNotMatch(JSON.stringify(shown), /private|PRIVATE|sealed/)
      }
      // An update does not make a new key.
      assert.equal(updated.public_key, made.public_key)
    })

    test('cannot be deleted while one of its certificates exists', async () => {
      for (const path of CERTIFICATES) {
        const { id } = await target.api.create(authorities)
        const signed = await target.api.create(path, body({ ssh_certificate_authority_id: id }))
        const { msg, status_code } = await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', `${authorities}/${id}`)
        assert.equal(status_code, 409)
        assert.ok(msg.includes(signed.id), msg)
        await target.api.delete(`${path}/${signed.id}`)
        await target.api.delete(`${authorities}/${id}`)
      }
    })
  })

  describe('an SSH certificate', () => {
    const usual = [
      ['/ssh_user_certificates', DAY_MS],
      ['/ssh_host_certificates', 365 * DAY_MS],
    ] as const
    for (const [path, ms] of usual) {
      test(`of ${path} is valid from now on for the default time, unless the body says otherwise`, async () => {
        const began = Math.floor(Date.now() / 1000) * 1000
        const made = await target.api.create(path, body())
        assert.deepEqual(made.principals, [])
        assert.ok(began <= Date.parse(made.valid_after) && made.valid_after <= made.created_at, made.valid_after)
        assert.equal(Date.parse(made.valid_until) - Date.parse(made.valid_after), ms)
        const { kind, validAfter, validBefore, keyId, principals } = read(made)
        assert.deepEqual(
          [kind, validAfter, validBefore, keyId, principals],
          [path.includes('user') ? 'user' : 'host', seconds(made.valid_after), seconds(made.valid_until), made.id, []],
        )
        const later = await target.api.create(path, body({ valid_after: '2090-01-01T00:00:00.9+01:00' }))
        assert.equal(later.valid_after, '2089-12-31T23:00:00Z')
        assert.equal(Date.parse(later.valid_until) - Date.parse(later.valid_after), ms)
      })

      test(`of ${path} holds what was sent, for each kind of key and form of it`, async () => {
        for (const type of ['ed25519', 'ecdsa', 'rsa'] as const) {
          const key = newPublicKey(type)
          for (const public_key of [openSshLine(key), rfc4716(key)]) {
            const made = await target.api.create(path, body({ public_key, principals: ['b', 'a'] }))
            assert.deepEqual([made.key_type, made.public_key], [type, public_key])
            const { keyBlob, principals } = read(made)
            assert.deepEqual(principals, ['b', 'a'])
            assert.deepEqual(keyBlob, readSshPublicKey(public_key).blob)
          }
        }
      })

      const refused: [what: string, body: Json, code: string, says: RegExp][] = [
        ['the end before the start', { valid_until: '2001-01-01T00:00:00Z' }, 'ERR_BAD_VALIDITY', /valid_until/],
        [
          'an empty period',
          { valid_after: '2040-01-01T00:00:00.1Z', valid_until: '2040-01-01T00:00:00.9Z' },
          'ERR_BAD_VALIDITY',
          /later/,
        ],
        ['an invalid time', { valid_after: 'tomorrow' }, 'ERR_INVALID_VALUE', /`valid_after` .*RFC 3339/],
        ['a time before the earliest', { valid_after: '1969-01-01T00:00:00Z' }, 'ERR_INVALID_VALUE', /1970/],
        ['a time after the latest', { valid_until: '9999-12-31T23:59:59-00:01' }, 'ERR_INVALID_VALUE', /9999/],
        ['an invalid key', { public_key: 'ssh-ed25519 AAAA' }, 'ERR_BAD_PUBLIC_KEY', /`public_key`/],
        ['an empty principal', { principals: [''] }, 'ERR_INVALID_VALUE', /principals\[0\]/],
        ['too many principals', { principals: Array(257).fill('a') }, 'ERR_INVALID_VALUE', /256/],
        ['a long principal', { principals: ['a'.repeat(256)] }, 'ERR_FIELD_TOO_LONG', /principals\[0\]/],
        ['too much of all', { principals: Array(200).fill('a'.repeat(200)) }, 'ERR_INVALID_VALUE', /at most 30720/],
        [
          'an unknown authority',
          { ssh_certificate_authority_id: unknownId('sshca_') },
          'ERR_UNKNOWN_REFERENCE',
          /sshca_/,
        ],
      ]
      for (const [what, more, code, says] of refused) {
        // Refused before the store is used, but for what it has to find.
        if (target.name === 'postgres' && code !== 'ERR_UNKNOWN_REFERENCE') continue
        test(`of ${path} with ${what} is refused`, async () => {
          assert.match((await target.api.refused(code, 'POST', path, { body: body(more) })).msg, says)
        })
      }

      test(`of ${path} needs its authority and its key`, async () => {
        for (const field of ['ssh_certificate_authority_id', 'public_key']) {
          const { [field]: _, ...rest } = body() as Record<string, unknown>
          const { msg } = await target.api.refused('ERR_FIELD_REQUIRED', 'POST', path, { body: rest })
          assert.match(msg, RegExp(`\`${field}\``))
        }
      })

      test(`of ${path} needs an SSH certificate authority, and cannot certify the authority's own key`, async () => {
        const { id } = await world.shared('certificate_authority')
        await target.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', path, {
          body: body({ ssh_certificate_authority_id: id }),
        })
        const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'POST', path, {
          body: body({ public_key: ca.public_key }),
        })
        assert.match(msg, /authority itself/)
      })

      test(`of ${path} does not change with its description`, async () => {
        const made = await target.api.create(path, body())
        const { status, body: after } = await target.api.send('PATCH', `${path}/${made.id}`, {
          body: { description: 'other', metadata: 'too' },
        })
        assert.equal(status, 200)
        assert.deepEqual(after, { ...made, description: 'other', metadata: 'too' })
      })
    }
  })

  describe('an SSH user certificate', () => {
    const path = '/ssh_user_certificates'

    test('permits little by default, and otherwise exactly what is requested', async () => {
      const cases: [sent: Json, extensions: Json][] = [
        [{}, { 'permit-pty': '', 'permit-user-rc': '' }],
        [{ extensions: {} }, {}],
        [{ extensions: { zzz: '', 'permit-pty': '', 'a@b.c': 'd' } }, { zzz: '', 'permit-pty': '', 'a@b.c': 'd' }],
      ]
      for (const [sent, extensions] of cases) {
        const made = await target.api.create(path, body(sent))
        assert.deepEqual(made.extensions, extensions)
        assert.deepEqual({ ...read(made).extensions }, extensions)
      }
    })

    test('holds its critical options', async () => {
      const critical_options = {
        'force-command': '/bin/date -u',
        'source-address': '10.0.0.0/8,192.0.2.1,::1',
        'x@y': '',
      }
      const made = await target.api.create(path, body({ critical_options }))
      assert.deepEqual(made.critical_options, critical_options)
      assert.deepEqual({ ...read(made).criticalOptions }, critical_options)
    })

    const bad: [what: string, body: Json, says: RegExp][] = [
      ['an invalid network', { critical_options: { 'source-address': '10.0.0.1/8' } }, /10\.0\.0\.0\/8/],
      ['a host name', { critical_options: { 'source-address': 'example.com' } }, /addresses and networks/],
      ['spaces between addresses', { critical_options: { 'source-address': '10.0.0.1, 10.0.0.2' } }, /commas/],
      ['no address', { critical_options: { 'source-address': '' } }, /empty/],
      ['no command', { critical_options: { 'force-command': '' } }, /empty/],
      ['an option without a name', { critical_options: { '': 'x' } }, /without a name/],
      ['an extension without a name', { extensions: { '': 'x' } }, /without a name/],
      ['too many options', { critical_options: many(65) }, /64/],
      ['too many extensions', { extensions: many(65) }, /64/],
    ]
    for (const [what, more, says] of bad) {
      if (target.name === 'postgres') continue
      test(`with ${what} is refused`, async () => {
        assert.match((await target.api.refused('ERR_INVALID_VALUE', 'POST', path, { body: body(more) })).msg, says)
      })
    }

    test('cannot name an SSH credential of another owner, nor an unknown one', async () => {
      const { id: botId } = await target.api.create('/bot_users', { name: unique('bot') })
      const { token } = await target.api.create('/api_keys', { owner_id: botId })
      const bot = new ApiClient(target.url, token)
      const mine = await bot.create('/ssh_credentials', { public_key: newLine() })
      const theirs = await target.api.create('/ssh_credentials', { public_key: newLine() })
      await bot.create(path, body({ principals: ['root', mine.id] }))
      // An admin may name any.
      await target.api.create(path, body({ principals: [mine.id, theirs.id] }))
      const unknown = unknownId('sshcr_')
      const messages = []
      for (const [api, id] of [
        [bot, theirs.id],
        [bot, unknown],
        [target.api, unknown],
        [target.api, 'sshcr_x'],
      ] as const) {
        const { msg, status_code } = await api.refused('ERR_UNKNOWN_REFERENCE', 'POST', path, {
          body: body({ principals: ['root', mine.id, id] }),
        })
        assert.equal(status_code, 400)
        messages.push(msg.replace(id, ''))
      }
      assert.equal(new Set(messages).size, 1)
      // Certificates do not protect the credentials that they name from deletion.
      await bot.delete(`/ssh_credentials/${mine.id}`)
    })
  })
})

function many(count: number): Json {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`x${i}@example.com`, '']))
}

function seconds(text: string): bigint {
  return BigInt(Date.parse(text) / 1000)
}
