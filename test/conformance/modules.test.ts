/** Every module in every place: set, read, deleted, and shown by its edge or route (contract 4.6, 4.7; D10, D29, D30). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { makeRefs, moduleCases, type Refs } from './module-table.ts'
import { eachTarget } from './target.ts'
import { isModuleOn } from './ways-to-the-store.ts'
import { type Made, unknownId, World } from './world.ts'

eachTarget((target) => {
  let world: World
  let refs: Refs
  before(async () => {
    world = new World(target.api)
    refs = await makeRefs(world)
  })

  for (const { host, module, least, full } of moduleCases.filter((each) => isModuleOn(target, each))) {
    describe(`${module} of ${host}`, () => {
      // One host for all tests of the module, beginning with the one that needs it unset.
      let made: Made
      before(async () => {
        made = await world.make(host)
      })

      test('while unset is null, 404 and deletable', async () => {
        const { path, body } = made
        assert.equal(body[module], null)
        const { msg } = await target.api.refused('ERR_MODULE_NOT_SET', 'GET', `${path}/${module}`)
        assert.match(msg, RegExp(module))
        await target.api.delete(`${path}/${module}`)
        await target.api.delete(`${path}/${module}`)
      })

      test('is replaced whole by PUT, with defaults for omitted fields', async () => {
        const { path } = made
        for (const example of [full, least, full]) {
          const { body, answer } = example(refs)
          assert.deepEqual(await target.api.put(`${path}/${module}`, body), answer)
          assert.deepEqual(await target.api.get(`${path}/${module}`), answer)
          assert.deepEqual((await target.api.get(path))[module], answer)
        }
      })

      test('treats a null field as omitted', async () => {
        const { path } = made
        await target.api.put(`${path}/${module}`, full(refs).body)
        const nulls = Object.fromEntries(Object.keys(full(refs).body).map((field) => [field, null]))
        const { body, answer } = least(refs)
        assert.deepEqual(await target.api.put(`${path}/${module}`, { ...nulls, ...body }), answer)
      })

      test('accepts the ids of the path in its body, and no other', async () => {
        const { id, path, body } = made
        const ids = { id, ...(body.edge_id !== undefined && { edge_id: body.edge_id }) }
        assert.deepEqual(await target.api.put(`${path}/${module}`, { ...ids, ...least(refs).body }), least(refs).answer)
        for (const name of Object.keys(ids)) {
          const wrong = { ...least(refs).body, [name]: unknownId('edgtcp_') }
          const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/${module}`, { body: wrong })
          assert.match(msg, RegExp(`\`${name}\``))
        }
      })

      test('refuses unknown fields and wrong values by name, without any change', async () => {
        const { path } = made
        await target.api.put(`${path}/${module}`, full(refs).body)
        const unknown = { ...least(refs).body, enabeld: true }
        const wrong = { ...least(refs).body, enabled: 'yes' }
        const tries = [
          ['ERR_UNKNOWN_FIELD', 'PUT', `${path}/${module}`, unknown, '`enabeld`'],
          ['ERR_UNKNOWN_FIELD', 'PATCH', path, { description: 'new', [module]: unknown }, `\`${module}.enabeld\``],
          ['ERR_INVALID_VALUE', 'PUT', `${path}/${module}`, wrong, '`enabled`'],
          ['ERR_INVALID_VALUE', 'PATCH', path, { description: 'new', [module]: wrong }, `\`${module}.enabled\``],
        ] as const
        const before = await target.api.get(path)
        for (const [code, method, address, body, name] of tries) {
          const { msg } = await target.api.refused(code, method, address, { body })
          assert.ok(msg.includes(name), msg)
          if (code === 'ERR_UNKNOWN_FIELD') assert.ok(msg.includes('`enabled`'), msg)
        }
        assert.deepEqual(await target.api.get(path), before)
      })

      test('is gone after DELETE, and can be set again', async () => {
        const { path } = made
        await target.api.put(`${path}/${module}`, full(refs).body)
        await target.api.delete(`${path}/${module}`)
        await target.api.refused('ERR_MODULE_NOT_SET', 'GET', `${path}/${module}`)
        assert.equal((await target.api.get(path))[module], null)
        await target.api.put(`${path}/${module}`, least(refs).body)
      })

      test('can be set at creation, and is kept by a PATCH without it and replaced by one with it', async () => {
        const { path, body } = await world.make(host, { [module]: full(refs).body })
        assert.deepEqual(body[module], full(refs).answer)
        for (const patch of [
          {},
          { description: 'new' },
          { [module]: null },
          { description: 'newer', [module]: null },
        ]) {
          assert.deepEqual((await target.api.update(path, patch))[module], full(refs).answer, JSON.stringify(patch))
        }
        assert.deepEqual((await target.api.update(path, { [module]: least(refs).body }))[module], least(refs).answer)
        assert.deepEqual(await target.api.get(`${path}/${module}`), least(refs).answer)
      })
    })
  }

  test('several modules in one PATCH are replaced together or not at all', async () => {
    const { path } = await world.make('https_edge_route', { user_agent_filter: { deny: ['a'] } })
    const before = await target.api.get(path)
    const body = {
      description: 'new',
      user_agent_filter: { deny: ['b'] },
      backend: { backend_id: unknownId('bkdtg_') },
    }
    await target.api.refused('ERR_UNKNOWN_REFERENCE', 'PATCH', path, { body })
    assert.deepEqual(await target.api.get(path), before)
  })

  test('a refused creation leaves nothing behind', async () => {
    const body = { description: 'refused', backend: { backend_id: unknownId('bkdtg_') } }
    await target.api.refused('ERR_UNKNOWN_REFERENCE', 'POST', '/edges/tcp', { body })
    const { tcp_edges } = await target.api.get('/edges/tcp')
    assert.ok(!tcp_edges.some(({ description }: { description: string }) => description === 'refused'))
  })

  describe('a route is not found under another edge', () => {
    const parts = [
      '',
      ...moduleCases
        .filter((each) => each.host === 'https_edge_route' && isModuleOn(target, each))
        .map(({ module }) => `/${module}`),
    ]
    for (const part of parts) {
      test(part || 'the route itself', async () => {
        const route = await world.shared('https_edge_route')
        const other = await world.shared('https_edge')
        const address = `${other.path}/routes/${route.id}${part}`
        const methods = part === '' ? ['GET', 'PATCH', 'DELETE'] : ['GET', 'PUT', 'DELETE']
        const example = moduleCases.find(({ host, module }) => host === 'https_edge_route' && part === `/${module}`)
        for (const method of methods) {
          const body = /P/.test(method) ? { body: example?.least(refs).body ?? {} } : {}
          await target.api.refused('ERR_NOT_FOUND', method, address, body)
        }
        assert.deepEqual(await target.api.get(route.path), route.body)
      })
    }
  })

  describe('a module that cannot stand here is neither a field nor a path', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    for (const [host, module] of [
      ['tcp_edge', 'tls_termination'],
      ['tcp_edge', 'mutual_tls'],
      ['tcp_edge', 'oidc'],
      ['tls_edge', 'oauth'],
      ['https_edge', 'saml'],
      ['tls_edge', 'user_agent_filter'],
      ['https_edge', 'backend'],
      ['https_edge', 'ip_restriction'],
      ['https_edge', 'policy'],
      ['https_edge', 'traffic_policy'],
      ['tcp_edge', 'webhook_verification'],
      ['tls_edge', 'circuit_breaker'],
      ['https_edge', 'response_headers'],
      ['https_edge', 'compression'],
      ['tls_edge', 'websocket_tcp_converter'],
      ['https_edge_route', 'mutual_tls'],
      ['https_edge_route', 'tls_termination'],
    ] as const) {
      test(`${module} of ${host}`, async () => {
        const { path } = await world.shared(host)
        await target.api.refused('ERR_ROUTE_NOT_FOUND', 'PUT', `${path}/${module}`, { body: {} })
        await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body: { [module]: {} } })
      })
    }
  })
})
