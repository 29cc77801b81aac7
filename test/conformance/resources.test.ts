/** Every operation of contract part 4 and beyond: status, exact fields, types, and that values are stored as sent. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { before, describe, test } from 'node:test'
import type { Answer, Json } from '../support/api-client.ts'
import { makeRefs, type Refs } from './module-table.ts'
import { contractRows, type Row, rows } from './rows.ts'
import { eachTarget } from './target.ts'
import { isModuleOn, kindsOn } from './ways-to-the-store.ts'
import { type KindName, kinds, type Made, unknownId, World } from './world.ts'

test('every row of the contract is in the table', () => {
  assert.deepEqual(
    contractRows.filter((row) => !Object.hasOwn(rows, row)),
    [],
  )
})

eachTarget((target) => {
  const rowsHere = Object.entries(rows).filter(
    ([, { kind, module }]) => kind === null || (module ? isModuleOn(target, module) : kindsOn(target).includes(kind)),
  )
  let world: World
  let refs: Refs
  let ownerId: string
  const hosts = new Map<KindName, Made>()
  before(async () => {
    world = new World(target.api)
    refs = await makeRefs(world)
    ownerId = (await world.make('bot_user')).id
  })

  test('the table has every operation that the server documents, and no other', async () => {
    const { paths } = await target.api.get('/openapi.json')
    const documented = Object.entries(paths as Record<string, Record<string, unknown>>).flatMap(([path, methods]) =>
      Object.keys(methods)
        .filter((name) => /^(get|put|post|patch|delete)$/.test(name))
        .map((method) => `${method.toUpperCase()} ${path}`),
    )
    const table = 'the table has every operation that the server documents, and no other: test/conformance/rows.ts'
    assert.deepEqual(documented.sort(), Object.keys(rows).sort(), table)
  })

  describe('succeeds as the table says', () => {
    for (const [operation, row] of rowsHere) {
      // Only agents create sessions and tunnels, and only visitors log in, so only their lists can be tested here.
      if (row.kind === null && operation.includes('{id}')) continue
      if (row.testedBy !== undefined) {
        assert.ok(existsSync(row.testedBy), row.testedBy)
        continue
      }
      test(operation, async () => {
        const { answer, sent } = await perform(operation, row)
        assert.equal(answer.status, row.status, answer.text)
        if (row.shape === null) return assert.equal(answer.text, '')
        assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
        row.shape(answer.body, 'answer')
        assertKept(sent, answer.body)
      })
    }
  })

  describe('404 for an unknown id', () => {
    for (const [operation, row] of rowsHere.filter(([operation]) => operation.includes('{id}'))) {
      test(operation, async () => {
        const [method = '', path = ''] = operation.split(' ')
        const body = row.body?.({ refs, ownerId })
        const edge = path.includes('{edge_id}') ? (await world.shared('https_edge')).id : ''
        const address = path.replace('{id}', unknownId(prefixOf(path))).replace('{edge_id}', edge)
        await target.api.refused('ERR_NOT_FOUND', method, address, body && { body })
      })
    }
  })

  describe('a created resource', () => {
    for (const [operation, row] of rowsHere) {
      const { kind } = row
      if (!operation.startsWith('POST') || kind === null) continue
      test(`${kind} is read, listed and updated with the same fields, and gone once deleted`, async () => {
        const body = row.body?.({ refs, ownerId })
        const made = await world.make(kind, body)
        // Contract 2.2: the token is shown once.
        const expected = 'token' in made.body ? { ...made.body, token: null } : made.body
        assert.deepEqual(await target.api.get(made.path), expected)
        assert.deepEqual(await target.api.update(made.path, {}), expected)
        const { listKey, path } = kinds[kind]
        if (listKey) {
          const listed: Json[] = (await target.api.get(path))[listKey]
          assert.deepEqual(
            listed.find(({ id }) => id === made.id),
            expected,
          )
        }
        assert.equal(new URL(made.body.uri).pathname, made.path)
        await target.api.delete(made.path)
        await target.api.refused('ERR_NOT_FOUND', 'GET', made.path)
        await target.api.refused('ERR_NOT_FOUND', 'DELETE', made.path)
      })
    }
  })

  test('an HTTPS edge shows its routes in full, oldest first', async () => {
    const edge = await world.make('https_edge')
    const routes = [
      await world.make('https_edge_route', {}, edge),
      await world.make('https_edge_route', { user_agent_filter: {} }, edge),
    ]
    assert.deepEqual(edge.body.routes, [])
    assert.deepEqual(
      (await target.api.get(edge.path)).routes,
      routes.map(({ body }) => body),
    )
    assert.equal(routes[0]?.body.edge_id, edge.id)
    // Routes are deleted with their edge.
    await target.api.delete(edge.path)
    await target.api.refused('ERR_NOT_FOUND', 'GET', String(routes[0]?.path))
  })

  test('a rule of an IP policy needs its network, its action and its policy', async () => {
    const least = await world.least('ip_policy_rule')
    for (const field of Object.keys(least)) {
      const { [field]: _, ...rest } = least
      const { msg } = await target.api.refused('ERR_FIELD_REQUIRED', 'POST', '/ip_policy_rules', { body: rest })
      assert.match(msg, RegExp(`\`${field}\``))
    }
    const rule = await world.make('ip_policy_rule')
    for (const body of [{ action: 'deny' }, { ip_policy_id: refs.ipPolicies[0].id }]) {
      await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', rule.path, { body })
    }
  })

  /** Calls one operation on a new resource. */
  async function perform(operation: string, row: Row): Promise<{ answer: Answer; sent: Json }> {
    const [method = '', path = ''] = operation.split(' ')
    const sent = row.body?.({ refs, ownerId })
    const address = await addressOf(path, row)
    return { answer: await target.api.send(method, address, sent && { body: sent }), sent }
  }

  async function addressOf(path: string, { kind, module }: Row): Promise<string> {
    if (kind === null) return path
    if (!path.includes('{id}')) {
      // So that a list has something to show.
      await world.make(kind)
      return world.collection(kind)
    }
    if (!module) {
      const made = await world.make(kind)
      return path.includes('{edge_id}') ? made.path : path.replace('{id}', made.id)
    }
    // The last row of each module deletes it, so all can be set on one host.
    const host = hosts.get(kind) ?? (await world.make(kind))
    hosts.set(kind, host)
    const address = `${host.path}/${module.module}`
    await target.api.put(address, module.least(refs).body)
    return address
  }
})

