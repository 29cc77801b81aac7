/** D63: no spelling of a path bypasses the guard of a route. */
import assert from 'node:assert/strict'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type FastifyInstance, fastify } from 'fastify'
import { versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
let service: FastifyInstance
/** The paths that the service was asked for, by the handler that its router chose. */
let handled: string[] = []
let backend: { backend_id: string }
let guard: { ip_policy_ids: string[] }

before(async () => {
  world = await World.start()
  service = fastify()
  for (const [path, handler] of [
    ['/', 'root'],
    ['/*', 'root'],
    ['/public', 'public'],
    ['/public/*', 'public'],
    ['/admin', 'admin'],
    ['/admin/*', 'admin'],
  ] as const) {
    service.all(path, (request, reply) => {
      handled.push(`${handler} ${request.raw.url}`)
      return reply.send(handler)
    })
  }
  await service.listen({ host: '127.0.0.1', port: 0 })
  const { port } = service.server.address() as AddressInfo // it listens on a port
  backend = await world.toAddress({ address: `127.0.0.1:${port}` })
  // An empty policy admits nobody.
  guard = { ip_policy_ids: [await world.ipPolicy({})] }
})
after(async () => {
  await service.close()
  await world.stop()
})

async function edgeWith(...routes: readonly { match: string; isGuarded?: boolean }[]): Promise<HttpsEdge> {
  return world.httpsEdge({
    routes: routes.map(({ match, isGuarded }) => ({ match, backend, ...(isGuarded && { ip_restriction: guard }) })),
  })
}

const attacks: readonly [method: string, path: string][] = [
  ['GET', '/admin/../public'],
  ['GET', '/admin/keys/..%2f..%2fpublic'],
  ['DELETE', '/admin/users/7/../../../public'],
  ['GET', '/admin/%2e%2e/public'],
  ['GET', '/admin/.%2E/public'],
  ['GET', '/admin\\..\\public'],
  ['GET', '/admin%5c..%5cpublic'],
  ['GET', '/admin;/../public'],
  ['GET', '/admin/..;/public'],
  ['GET', '//admin'],
  ['GET', '//admin/keys'],
  ['GET', '//anything/admin'],
  ['GET', '/./admin'],
  ['GET', '/%61dmin'],
  ['GET', '/%2fadmin'],
  ['GET', '/%5cadmin'],
  ['GET', '/\\admin'],
  ['GET', '/x/..;/admin'],
  ['GET', '/x/..%3b/admin'],
  ['GET', '/;x/admin'],
  ['GET', '/x/../admin'],
  ['GET', '/x%2f../admin'],
  ['GET', '/public/../admin'],
  ['GET', '/public%2f..%2fadmin'],
]

for (const version of versions) {
  describe(`over HTTP/${version}, a path that another server could read as the guarded one is refused`, () => {
    test('where everything is guarded but /public', async () => {
      const { name } = await edgeWith({ match: '/', isGuarded: true }, { match: '/public' })
      handled = []
      for (const [method, path] of attacks) {
        const { status, code } = await world.ask(name, { version, method, path })
        // A path that has no reading below /public may also be refused by the guard.
        const isRefused =
          (status === 400 && code === 'ERR_AMBIGUOUS_PATH') || (status === 403 && code === 'ERR_IP_REFUSED')
        assert.ok(isRefused, `${method} ${path} was answered with ${status} ${code}`)
        if (path.includes('public')) assert.equal(code, 'ERR_AMBIGUOUS_PATH', path)
      }
      assert.deepEqual(handled, [])
    })

    test('where everything is open but /admin', async () => {
      const { name } = await edgeWith({ match: '/' }, { match: '/admin', isGuarded: true })
      handled = []
      for (const [method, path] of attacks) {
        const { status, code } = await world.ask(name, { version, method, path })
        assert.deepEqual([path, status, code], [path, 400, 'ERR_AMBIGUOUS_PATH'])
      }
      assert.deepEqual(handled, [])
    })
  })

  describe(`over HTTP/${version}, a strange path with only one reading`, () => {
    test('is forwarded untouched', async () => {
      const { name } = await edgeWith({ match: '/', isGuarded: true }, { match: '/public' })
      const paths = [
        '/public/a%20b',
        '/public/a%2Fb;v=1//c',
        '/public/x/../y?z=/../admin',
        '/public/caf%C3%A9',
        '/public/\\',
      ]
      for (const path of paths) {
        handled = []
        const { status } = await world.ask(name, { version, path })
        assert.deepEqual([status, handled], [200, [`public ${path}`]])
      }
    })

    test('is forwarded untouched where one route takes every path', async () => {
      const { name } = await edgeWith({ match: '/' })
      for (const path of ['/admin/../public', '//admin', '/x/..;/admin', '/a\\b', '/admin/keys/..%2f..%2fpublic']) {
        handled = []
        const { status } = await world.ask(name, { version, path })
        assert.deepEqual([status, handled.length, handled[0]?.endsWith(` ${path}`)], [200, 1, true], path)
      }
    })

    test('is refused where a module decides by the path', async () => {
      const verification = { provider: 'square', secret: 'not a secret' }
      const { name } = await world.httpsEdge({ routes: [{ backend, webhook_verification: verification }] })
      for (const [path, code] of [
        ['/hook', 'ERR_WEBHOOK_REFUSED'],
        ['/caf%C3%A9', 'ERR_WEBHOOK_REFUSED'],
        ['/hook/../admin', 'ERR_AMBIGUOUS_PATH'],
        ['/hook%2fx', 'ERR_AMBIGUOUS_PATH'],
      ] as const)
        assert.equal((await world.ask(name, { version, path })).code, code, path)
    })
  })

  test(`the page for a path with several meanings says how to write it, over HTTP/${version}`, async () => {
    const { name } = await edgeWith({ match: '/' }, { match: '/admin', isGuarded: true })
    const { text } = await world.ask(name, { version, path: '/x/../admin', headers: { accept: 'text/html' } })
    assert.match(text, /without .*\.\./)
  })
}
