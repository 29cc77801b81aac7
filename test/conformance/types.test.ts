/** Types that the contract leaves open: lists of Ref, rules, keys, ACLs and tokens (D15 to D20). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { ApiClient } from '../support/api-client.ts'
import { newPublicKey, openSshLine, rfc4716, rsaLineOf, type SshKeyType } from './ssh-keys.ts'
import { eachTarget } from './target.ts'
import { World } from './world.ts'

const deny = { type: 'deny', config: {} }

const goodRules = [
  '*',
  'bind:*',
  'bind:example.com',
  'bind:*.example.com',
  'bind:tcp.example.com:20001',
  'bind:app=shop',
  'bind:app=*',
  'bind:*=blue',
  'bind:*=*',
]
const badRules = [
  '',
  'example.com',
  'deny:example.com',
  'bind:',
  'BIND:example.com',
  'bind:a*.example.com',
  'bind:a.*.example.com',
  'bind:exa mple.com',
  'bind:example.com:0',
  'bind:example.com:65536',
  'bind:app=',
  'bind:=shop',
  'bind:a=b=c',
  'bind:ap*=shop',
  '**',
]

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  test('references of modules are lists where there may be several, and one Ref otherwise', async () => {
    const ipPolicy = await world.make('ip_policy')
    const authority = await world.make('certificate_authority')
    const group = await world.make('tunnel_group_backend')
    const edge = await world.make('tls_edge', {
      ip_restriction: { ip_policy_ids: [ipPolicy.id] },
      mutual_tls: { certificate_authority_ids: [authority.id] },
      backend: { backend_id: group.id },
    })
    assert.deepEqual(edge.body.ip_restriction.ip_policies, [ipPolicy.ref])
    assert.deepEqual(edge.body.mutual_tls.certificate_authorities, [authority.ref])
    assert.deepEqual(edge.body.backend.backend, group.ref)
    assert.deepEqual(group.body.tunnels, [])
    for (const ref of [ipPolicy, authority, group]) {
      assert.equal((await target.api.get(new URL(ref.ref.uri).pathname)).id, ref.id)
    }
  })

  for (const [module, field] of [
    ['ip_restriction', 'ip_policy_ids'],
    ['mutual_tls', 'certificate_authority_ids'],
  ] as const) {
    test(`${module} takes a list of ids, each once and at least one`, async () => {
      const { path } = await world.make('tls_edge')
      const { id } = await world.make(module === 'mutual_tls' ? 'certificate_authority' : 'ip_policy')
      for (const value of [id, [], [id, id], { id }, [{ id }]]) {
        const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/${module}`, {
          body: { [field]: value },
        })
        assert.ok(msg.includes(`\`${field}`), msg)
      }
      await target.api.refused('ERR_FIELD_REQUIRED', 'PUT', `${path}/${module}`, { body: {} })
    })
  }

  test('a single rule and a single action become lists of one', async () => {
    const { path } = await world.make('https_edge_route')
    const rule = { name: 'n', expressions: ['true'], actions: deny }
    const shown = [{ name: 'n', expressions: ['true'], actions: [deny] }]
    const outbound = { actions: { type: 'log', config: { metadata: { a: 'b' } } } }
    const put = await target.api.put(`${path}/policy`, { inbound: rule, outbound })
    assert.deepEqual(put.inbound, shown)
    assert.deepEqual(put.outbound, [{ name: '', expressions: [], actions: [outbound.actions] }])
    assert.deepEqual((await target.api.update(path, { policy: { inbound: [rule] } })).policy.inbound, shown)
    const edge = await world.make('tcp_edge', { policy: { inbound: rule } })
    assert.deepEqual(edge.body.policy.inbound, shown)
  })

  describe('public_key', () => {
    for (const type of ['ed25519', 'ecdsa', 'rsa'] satisfies SshKeyType[]) {
      // A key is claimed by its digest, so one type is enough for the second store.
      if (target.name === 'postgres' && type !== 'ed25519') continue
      test(`${type}: every form is accepted, echoed unchanged, and counts as the same key`, async () => {
        const key = newPublicKey(type)
        const forms = [
          openSshLine(key),
          openSshLine(key, ''),
          openSshLine(key, 'another comment'),
          rfc4716(key),
          key.export({ type: 'spki', format: 'pem' }).toString(),
          ...(type === 'rsa' ? [key.export({ type: 'pkcs1', format: 'pem' }).toString()] : []),
        ]
        for (const public_key of forms) {
          const { path, body } = await world.make('ssh_credential', { public_key })
          assert.equal(body.public_key, public_key)
          assert.equal((await target.api.get(path)).public_key, public_key)
          for (const again of forms) {
            const { status_code } = await target.api.refused('ERR_PUBLIC_KEY_IN_USE', 'POST', '/ssh_credentials', {
              body: { public_key: again },
            })
            assert.equal(status_code, 409)
          }
          await target.api.delete(path)
        }
      })
    }

    const privateKey = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v\n-----END PRIVATE KEY-----\n'
    const refused: Readonly<Record<string, () => unknown>> = {
      'an empty string': () => '',
      words: () => 'my key',
      'a line of an unknown type': () => 'ssh-foo AAAAB3NzaC1yc2E',
      'a broken line': () => openSshLine(newPublicKey('ed25519')).slice(0, 40),
      'RSA of 1024 bits': () => openSshLine(newPublicKey('rsa', 1024)),
      'RSA of 8200 bits': () => rsaLineOf(8200),
      'a private key': () => privateKey,
      'two lines': () => `${openSshLine(newPublicKey('ed25519'))}\n${openSshLine(newPublicKey('ed25519'))}`,
    }
    for (const [what, value] of Object.entries(refused)) {
      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres') continue
      test(`${what} is refused`, async () => {
        const { msg, status_code } = await target.api.refused('ERR_BAD_PUBLIC_KEY', 'POST', '/ssh_credentials', {
          body: { public_key: value() },
        })
        assert.equal(status_code, 400)
        assert.match(msg, /`public_key`/)
        assert.ok(!msg.includes('MC4CAQ'), msg)
      })
    }

    test('is required at creation and cannot be changed', async () => {
      await target.api.refused('ERR_FIELD_REQUIRED', 'POST', '/ssh_credentials', { body: {} })
      const { path } = await world.make('ssh_credential')
      const body = { public_key: openSshLine(newPublicKey('ed25519')) }
      await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body })
    })
  })

  for (const kind of ['ssh_credential', 'credential'] as const) {
    // Both have the same field, so one is enough for the second store.
    if (target.name === 'postgres' && kind === 'ssh_credential') continue
    describe(`acl of ${kind}`, () => {
      test('is an empty list by default, and is cleared by an empty list', async () => {
        const { path, body } = await world.make(kind)
        assert.deepEqual(body.acl, [])
        assert.deepEqual((await target.api.update(path, { acl: ['bind:a.example.com'] })).acl, ['bind:a.example.com'])
        assert.deepEqual((await target.api.update(path, { description: 'x' })).acl, ['bind:a.example.com'])
        assert.deepEqual((await target.api.update(path, { acl: null })).acl, ['bind:a.example.com'])
        assert.deepEqual((await target.api.update(path, { acl: [] })).acl, [])
      })

      test('keeps good rules as sent', async () => {
        assert.deepEqual((await world.make(kind, { acl: goodRules })).body.acl, goodRules)
        for (const rule of goodRules) assert.deepEqual((await world.make(kind, { acl: [rule] })).body.acl, [rule])
      })

      test('refuses bad rules by their index, and changes nothing', async () => {
        const { path } = await world.make(kind, { acl: ['bind:a.example.com'] })
        for (const rule of badRules) {
          const { msg } = await target.api.refused('ERR_BAD_ACL_RULE', 'PATCH', path, { body: { acl: ['*', rule] } })
          assert.match(msg, /`acl\[1\]`/, rule)
        }
        assert.deepEqual((await target.api.get(path)).acl, ['bind:a.example.com'])
        for (const acl of ['*', [1], {}])
          await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { acl } })
      })

      test('holds 1000 rules of 1024 bytes, and no more', async () => {
        const { path } = await world.make(kind)
        const long = `bind:k=${'é'.repeat((1024 - 'bind:k='.length - 1) / 2)}x`
        assert.equal(Buffer.byteLength(long), 1024)
        const many = Array.from({ length: 1000 }, (_, i) => `bind:n=${i}`)
        assert.equal((await target.api.update(path, { acl: many })).acl.length, 1000)
        assert.deepEqual((await target.api.update(path, { acl: [long] })).acl, [long])
        await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { acl: [...many, '*'] } })
        await target.api.refused('ERR_FIELD_TOO_LONG', 'PATCH', path, { body: { acl: [`${long}x`] } })
      })
    })
  }

  describe('token', () => {
    for (const kind of ['api_key', 'credential'] as const) {
      test(`of ${kind} holds the characters of its id, and is shown once`, async () => {
        const { id, path, body } = await world.make(kind)
        const [, characters] = id.split('_')
        assert.match(body.token, RegExp(`^${characters}_[0-9A-Za-z]{27,}$`))
        assert.equal((await target.api.get(path)).token, null)
        assert.equal((await target.api.update(path, { description: 'x' })).token, null)
        const { listKey } = { api_key: { listKey: 'keys' }, credential: { listKey: 'credentials' } }[kind]
        const list = await target.api.get(path.slice(0, path.lastIndexOf('/')))
        for (const each of list[listKey]) assert.equal(each.token, null)
      })
    }

    test('of an API key opens the API; that of a credential does not', async () => {
      const key = await world.make('api_key')
      const credential = await world.make('credential')
      await new ApiClient(target.url, key.body.token).get('/api_keys')
      for (const token of [credential.body.token, key.id, `${key.body.token}x`]) {
        await new ApiClient(target.url, token).refused('ERR_UNAUTHENTICATED', 'GET', '/api_keys')
      }
      await target.api.delete(key.path)
      await new ApiClient(target.url, key.body.token).refused('ERR_UNAUTHENTICATED', 'GET', '/api_keys')
    })
  })
})