/** Every sent field that the answer has must be shown unchanged. */
function assertKept(sent: Json, shown: Json): void {
  for (const [name, value] of Object.entries(sent ?? {})) {
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) assertKept(value, shown[name])
    else if (Object.hasOwn(shown, name)) assert.deepEqual(shown[name], value, name)
    else assert.match(name, /_ids?$|^private_key_(pem|type)$|^elliptic_curve$/)
  }
}

const prefixes: readonly (readonly [string, string])[] = [
  ['/tunnel_sessions', 'ts_'],
  ['/tunnels', 'tn_'],
  ['/api_keys', 'ak_'],
  ['/ssh_credentials', 'sshcr_'],
  ['/credentials', 'cr_'],
  ['/bot_users', 'bot_'],
  ['/service_users', 'bot_'],
  ['/users', 'usr_'],
  ['/edges/tcp', 'edgtcp_'],
  ['/edges/tls', 'edgtls_'],
  ['/edges/https/{edge_id}', 'edghtsrt_'],
  ['/edges/https', 'edghts_'],
  ['/ip_policies', 'ipp_'],
  ['/ip_policy_rules', 'ipr_'],
  ['/backends/tunnel_group', 'bkdtg_'],
  ['/backends/http_response', 'bkdhr_'],
  ['/certificate_authorities', 'ca_'],
  ['/backends/weighted', 'bkdwd_'],
  ['/backends/failover', 'bkdfo_'],
  ['/backends/static', 'bkdsc_'],
  ['/tls_certificates', 'cert_'],
  ['/reserved_addrs', 'ra_'],
  ['/reserved_domains', 'rd_'],
  ['/agent_ingresses', 'agin_'],
  ['/nodes', 'nd_'],
  ['/endpoints', 'ep_'],
  ['/app/users', 'au_'],
  ['/app/sessions', 'as_'],
  ['/exchanges', 'ex_'],
  ['/captures', 'cap_'],
  ['/ip_restrictions', 'ipx_'],
  ['/ssh_certificate_authorities', 'sshca_'],
  ['/ssh_user_certificates', 'sucrt_'],
  ['/ssh_host_certificates', 'shcrt_'],
]

function prefixOf(path: string): string {
  const found = prefixes.find(([start]) => path.startsWith(start))
  assert.ok(found, `${path} has no prefix in the table`)
  return found[1]
}
