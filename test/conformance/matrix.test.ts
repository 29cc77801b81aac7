/** The authorisation matrix: every route of the table and every kind of caller, on resources that exist. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { before, describe, test } from 'node:test'
import { type ApiRoute, type RouteAction, routeTable } from '../../src/control-plane/api/routes.ts'
import { ApiClient } from '../support/api-client.ts'
import { startPlatform } from '../support/platform.ts'
import { assertEnvelope } from './envelope.ts'
import { collectionPath, createBareHost, createSample, sampleBody, sampleModule } from './samples.ts'
import { eachTarget, type Target, unique } from './target.ts'

type Access = 'owner' | 'account' | 'admin' | 'online' | 'node' | 'passed' | 'dry_run'

/** D22 and D24, written out: who may use each path. A path that is not listed fails the test. */
const accesses: Readonly<Record<string, Access>> = {
  '/api_keys': 'owner',
  '/ssh_credentials': 'owner',
  '/credentials': 'owner',
  '/bot_users': 'admin',
  '/service_users': 'admin',
  '/users': 'admin',
  '/nodes': 'node',
  '/tunnel_sessions': 'online',
  '/tunnels': 'online',
  '/edges/tcp': 'account',
  '/edges/tls': 'account',
  '/edges/https': 'account',
  '/edges/https/{edge_id}/routes': 'account',
  '/backends/tunnel_group': 'account',
  '/backends/http_response': 'account',
  '/ip_policies': 'account',
  '/ip_policy_rules': 'account',
  '/certificate_authorities': 'account',
  '/backends/weighted': 'account',
  '/backends/failover': 'account',
  '/backends/static': 'account',
  '/tls_certificates': 'account',
  '/reserved_addrs': 'account',
  '/reserved_domains': 'account',
  '/agent_ingresses': 'account',
  '/endpoints': 'online',
  '/app/users': 'online',
  '/app/sessions': 'online',
  '/exchanges': 'passed',
  '/captures': 'owner',
  '/ip_restrictions': 'admin',
  '/ssh_certificate_authorities': 'account',
  '/ssh_user_certificates': 'account',
  '/ssh_host_certificates': 'account',
  '/policy/explain': 'dry_run',
  '/traffic': 'admin',
  '/broken_edges': 'account',
}

/** Statuses for the member who owns the instance, for another member, and for an admin; `ok` is the route's own. */
type Row = readonly [owner: Status, other: Status, admin: Status]
type Status = 'ok' | 403 | 404 | 409

const forAll: Row = ['ok', 'ok', 'ok']
const forOwner: Row = ['ok', 404, 'ok']
const forAdmin: Row = [403, 403, 'ok']
const forAdminMissing: Row = [403, 403, 404]
const forNobody: Row = [404, 404, 404]

const expectations: Readonly<Record<Access, Readonly<Partial<Record<RouteAction, Row>>>>> = {
  owner: { create: forAll, list: forAll, get: forOwner, update: forOwner, delete: forOwner },
  account: {
    create: forAll,
    list: forAll,
    get: forAll,
    update: forAll,
    delete: forAll,
    clear: forAll,
    put_module: forAll,
    get_module: forAll,
    delete_module: forAll,
    // The test's certificates were uploaded, and only ordered ones can be renewed.
    renew: [409, 409, 409],
    // Nor does the test's server order any.
    retry: [409, 409, 409],
    list_broken_edges: forAll,
  },
  admin: {
    create: forAdmin,
    list: forAdmin,
    get: forAdmin,
    update: forAdmin,
    delete: forAdmin,
    get_traffic_minutes: forAdmin,
    get_traffic_day: forAdmin,
  },
  // Ours, beyond the contract: the addresses of machines are for admins. The one of the test does not exist.
  node: { list: forAdmin, get: forAdminMissing },
  dry_run: { explain_policy: forAll },
  // There have been no visitors, so there are no exchanges.
  passed: {
    list: forAll,
    get: forNobody,
    stream_exchanges: forAll,
    replay_exchange: forNobody,
    get_exchange_har: forNobody,
    get_exchange_curl: forNobody,
  },
  // No agent is online here and no visitor is logged in, so these are 404; what matters is that no caller gets 403.
  online: { list: forAll, get: forNobody, delete: forNobody, command: forNobody },
}

/** Pages that need no key, and the dashboard's sign-in, which has its own guard; the route table must hold the rest. */
const publicPages = /^\/(healthz|readyz|openapi\.json|docs(\/.*)?|page\/(:file|session))$/

