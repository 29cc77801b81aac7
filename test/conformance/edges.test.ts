/** References between resources: unknown ids, delete protection, IP policy rules, CAs, route matches (D28, D28a, D41). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { EXAMPLE_ROOT, LEAF, OTHER_ROOT } from './certificates.ts'
import type { HostKind } from './module-table.ts'
import { eachTarget, unique } from './target.ts'
import { isModuleOn } from './ways-to-the-store.ts'
import { type KindName, unknownId, World } from './world.ts'

interface Reference {
  readonly hosts: readonly HostKind[]
  readonly module: string
  /** The field, as messages name it. */
  readonly field: string
  readonly named: string
  readonly kind: KindName
  readonly prefix: string
}

const references: readonly Reference[] = [
  {
    hosts: ['tcp_edge', 'tls_edge', 'https_edge_route'],
    module: 'backend',
    field: 'backend_id',
    named: 'backend_id',
    kind: 'tunnel_group_backend',
    prefix: 'bkdtg_',
  },
  {
    hosts: ['https_edge_route'],
    module: 'backend',
    field: 'backend_id',
    named: 'backend_id',
    kind: 'http_response_backend',
    prefix: 'bkdhr_',
  },
  {
    hosts: ['tcp_edge', 'tls_edge', 'https_edge_route'],
    module: 'ip_restriction',
    field: 'ip_policy_ids',
    named: 'ip_policy_ids[0]',
    kind: 'ip_policy',
    prefix: 'ipp_',
  },
  {
    hosts: ['tls_edge', 'https_edge'],
    module: 'mutual_tls',
    field: 'certificate_authority_ids',
    named: 'certificate_authority_ids[0]',
    kind: 'certificate_authority',
    prefix: 'ca_',
  },
]

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  for (const { hosts, module, field, named, kind, prefix } of references) {
    const config = (id: string) => ({ [field]: field.endsWith('s') ? [id] : id })
    for (const host of hosts) {
      if (!isModuleOn(target, { host, module })) continue
      describe(`${module} of ${host} naming a ${kind}`, () => {
        test('refuses an unknown id or one of another kind, names it, and changes nothing', async () => {
          const edge = await world.make(host)
          const other = (await world.shared(host === 'https_edge' ? 'ip_policy' : 'api_key')).id
          const gone = await world.make(kind)
          await target.api.delete(gone.path)
          for (const id of [unknownId(prefix), gone.id, other, 'nonsense', `${unknownId(prefix)}0`]) {
            const tries = [
              ['POST', await world.collection(host), { ...(await world.least(host)), [module]: config(id) }],
              ['PATCH', edge.path, { description: 'new', [module]: config(id) }],
              ['PUT', `${edge.path}/${module}`, config(id)],
            ] as const
            for (const [method, path, body] of tries) {
              const { msg, status_code } = await target.api.refused('ERR_UNKNOWN_REFERENCE', method, path, { body })
              assert.equal(status_code, 400)
              assert.ok(msg.includes(`\`${method === 'PUT' ? '' : `${module}.`}${named}\``), msg)
              assert.ok(msg.includes(id), msg)
            }
          }
          assert.deepEqual(await target.api.get(edge.path), edge.body)
        })

        test('protects it from deletion as long as it refers to it', async () => {
          const named = await world.make(kind)
          const edge = await world.make(host)
          const isProtected = async () => {
            const { msg, status_code } = await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', named.path)
            assert.equal(status_code, 409)
            assert.ok(msg.includes(edge.id), msg)
            assert.deepEqual(await target.api.get(named.path), named.body)
          }
          await target.api.put(`${edge.path}/${module}`, { enabled: false, ...config(named.id) })
          await isProtected()
          await target.api.put(`${edge.path}/${module}`, config((await world.make(kind)).id))
          await target.api.update(edge.path, { [module]: config(named.id) })
          await isProtected()
          await target.api.delete(`${edge.path}/${module}`)
          await target.api.delete(named.path)
        })

        test('no longer protects it once the host is deleted', async () => {
          const named = await world.make(kind)
          const edge = await world.make(host, { [module]: config(named.id) })
          await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', named.path)
          await target.api.delete(edge.path)
          await target.api.delete(named.path)
        })
      })
    }
  }

  test('an HTTP response cannot serve a raw connection', async () => {
    const { id } = await world.make('http_response_backend')
    for (const path of ['/edges/tcp', '/edges/tls']) {
      await target.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', path, { body: { backend: { backend_id: id } } })
    }
  })

  test('deleting an edge releases what its routes refer to', async () => {
    const group = await world.make('tunnel_group_backend')
    const edge = await world.make('https_edge')
    await world.make('https_edge_route', { backend: { backend_id: group.id } }, edge)
    await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', group.path)
    await target.api.delete(edge.path)
    await target.api.delete(group.path)
  })

  describe('IP policies and their rules', () => {
    test('deleting a policy deletes its rules, and no others', async () => {
      const policies = [await world.make('ip_policy'), await world.make('ip_policy')] as const
      const [mine, theirs] = [
        await world.make('ip_policy_rule', { ip_policy_id: policies[0].id }),
        await world.make('ip_policy_rule', { ip_policy_id: policies[1].id }),
      ]
      assert.deepEqual(mine.body.ip_policy, policies[0].ref)
      await target.api.delete(policies[0].path)
      await target.api.refused('ERR_NOT_FOUND', 'GET', mine.path)
      const { ip_policy_rules } = await target.api.get('/ip_policy_rules')
      assert.ok(!ip_policy_rules.some(({ id }: { id: string }) => id === mine.id))
      assert.deepEqual(await target.api.get(theirs.path), theirs.body)
    })

    test('a rule names a policy that exists', async () => {
      for (const ip_policy_id of [unknownId('ipp_'), (await world.make('tcp_edge')).id, 'x']) {
        const body = { cidr: '10.0.0.0/8', action: 'allow', ip_policy_id }
        const { msg } = await target.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', '/ip_policy_rules', { body })
        assert.ok(msg.includes('`ip_policy_id`') && msg.includes(ip_policy_id), msg)
      }
    })

    test('a rule has a network and an action', async () => {
      const ip_policy_id = (await world.make('ip_policy')).id
      for (const cidr of ['10.0.0.0', '10.0.0.1/8', '10.0.0.0/33', 'x/8', '::1/64', '10.0.0/8', '']) {
        const body = { cidr, action: 'allow', ip_policy_id }
        const { msg } = await target.api.refused('ERR_BAD_CIDR', 'POST', '/ip_policy_rules', { body })
        assert.match(msg, /`cidr`/)
      }
      for (const action of ['permit', 'Allow', '', 1]) {
        const body = { cidr: '10.0.0.0/8', action, ip_policy_id }
        const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'POST', '/ip_policy_rules', { body })
        assert.match(msg, /`action`.*`allow`.*`deny`/)
      }
      for (const cidr of ['10.0.0.0/8', '0.0.0.0/0', '::/0', '2001:db8::/32', '192.0.2.7/32']) {
        assert.equal((await world.make('ip_policy_rule', { cidr, ip_policy_id })).body.cidr, cidr)
      }
    })
  })

  describe('certificate authorities', () => {
    test('describe the first of their certificates, and keep the text as sent', async () => {
      const ca_pem = `first\n${EXAMPLE_ROOT}\n${OTHER_ROOT}`
      const { body } = await world.make('certificate_authority', { ca_pem })
      assert.equal(body.ca_pem, ca_pem)
      assert.equal(body.subject_common_name, 'Example Root')
      assert.equal(body.not_before, '2026-11-15T02:34:36Z')
      assert.equal(body.not_after, '2046-11-10T02:34:36Z')
      assert.equal(body.key_usages.length, 3)
      assert.equal(body.extended_key_usages.length, 2)
      const other = await world.make('certificate_authority', { ca_pem: OTHER_ROOT })
      assert.equal(other.body.subject_common_name, 'Other Root')
    })

    test('hold 64 certificates, and no more', async () => {
      await world.make('certificate_authority', { ca_pem: OTHER_ROOT.repeat(64) })
      await refuses(OTHER_ROOT.repeat(65))
    })

    const refused: Readonly<Record<string, string>> = {
      'an empty string': '',
      words: 'my certificate',
      'a certificate that is not a CA': LEAF,
      'one that is not a CA among others': `${EXAMPLE_ROOT}${LEAF}`,
      'a certificate cut short': EXAMPLE_ROOT.slice(0, 200),
      'a certificate with a changed byte': EXAMPLE_ROOT.replace('MIIB', 'MIIC'),
      'a private key': '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v\n-----END PRIVATE KEY-----\n',
    }
    for (const [what, ca_pem] of Object.entries(refused)) {
      // Refused before the store is used, so one store is enough.
      if (target.name !== 'postgres') test(`refuse ${what}`, () => refuses(ca_pem))
    }

    test('refuse more than 256 KiB', async () => {
      const padding = 'x'.repeat(256 * 1024 - Buffer.byteLength(EXAMPLE_ROOT) - 1)
      await world.make('certificate_authority', { ca_pem: `${padding}\n${EXAMPLE_ROOT}` })
      const body = { ca_pem: `${padding}x\n${EXAMPLE_ROOT}` }
      const { msg } = await target.api.refused('ERR_FIELD_TOO_LONG', 'POST', '/certificate_authorities', { body })
      assert.match(msg, /`ca_pem`/)
    })

    async function refuses(ca_pem: string): Promise<void> {
      const { msg, status_code } = await target.api.refused('ERR_BAD_CERTIFICATE', 'POST', '/certificate_authorities', {
        body: { ca_pem },
      })
      assert.equal(status_code, 400)
      assert.match(msg, /`ca_pem`/)
      assert.ok(!msg.includes('MC4CAQ'), msg)
    }
  })

  describe('routes', () => {
    test('of one edge must have different matches, whatever their types', async () => {
      const edge = await world.make('https_edge')
      const match = `/${unique('shop')}`
      const route = await world.make('https_edge_route', { match_type: 'path_prefix', match }, edge)
      for (const match_type of ['path_prefix', 'exact_path']) {
        const { status_code, msg } = await target.api.refused('ERR_ROUTE_MATCH_IN_USE', 'POST', `${edge.path}/routes`, {
          body: { match_type, match },
        })
        assert.equal(status_code, 409)
        assert.match(msg, /`match`/)
      }
      const other = await world.make('https_edge_route', {}, edge)
      await target.api.refused('ERR_ROUTE_MATCH_IN_USE', 'PATCH', other.path, { body: { description: 'new', match } })
      assert.deepEqual(await target.api.get(other.path), other.body)
      // Paths are compared exactly, and case matters.
      for (const near of [match.toUpperCase(), `${match}/`, `${match}/a`]) {
        await world.make('https_edge_route', { match: near }, edge)
      }
      await target.api.update(route.path, { match, match_type: 'exact_path' })
      await target.api.delete(route.path)
      assert.equal((await target.api.update(other.path, { match })).match, match)
    })

    test('of other edges may have the same match', async () => {
      for (const edge of [await world.make('https_edge'), await world.make('https_edge')]) {
        await world.make('https_edge_route', { match: '/' }, edge)
      }
    })

    test('need a match that is a path, and a known match_type', async () => {
      const edge = await world.make('https_edge')
      const refuses = async (fields: object, name: string) => {
        const body = { match: '/a', match_type: 'exact_path', ...fields }
        const { status, body: answer, text } = await target.api.send('POST', `${edge.path}/routes`, { body })
        assert.equal(status, 400, text)
        assert.ok(answer.msg.includes(`\`${name}\``), answer.msg)
      }
      for (const match of ['', 'a', 'https://example.com/', '*', undefined, 1]) await refuses({ match }, 'match')
      for (const match_type of ['regex', '', undefined, 1]) await refuses({ match_type }, 'match_type')
    })

    test('cannot be created under an edge that does not exist', async () => {
      const body = { match: '/', match_type: 'exact_path' }
      await target.api.refused('ERR_NOT_FOUND', 'POST', `/edges/https/${unknownId('edghts_')}/routes`, { body })
    })
  })
})
