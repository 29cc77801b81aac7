/** The OIDC module of a route: what it needs, and how it stores its secret (contract 2.11, D38, D39). */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { databaseContents } from '../support/database-contents.ts'
import { eachTarget, unique } from './target.ts'
import { World } from './world.ts'

const complete = { issuer: 'https://id.example.com', client_id: 'shop', client_secret: 'keep-this' }

const issuers: readonly (readonly [string, boolean])[] = [
  ['https://id.example.com', true],
  ['https://id.example.com/realms/shop', true],
  ['https://id.example.com:8443/', true],
  ['http://localhost:8080', true],
  ['http://127.0.0.1:8080/realm', true],
  ['http://[::1]:8080', true],
  ['http://id.example.com', false],
  ['http://localhost.example.com', false],
  ['http://127.0.0.1.example.com', false],
  ['ftp://id.example.com', false],
  ['id.example.com', false],
  ['https://', false],
  ['https://user:hunter2@id.example.com', false],
  ['https://id.example.com/?a=b', false],
  ['https://id.example.com/#a', false],
]

const times: readonly (readonly [unknown, boolean])[] = [
  [0, true],
  [4_294_967_295, true],
  [4_294_967_296, false],
  [-1, false],
  [1.5, false],
  ['60', false],
]

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  describe('an enabled module needs', () => {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') return
    for (const field of Object.keys(complete)) {
      for (const [what, value] of [
        ['missing', undefined],
        ['null', null],
        ['empty', ''],
      ]) {
        test(`${field}; ${what} is refused every way, and nothing changes`, async () => {
          const route = await world.make('https_edge_route', { oidc: complete })
          const oidc = { ...complete, [field]: value }
          const tries = [
            ['PUT', `${route.path}/oidc`, oidc, `\`${field}\``],
            ['PATCH', route.path, { oidc }, `\`oidc.${field}\``],
            [
              'POST',
              route.path.slice(0, route.path.lastIndexOf('/')),
              { ...(await world.least('https_edge_route')), oidc },
              `\`oidc.${field}\``,
            ],
          ] as const
          for (const [method, path, body, name] of tries) {
            const { msg } = await target.api.refused('ERR_FIELD_REQUIRED', method, path, { body })
            assert.ok(msg.includes(name), msg)
            assert.ok(!msg.includes(complete.client_secret), msg)
          }
          assert.deepEqual(await target.api.get(route.path), route.body)
        })
      }
    }
  })

  test('a disabled module may lack its fields, but cannot be enabled without them', async () => {
    const { path } = await world.make('https_edge_route')
    const bare = await target.api.put(`${path}/oidc`, { enabled: false })
    assert.deepEqual([bare.issuer, bare.client_id, bare.client_secret, bare.cookie_prefix], ['', '', '', ''])
    await target.api.refused('ERR_FIELD_REQUIRED', 'PUT', `${path}/oidc`, { body: { enabled: true } })
    await target.api.refused('ERR_FIELD_REQUIRED', 'PUT', `${path}/oidc`, { body: {} })
  })

  for (const [issuer, isFine] of issuers) {
    // Checked before the store is used, so one store is enough.
    if (target.name === 'postgres') continue
    test(`issuer ${issuer} is ${isFine ? 'kept as sent' : 'refused'}`, async () => {
      const { path } = await world.shared('https_edge_route')
      const body = { ...complete, issuer }
      if (isFine) return assert.equal((await target.api.put(`${path}/oidc`, body)).issuer, issuer)
      const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/oidc`, { body })
      assert.match(msg, /`issuer`/)
      assert.ok(!msg.includes('hunter2'), msg)
    })
  }

  for (const field of ['inactivity_timeout', 'maximum_duration']) {
    for (const [value, isFine] of times) {
      // PostgreSQL has to keep what is accepted.
      if (target.name === 'postgres' && !isFine) continue
      test(`${field} ${JSON.stringify(value)} is ${isFine ? 'accepted' : 'refused'}`, async () => {
        const { path } = await world.shared('https_edge_route')
        const body = { ...complete, [field]: value }
        if (isFine) return assert.equal((await target.api.put(`${path}/oidc`, body))[field], value)
        const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/oidc`, { body })
        assert.ok(msg.includes(`\`${field}\``), msg)
      })
    }
  }

  test('the secret is returned as stored by PUT, GET, the route and its edge', async () => {
    const secret = `${unique('secret')} ünd "quotes" \\`
    const route = await world.make('https_edge_route', { oidc: { ...complete, client_secret: secret } })
    assert.equal(route.body.oidc.client_secret, secret)
    assert.equal((await target.api.get(`${route.path}/oidc`)).client_secret, secret)
    assert.equal((await target.api.get(route.path)).oidc.client_secret, secret)
    const edge = await target.api.get(`/edges/https/${route.body.edge_id}`)
    assert.equal(edge.routes[0].oidc.client_secret, secret)
    assert.equal((await target.api.update(route.path, { description: 'new' })).oidc.client_secret, secret)
  })

  const { platform } = target
  if (platform) {
    test('the secret is neither in the database nor in the log', async () => {
      const { databaseUrl, log } = platform()
      const client_id = unique('client')
      const client_secret = unique('secret')
      const { path } = await world.make('https_edge_route', { oidc: { ...complete, client_id, client_secret } })
      await target.api.put(`${path}/oidc`, { ...complete, client_id, client_secret })
      const stored = await databaseContents(databaseUrl)
      // A value that is not secret is found, which proves that the search works.
      assert.ok(stored.includes(client_id))
      assert.ok(!stored.includes(client_secret))
      assert.ok(!log.join('').includes(client_secret))
    })
  }
})
