/** Nested backends: children, cycles, depth, and which backends may serve an edge that carries bytes (D28, R-2.3). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { eachTarget } from './target.ts'
import { type KindName, type Made, unknownId, World } from './world.ts'

const MAX_LEVELS = 8

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  const nests = {
    weighted_backend: (ids: readonly string[]) => ({ backends: Object.fromEntries(ids.map((id) => [id, 5])) }),
    failover_backend: (ids: readonly string[]) => ({ backends: ids }),
  } as const
  type Nest = keyof typeof nests
  const nest = (kind: Nest, ...children: readonly { id: string }[]) =>
    world.make(kind, nests[kind](children.map(({ id }) => id)))
  const holding = (kind: Nest, ...children: readonly { id: string }[]) => ({
    body: nests[kind](children.map(({ id }) => id)),
  })

  /** One more than one may hold; made once for both kinds. */
  const manyBackends = (): Promise<Made[]> => {
    many ??= Promise.all(Array.from({ length: 101 }, () => world.make('static_backend')))
    return many
  }
  let many: Promise<Made[]> | undefined

  for (const kind of Object.keys(nests) as Nest[]) {
    describe(kind, () => {
      test('holds every kind of backend, and shows their ids', async () => {
        const children: Made[] = []
        const all: KindName[] = [
          'tunnel_group_backend',
          'http_response_backend',
          'static_backend',
          'weighted_backend',
          'failover_backend',
        ]
        for (const each of all) children.push(await world.make(each))
        const { path, body } = await nest(kind, ...children)
        const { backends } = nests[kind](children.map(({ id }) => id))
        assert.deepEqual(body.backends, backends)
        assert.deepEqual((await target.api.get(path)).backends, backends)
      })

      test('refuses ids that are not backends, by name, and changes nothing', async () => {
        const made = await nest(kind, await world.shared('tunnel_group_backend'))
        const others = ['bkdtg_', 'bkdsc_', kind === 'weighted_backend' ? 'bkdwd_' : 'bkdfo_'].map(unknownId)
        for (const id of [...others, (await world.shared('ip_policy')).id, 'nonsense', '']) {
          for (const [method, path] of [
            ['POST', await world.collection(kind)],
            ['PATCH', made.path],
          ] as const) {
            const { msg } = await target.api.refused('ERR_UNKNOWN_REFERENCE', method, path, holding(kind, { id }))
            assert.ok(msg.includes('`backends`') && msg.includes(`\`${id}\``), msg)
          }
        }
        assert.deepEqual(await target.api.get(made.path), made.body)
      })

      test('protects its children from deletion as long as it refers to them', async () => {
        const [child, other] = [await world.make('static_backend'), await world.make('static_backend')]
        const made = await nest(kind, child)
        const { msg } = await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', child.path)
        assert.ok(msg.includes(made.id), msg)
        await target.api.update(made.path, nests[kind]([other.id]))
        await target.api.delete(child.path)
        await target.api.refused('ERR_STILL_REFERENCED', 'DELETE', other.path)
        await target.api.delete(made.path)
        await target.api.delete(other.path)
      })

      test('holds 1 to 100 backends', async () => {
        const path = await world.collection(kind)
        await target.api.refused('ERR_INVALID_VALUE', 'POST', path, holding(kind))
        await target.api.refused('ERR_FIELD_REQUIRED', 'POST', path, { body: {} })
        const made = await nest(kind, await world.shared('tunnel_group_backend'))
        await target.api.refused('ERR_INVALID_VALUE', 'PATCH', made.path, holding(kind))
        const many = await manyBackends()
        await nest(kind, ...many.slice(1))
        await target.api.refused('ERR_INVALID_VALUE', 'POST', path, holding(kind, ...many))
      })

      test('cannot contain itself, directly or through others, and stays as it was', async () => {
        const group = await world.shared('tunnel_group_backend')
        const inner = await nest(kind, group)
        const middle = await nest('failover_backend', group, inner)
        const outer = await nest('weighted_backend', middle)
        for (const child of [inner, middle, outer]) {
          const { msg, status_code } = await target.api.refused(
            'ERR_BACKEND_IN_ITSELF',
            'PATCH',
            inner.path,
            holding(kind, group, child),
          )
          assert.equal(status_code, 400)
          assert.ok(msg.includes('`backends`') && msg.includes(inner.id), msg)
        }
        assert.deepEqual(await target.api.get(inner.path), inner.body)
        // The same backend twice in a tree is not a cycle.
        await nest(kind, inner, middle, outer)
      })
    })
  }

  test('a weight is a whole number from 0 to 10000', async () => {
    const { id } = await world.shared('tunnel_group_backend')
    for (const weight of [0, 1, 10_000]) {
      assert.deepEqual((await world.make('weighted_backend', { backends: { [id]: weight } })).body.backends, {
        [id]: weight,
      })
    }
    for (const weight of [-1, 10_001, 1.5, '1', true, [1]]) {
      const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'POST', '/backends/weighted', {
        body: { backends: { [id]: weight } },
      })
      assert.ok(msg.includes(id), msg)
    }
  })

  test('a failover names each backend once, and keeps their order', async () => {
    const [one, two] = [await world.make('static_backend'), await world.make('static_backend')]
    const { path } = await nest('failover_backend', two, one)
    assert.deepEqual((await target.api.get(path)).backends, [two.id, one.id])
    const { msg } = await target.api.refused(
      'ERR_INVALID_VALUE',
      'PATCH',
      path,
      holding('failover_backend', one, two, one),
    )
    assert.ok(msg.includes('`backends[2]`'), msg)
  })

  describe('depth', () => {
    /** Makes a chain of this many backends, from the innermost to the outermost. */
    async function chain(length: number): Promise<Made[]> {
      const made: Made[] = []
      for (let i = 0; i < length; i++) {
        const kind = i % 2 === 0 ? 'failover_backend' : 'weighted_backend'
        made.push(await nest(kind, made.at(-1) ?? (await world.shared('tunnel_group_backend'))))
      }
      return made
    }

    test('is limited when a backend is put around others', async () => {
      const deepest = await chain(MAX_LEVELS)
      const body = holding('weighted_backend', deepest.at(-1) as Made)
      const { msg, status_code } = await target.api.refused('ERR_BACKENDS_TOO_DEEP', 'POST', '/backends/weighted', body)
      assert.equal(status_code, 400)
      assert.ok(msg.includes(String(MAX_LEVELS)), msg)
    })

    test('is limited when a backend is put into others, and when two chains are joined', async () => {
      const [upper, lower] = [await chain(MAX_LEVELS - 3), await chain(4)]
      const [inner] = upper as [Made]
      await target.api.refused(
        'ERR_BACKENDS_TOO_DEEP',
        'PATCH',
        inner.path,
        holding('failover_backend', lower[3] as Made),
      )
      await target.api.update(inner.path, holding('failover_backend', lower[2] as Made).body)
      // An update that does not change the depth is allowed at the limit.
      await target.api.update(inner.path, { description: 'x' })
      await target.api.update((upper.at(-1) as Made).path, { description: 'x' })
    })
  })

  describe('an HTTP response', () => {
    const edges = ['tcp_edge', 'tls_edge'] as const

    for (const host of edges) {
      test(`cannot serve a ${host}, directly or through others, whichever request would cause it`, async () => {
        const response = await world.make('http_response_backend')
        const inner = await nest('failover_backend', await world.shared('tunnel_group_backend'), response)
        const outer = await nest('weighted_backend', inner)
        const edge = await world.make(host)
        for (const [id, code] of [
          [response.id, 'ERR_UNKNOWN_REFERENCE'],
          [inner.id, 'ERR_BACKEND_NEEDS_HTTP'],
          [outer.id, 'ERR_BACKEND_NEEDS_HTTP'],
        ] as const) {
          for (const [method, path, body] of [
            ['POST', await world.collection(host), { ...(await world.least(host)), backend: { backend_id: id } }],
            ['PATCH', edge.path, { backend: { backend_id: id } }],
            ['PUT', `${edge.path}/backend`, { backend_id: id }],
            ['PUT', `${edge.path}/backend`, { enabled: false, backend_id: id }],
          ] as const) {
            const { status_code, msg } = await target.api.refused(code, method, path, { body })
            assert.equal(status_code, 400)
            assert.ok(msg.includes(response.id), msg)
          }
        }
        assert.deepEqual(await target.api.get(edge.path), edge.body)
      })

      test(`cannot be put into a backend that a ${host} uses, at any depth`, async () => {
        const response = await world.make('http_response_backend')
        const withResponse = await nest('weighted_backend', response)
        const inner = await nest('failover_backend', await world.shared('tunnel_group_backend'))
        const outer = await nest('weighted_backend', inner)
        const edge = await world.make(host, { backend: { backend_id: outer.id } })
        for (const [kind, changed] of [
          ['failover_backend', inner],
          ['weighted_backend', outer],
        ] as const) {
          for (const child of [response, withResponse]) {
            const sent = holding(kind, child)
            const { msg } = await target.api.refused('ERR_BACKEND_NEEDS_HTTP', 'PATCH', changed.path, sent)
            assert.ok(msg.includes(edge.id) && msg.includes(response.id), msg)
          }
          assert.deepEqual(await target.api.get(changed.path), changed.body)
        }
        // Once the edge no longer uses it, it is allowed.
        await target.api.delete(`${edge.path}/backend`)
        await target.api.update(inner.path, holding('failover_backend', response).body)
      })
    }

    test('serves a route, directly or through others', async () => {
      const response = await world.make('http_response_backend')
      const outer = await nest('weighted_backend', await nest('failover_backend', response))
      for (const { id, ref } of [response, outer, await world.make('static_backend')]) {
        const { body } = await world.make('https_edge_route', { backend: { backend_id: id } })
        assert.deepEqual(body.backend, { enabled: true, backend: ref })
      }
    })

    for (const host of edges) {
      test(`is the only kind that a ${host} refuses`, async () => {
        for (const kind of [
          'tunnel_group_backend',
          'weighted_backend',
          'failover_backend',
          'static_backend',
        ] as const) {
          const { id, ref } = await world.make(kind)
          const { body } = await world.make(host, { backend: { backend_id: id } })
          assert.deepEqual(body.backend, { enabled: true, backend: ref })
        }
      })
    }
  })

  describe('at the same time', () => {
    const PAIRS = 12
    const many = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: PAIRS }, make))

    test('two updates that together would close a cycle never both succeed', async () => {
      const group = await world.shared('tunnel_group_backend')
      const pairs = await many(async () => {
        // Each reaches the other through a backend that neither update writes, so no foreign key serialises them.
        const [a, b] = [await nest('failover_backend', group), await nest('failover_backend', group)]
        const [overA, overB] = [await nest('weighted_backend', a), await nest('weighted_backend', b)]
        return { a, b, overA, overB }
      })
      await Promise.all(
        pairs.map(async ({ a, b, overA, overB }) => {
          const answers = await Promise.all([
            target.api.send('PATCH', a.path, holding('failover_backend', overB)),
            target.api.send('PATCH', b.path, holding('failover_backend', overA)),
          ])
          const codes = new Set(answers.map(({ status, body }) => (status === 200 ? 'ok' : body.error_code)))
          assert.deepEqual(codes, new Set(['ok', 'ERR_BACKEND_IN_ITSELF']))
        }),
      )
    })

    test('an edge never gets an HTTP response through two updates that are each valid', async () => {
      const group = await world.shared('tunnel_group_backend')
      const response = await world.shared('http_response_backend')
      const pairs = await many(async () => {
        const inner = await nest('failover_backend', group)
        return { inner, outer: await nest('weighted_backend', inner), edge: await world.make('tcp_edge') }
      })
      await Promise.all(
        pairs.map(async ({ inner, outer, edge }) => {
          const answers = await Promise.all([
            target.api.send('PUT', `${edge.path}/backend`, { body: { backend_id: outer.id } }),
            target.api.send('PATCH', inner.path, holding('failover_backend', response)),
          ])
          const codes = new Set(answers.map(({ status, body }) => (status === 200 ? 'ok' : body.error_code)))
          assert.deepEqual(codes, new Set(['ok', 'ERR_BACKEND_NEEDS_HTTP']))
        }),
      )
    })
  })

  test('the address of a static backend is host:port', async () => {
    for (const address of ['db.example.com:5432', '192.0.2.1:80', '[2001:db8::1]:65535', 'localhost:1', 'Db:22']) {
      const { body } = await world.make('static_backend', { address })
      assert.deepEqual([body.address, body.tls], [address, { enabled: false }])
    }
    const bad = [
      '',
      'db',
      'db:',
      ':80',
      'db:0',
      'db:65536',
      'db:http',
      'http://db:80',
      '*.db:80',
      'a b:80',
      '2001:db8::1:80',
    ]
    for (const address of [...bad, '192.0.2.256:80', '1.2.3:80', '[::g]:80']) {
      const { msg } = await target.api.refused('ERR_BAD_ADDRESS', 'POST', '/backends/static', { body: { address } })
      assert.match(msg, /`address`/, address)
    }
    const { path } = await world.make('static_backend', { tls: { enabled: true } })
    assert.deepEqual((await target.api.update(path, { address: 'db:1' })).tls, { enabled: true })
    assert.deepEqual((await target.api.update(path, { tls: {} })).tls, { enabled: false })
    await target.api.refused('ERR_UNKNOWN_FIELD', 'PATCH', path, { body: { tls: { verify: true } } })
  })
})