eachTarget((target) => {
  const callers = new Map<string, ApiClient>()
  /** An edge or route of each kind for modules to be set on. */
  const hosts = new Map<string, string>()
  let ownerId = ''

  before(async () => {
    const [owner, other] = [await bot(target), await bot(target)]
    ownerId = owner.id
    const gone = await target.api.create('/api_keys')
    await target.api.delete(`/api_keys/${gone.id}`)
    callers.set('no key', new ApiClient(target.url, null))
    callers.set('a malformed key', new ApiClient(target.url, 'nonsense'))
    callers.set('a deleted key', new ApiClient(target.url, gone.token))
    callers.set('the owner', owner.api)
    callers.set('another member', other.api)
    callers.set('an admin', target.api)
  })

  for (const route of routeTable()) {
    // For resources without an owner, the route alone decides, before the store is used, so one store is enough.
    if (target.name === 'postgres' && accesses[route.resource.path] !== 'owner') continue
    test(`${route.method} ${route.path}`, async () => {
      const [owner, other, admin] = expected(route)
      const statuses = new Map<string, Status | 401>([
        ['no key', 401],
        ['a malformed key', 401],
        ['a deleted key', 401],
        ['the owner', owner],
        ['another member', other],
        ['an admin', admin],
      ])
      let ready: Prepared | undefined
      let refused: string[] = []
      const areUntouched = async () => {
        if (ready?.instance && refused.length > 0) await untouched(target, ready.instance, refused)
        refused = []
      }
      for (const [who, status] of statuses) {
        if (status === 'ok') await areUntouched()
        ready ??= await prepared(target, route, ownerId, hosts)
        const { path, body } = ready
        const api = callers.get(who)
        assert.ok(api)
        const answer = await api.send(route.method, path, body === undefined ? {} : { body })
        const wanted = status === 'ok' ? route.status : status
        assert.equal(answer.status, wanted, `${who}: ${answer.text}`)
        if (status === 'ok') {
          // After these the next caller needs a new one.
          if (['create', 'delete', 'delete_module'].includes(route.action)) ready = undefined
          continue
        }
        assertEnvelope(answer, wanted)
        refused.push(who)
      }
      await areUntouched()
    })
  }
})

describe('the route table', () => {
  test('holds every mounted route except public pages', async () => {
    const mounted: { method: string; url: string }[] = []
    const watch = (message: unknown) => {
      // Fastify publishes a new instance before anything is mounted on it.
      const { fastify } = message as {
        fastify: { addHook(name: 'onRoute', hook: (route: MountedRoute) => void): void }
      }
      fastify.addHook('onRoute', ({ method, url }) => {
        for (const each of [method].flat()) mounted.push({ method: each, url })
      })
    }
    subscribe('fastify.initialization', watch)
    const platform = await startPlatform()
    try {
      const known = new Set(routeTable().flatMap(({ method, path }) => [`${method} ${path}`, ...headOf(method, path)]))
      const anonymous = new ApiClient(platform.url, null)
      assert.ok(mounted.length >= known.size, 'the routes were seen being mounted')
      for (const { method, url } of mounted) {
        if (publicPages.test(url)) continue
        const path = url.replace(/:(\w+)/g, '{$1}')
        assert.ok(known.has(`${method} ${path}`), `${method} ${url} is mounted by hand`)
        assert.equal((await anonymous.send(method, url)).status, 401, `${method} ${url} has no door`)
      }
    } finally {
      unsubscribe('fastify.initialization', watch)
      await platform.stop()
    }
  })

  test('has no two routes with the same method and path, or with the same name', () => {
    const table = routeTable()
    assert.equal(new Set(table.map(({ method, path }) => `${method} ${path}`)).size, table.length)
    assert.equal(new Set(table.map(({ operation }) => operation)).size, table.length)
  })

  test('covers the matrix and no more', () => {
    const paths = new Set(routeTable().map(({ resource }) => resource.path))
    assert.deepEqual(Object.keys(accesses).sort(), [...paths].sort())
  })
})

interface MountedRoute {
  readonly method: string | readonly string[]
  readonly url: string
}

function headOf(method: string, path: string): string[] {
  return method === 'GET' ? [`HEAD ${path}`] : []
}

function expected({ resource, action, method, path }: ApiRoute): Row {
  const access = Object.hasOwn(accesses, resource.path) ? accesses[resource.path] : undefined
  assert.ok(access, `the table above does not say who may use ${resource.path}; see D22 and D24`)
  const row = expectations[access][action]
  assert.ok(row, `the table above does not say who may ${action} ${access} resources: ${method} ${path}`)
  return row
}

interface Prepared {
  readonly path: string
  readonly body?: unknown
  readonly instance: string | null
}

/** A path and a body with which an authorised caller succeeds; `instance` must survive a caller who is not. */
async function prepared(
  { api }: Target,
  { resource, action, form, path: pattern }: ApiRoute,
  ownerId: string,
  hosts: Map<string, string>,
): Promise<Prepared> {
  if (action === 'explain_policy') return { path: pattern, body: { policy: {}, request: {} }, instance: null }
  if (!resource.verbs.includes('create')) {
    return { path: pattern.replace('{id}', `${resource.prefix}${'1'.repeat(27)}`), instance: null }
  }
  if (action === 'list') return { path: resource.path, instance: null }
  if (action === 'create') {
    return { path: await collectionPath(api, resource), body: await sampleBody(api, resource), instance: null }
  }
  if (form) {
    const host = hosts.get(resource.kind) ?? (await createBareHost(api, resource))
    hosts.set(resource.kind, host)
    const config = await sampleModule(api, form.name)
    const at = `${host}/${form.name}`
    await api.put(at, config)
    return { path: at, ...(action === 'put_module' && { body: config }), instance: at }
  }
  const { path } = await createSample(api, resource, resource.access === 'owner' ? { owner_id: ownerId } : {})
  if (action === 'clear' || action === 'renew' || action === 'retry')
    return { path: `${path}/${pattern.split('/').at(-1)}`, instance: path }
  return { path, ...(action === 'update' && { body: {} }), instance: path }
}

async function untouched({ api }: Target, instance: string, refused: readonly string[]): Promise<void> {
  assert.equal((await api.send('GET', instance)).status, 200, `${instance} is gone after ${refused.join(', ')}`)
}

/** A new bot, which counts as a member, with its own key. */
async function bot({ api, url }: Target): Promise<{ id: string; api: ApiClient }> {
  const { id } = await api.create('/bot_users', { name: unique('bot') })
  const { token } = await api.create('/api_keys', { owner_id: id })
  return { id, api: new ApiClient(url, token) }
}
