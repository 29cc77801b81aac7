/**
 * The vendor's official npm client, unmodified, against a platform.
 *
 * It has limits that no server can fix: it re-spells keys of maps like field names (`X-A` is sent as `_x-_a`, `x-a`
 * comes back as `xA`). So labels and header names are safe only in lower case without `-` and `_`, and it cannot create
 * a weighted backend, whose map has ids for keys.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { sampleBody, sampleModule } from '../../conformance/samples.ts'
import { unique } from '../../conformance/target.ts'
import type { Json } from '../../support/api-client.ts'
import { eachStore } from '../../support/databases.ts'
import { openLogins } from '../../support/logins.ts'
import { type Platform, startPlatform } from '../../support/platform.ts'
import {
  collections,
  loggedIn,
  modules,
  type NpmClient,
  notServed,
  npmClient,
  present,
  ROUTES,
  type Service,
} from './npm-services.ts'

/** How many of each kind are created and read in pages of two. */
const SOME = 5
const NOWHERE = '1'.repeat(27)
const ANY_BACKEND = `bkdtg_${'A'.repeat(27)}`

eachStore((store) => {
  let platform: Platform
  let client: NpmClient
  before(async () => {
    platform = await startPlatform({ databaseUrl: await store.url() })
    client = npmClient(platform.url, platform.apiKey)
  })
  after(() => platform.stop())

  test('each of its services is tested here, or known not to be served', () => {
    const known = [collections, modules, notServed].flatMap((table) => Object.keys(table))
    assert.deepEqual([...client.names].sort(), [...known, ...present, ...loggedIn, ROUTES].sort())
  })

  for (const [name, kind] of Object.entries(collections)) {
    test(`${name}: create, get, list in pages, update, delete`, async () => {
      const service = client.service(name)
      const made: Json[] = []
      for (let i = 0; i < (kind === 'ip_restriction' ? RESTRICTED.length : SOME); i += 1) {
        made.push(await create(name, kind, i))
      }
      const ids = made.map(({ id }) => id)
      const first = await service.get(ids[0])
      // A token is shown once.
      assert.deepEqual(first, 'token' in made[0] ? { ...made[0], token: null } : made[0])

      const listed = (await service.list(undefined, '2')).map(({ id }: Json) => id)
      assert.equal(new Set(listed).size, listed.length)
      assert.deepEqual(
        listed.filter((id: string) => ids.includes(id)),
        ids.toReversed(),
      )

      const change = kind === 'bot_user' ? { name: unique('bot') } : { description: 'changed', metadata: 'too' }
      const updated = await service.update({ id: ids[0], ...change })
      assert.deepEqual(updated, { ...first, ...change })
      assert.deepEqual(await service.get(ids[0]), updated)

      for (const id of ids) {
        await service.delete(id)
        await assert.rejects(() => service.get(id), { statusCode: 404, errorCode: 'ERR_NGROK_222' })
      }
    })
  }

  test('lists of hundreds of items end, and have each item once', async () => {
    const ids = []
    for (let i = 0; i < 250; i += 1) ids.push((await platform.admin.create('/ip_policies')).id)
    const listed = await client.service('ipPolicies').list()
    assert.deepEqual(
      listed.slice(0, 250).map(({ id }: Json) => id),
      ids.toReversed(),
    )
    assert.equal(new Set(listed.map(({ id }: Json) => id)).size, listed.length)
    const older = await client.service('ipPolicies').list(ids[0])
    assert.equal(older.length, listed.length - 250)
  })

  test(`${ROUTES}: create, get, update, delete; the edge shows its routes`, async () => {
    const routes = client.service(ROUTES)
    const { id: edgeId } = await client.service('edges.edgesHttps').create({})
    const body = camel(await sampleBody(platform.admin, { kind: 'https_edge_route' }))
    const made = await routes.create({ edgeId, ...body })
    assert.deepEqual([made.edgeId, made.match, made.policy.enabled], [edgeId, body.match, true])
    assert.deepEqual(await routes.get({ edgeId, id: made.id }), made)
    assert.deepEqual((await client.service('edges.edgesHttps').get(edgeId)).routes, [made])
    const changed = await routes.update({ edgeId, id: made.id, match: '/changed' })
    assert.deepEqual(changed, { ...made, match: '/changed' })
    await routes.delete({ edgeId, id: made.id })
    await assert.rejects(() => routes.get({ edgeId, id: made.id }), { statusCode: 404 })
  })

  for (const [name, [on, module]] of Object.entries(modules)) {
    test(`${name}: replace, get, delete`, async () => {
      const service = client.service(name)
      const { target, edge } = await newEdge(on)
      // Only modules of routes take two ids.
      const one = on === 'route' ? target : target.id
      const config = { ...camel(await moduleBody(on, module)), enabled: true }
      await assert.rejects(() => service.get(one), { statusCode: 404 })
      const set = await service.replace({ ...target, module: config })
      for (const [field, value] of Object.entries(config)) if (field in set) assert.deepEqual(set[field], value)
      assert.deepEqual(await service.get(one), set)
      assert.deepEqual((await edge())[camelName(module)], set)

      assert.equal((await service.replace({ ...target, module: { ...config, enabled: false } })).enabled, false)
      await service.delete(one)
      await service.delete(one)
      await assert.rejects(() => service.get(one), { statusCode: 404 })
    })
  }

  test('edges are created with their modules, and show their policy in both spellings', async () => {
    const policy = { inbound: [{ name: 'no', expressions: [], actions: [{ type: 'deny', config: null }] }] }
    for (const name of ['edges.edgesTcp', 'edges.edgesTls']) {
      const made = await client.service(name).create({ policy })
      assert.equal(made.policy.inbound[0].actions[0].type, 'deny')
      assert.equal(made.trafficPolicy.enabled, true)
      assert.deepEqual(JSON.parse(made.trafficPolicy.value).inbound[0].actions[0].type, 'deny')
    }
  })

  for (const name of present.filter((each) => each !== 'tunnelSessions')) {
    test(`${name}: an empty list, and a 404 for an unknown id`, async () => {
      assert.deepEqual(await client.service(name).list(), [])
      const id = `${name === 'tunnels' ? 'tn' : 'ep'}_${NOWHERE}`
      await assert.rejects(() => client.service(name).get(id), { statusCode: 404, errorCode: 'ERR_NGROK_222' })
    })
  }

  test('tunnelSessions: an empty list, and a 404 that it can read for commands to an unknown one', async () => {
    const sessions = client.service('tunnelSessions')
    const id = `ts_${NOWHERE}`
    assert.deepEqual(await sessions.list(), [])
    const notFound = { statusCode: 404, errorCode: 'ERR_NGROK_222' }
    await assert.rejects(() => sessions.get(id), notFound)
    await assert.rejects(() => sessions.restart(id), notFound)
    await assert.rejects(() => sessions.stop(id), notFound)
    await assert.rejects(() => sessions.update({ id }), notFound)
  })

  test('applicationUsers, applicationSessions: list, get and delete', async () => {
    const logins = await openLogins(platform)
    try {
      for (const secret of ['a', 'b', 'c']) await logins.logIn({ secret, user: { id: secret } })
      const [users, sessions] = loggedIn.map((name) => client.service(name)) as [Service, Service]
      const [session, ...rest] = await sessions.list(undefined, '2')
      assert.equal(rest.length, 2)
      assert.deepEqual(await sessions.get(session.id), session)
      assert.equal(session.browserSession.userAgent.browserName, 'Firefox')
      const user = await users.get(session.applicationUser.id)
      assert.deepEqual(user, (await users.list())[0])
      assert.deepEqual([user.providerUserId, user.identityProvider.name], ['c', 'oidc'])
      await sessions.delete(session.id)
      const notFound = { statusCode: 404, errorCode: 'ERR_NGROK_222' }
      await assert.rejects(() => sessions.get(session.id), notFound)
      await users.delete(rest[0].applicationUser.id)
      await assert.rejects(() => users.get(rest[0].applicationUser.id), notFound)
      await assert.rejects(() => sessions.get(rest[0].id), notFound)
      assert.equal((await sessions.list()).length, 1)
    } finally {
      await logins.close()
    }
  })

  test('reservedDomains: its certificate and its policy for certificates are cleared', async () => {
    const domains = client.service('reservedDomains')
    const { id } = await domains.create({ domain: `${unique('name')}.example.com` })
    await domains.deleteCertificate(id)
    await domains.deleteCertificateManagementPolicy(id)
    const { certificate, certificateManagementPolicy } = await domains.get(id)
    assert.deepEqual([certificate, certificateManagementPolicy], [null, null])
  })

  const errors: readonly [what: string, status: number, number: number, call: () => Promise<unknown>][] = [
    ['an unknown id', 404, 222, () => client.service('apiKeys').get(`ak_${NOWHERE}`)],
    ['an id of another form', 404, 222, () => client.service('apiKeys').get('1000')],
    ['an unknown field', 400, 214, () => client.service('ipPolicies').create({ colour: 'red' })],
    ['a bad value', 400, 215, () => client.service('ipPolicies').create({ description: 1 })],
    ['a bad limit', 400, 233, () => client.service('ipPolicies').list(undefined, '101')],
    ['a bad cursor', 400, 223, () => client.service('ipPolicies').list('x')],
    ['a long text', 400, 604, () => client.service('apiKeys').create({ description: 'a'.repeat(256) })],
    ['a missing key', 400, 611, () => client.service('sshCredentials').create({})],
    ['an unknown backend', 400, 6501, () => edgesTcp({ backend: { backendId: `bkdtg_${NOWHERE}` } })],
    ['a bad hostport', 400, 7104, () => edgesTcp({ hostports: ['nothing'] })],
    ['ids for keys of a map', 400, 6501, () => weighted({ backends: { [ANY_BACKEND]: 1 } })],
    ['a wrong key', 401, 203, () => npmClient(platform.url, 'no').service('apiKeys').list()],
  ]
  for (const [what, statusCode, number, call] of errors) {
    test(`${what} is an error that it can read: ${statusCode}, number ${number}`, async () => {
      await assert.rejects(call, (error: Json) => {
        assert.deepEqual([error.statusCode, error.errorCode], [statusCode, `ERR_NGROK_${number}`], error.msg)
        assert.match(error.details.get('operationId'), /^op_\w{27}$/)
        return typeof error.msg === 'string'
      })
    })
  }

  test('faults in a login are reported by number', async () => {
    const { target } = await newEdge('route')
    const oauth = client.service('edgeModules.edgeRouteOAuthModule')
    const saml = client.service('edgeModules.edgeRouteSamlModule')
    const app = { clientId: 'app', clientSecret: 'hush' }
    const refusals: [number: number, call: () => Promise<unknown>][] = [
      [7037, () => oauth.replace({ ...target, module: {} })],
      [7036, () => oauth.replace({ ...target, module: { provider: { github: app, google: app } } })],
      [7033, () => oauth.replace({ ...target, module: { provider: { github: { scopes: [] } } } })],
      [7091, () => saml.replace({ ...target, module: {} })],
      [7080, () => saml.replace({ ...target, module: { idpMetadata: ' '.repeat(256 * 1024 + 1) } })],
    ]
    for (const [number, call] of refusals) {
      await assert.rejects(call, { statusCode: 400, errorCode: `ERR_NGROK_${number}` })
    }
    await oauth.replace({ ...target, module: { provider: { github: app } } })
    const { idp_metadata: idpMetadata } = await sampleModule(platform.admin, 'saml')
    const second = () => saml.replace({ ...target, module: { idpMetadata } })
    await assert.rejects(second, { statusCode: 400, errorCode: 'ERR_NGROK_7079' })
  })

  test('a taken key and a taken hostport are conflicts with their numbers', async () => {
    const { public_key: publicKey } = await sampleBody(platform.admin, { kind: 'ssh_credential' })
    await client.service('sshCredentials').create({ publicKey })
    const again = () => client.service('sshCredentials').create({ publicKey })
    await assert.rejects(again, { statusCode: 409, errorCode: 'ERR_NGROK_609' })

    const { hostports } = await sampleBody(platform.admin, { kind: 'tcp_edge' })
    await edgesTcp({ hostports })
    await assert.rejects(() => edgesTcp({ hostports }), { statusCode: 409, errorCode: 'ERR_NGROK_7122' })
  })

  for (const [name, why] of Object.entries(notServed)) {
    test(`${name} gets a 404 that it can read: ${why}`, async () => {
      const service = client.service(name)
      const arg = { edgeId: `edghts_${NOWHERE}`, id: `edghtsrt_${NOWHERE}`, subscriptionId: 'x', type: 'x' }
      const call = () => (client.methods(name).includes('list') ? service.list(arg) : service.get(arg))
      await assert.rejects(call, { statusCode: 404, errorCode: 'ERR_NGROK_209' })
    })
  }

  test('every method of every served service was called', () => {
    const served = client.names.filter((name) => !Object.hasOwn(notServed, name))
    const all = served.flatMap((name) => client.methods(name).map((method) => `${name}.${method}`))
    assert.deepEqual(
      all.filter((each) => !client.called.has(each)),
      [],
    )
  })

  async function create(name: string, kind: string, index: number): Promise<Json> {
    const service = client.service(name)
    if (kind === 'weighted_backend') {
      const { id } = await platform.admin.create('/backends/weighted', await sampleBody(platform.admin, { kind }))
      return service.get(id)
    }
    if (kind === 'ip_restriction') {
      const { id } = await platform.admin.create('/ip_policies')
      return service.create({ type: RESTRICTED[index], ipPolicyIds: [id], enforced: false })
    }
    return service.create(camel(await sampleBody(platform.admin, { kind })))
  }

  async function edgesTcp(body: Json): Promise<Json> {
    return client.service('edges.edgesTcp').create(body)
  }

  async function weighted(body: Json): Promise<Json> {
    return client.service('backends.weightedBackends').create(body)
  }

  /** A new edge or route to set a module on, and a function that reads the edge. */
  async function newEdge(on: 'https' | 'route' | 'tcp' | 'tls'): Promise<{ target: Json; edge: () => Promise<Json> }> {
    const names = { https: 'edges.edgesHttps', route: 'edges.edgesHttps', tcp: 'edges.edgesTcp', tls: 'edges.edgesTls' }
    const edges = client.service(names[on])
    const { id } = await edges.create({})
    if (on !== 'route') return { target: { id }, edge: async () => edges.get(id) }
    const routes = client.service(ROUTES)
    const route = await routes.create({ edgeId: id, matchType: 'path_prefix', match: '/' })
    const target = { edgeId: id, id: route.id }
    return { target, edge: () => routes.get(target) }
  }

  async function moduleBody(on: string, module: string): Promise<Json> {
    const body = await sampleModule(platform.admin, module)
    // The client keeps only header names without `-`.
    if (module.endsWith('_headers')) return { add: { team: 'web' }, remove: ['x-c'] }
    if (module === 'oauth') return { ...body, provider: { ...NO_PROVIDER, ...body.provider } }
    return on === 'https' && module === 'tls_termination' ? { min_version: body.min_version } : body
  }
})

/** There is one IP restriction of each type. */
const RESTRICTED = ['dashboard', 'api', 'agent', 'endpoints']

/** All providers of `oauth`, unset: an answer shows each of them. */
const NO_PROVIDER = Object.fromEntries(
  'amazon facebook github gitlab google linkedin microsoft twitch'.split(' ').map((name) => [name, null]),
)

/** A body of ours with field names in the client's spelling. */
function camel(value: Json): Json {
  if (Array.isArray(value)) return value.map(camel)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [camelName(name), camel(each)]))
}

function camelName(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}
