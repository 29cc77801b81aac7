/** The three login modules of a route: only one may be enabled. Also what `oauth` and `saml` need and store. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { databaseContents } from '../support/database-contents.ts'
import { IDP_METADATA } from './idp-metadata.ts'
import { eachTarget, unique } from './target.ts'
import { World } from './world.ts'

const logins = {
  oauth: { provider: { github: { client_id: 'shop', client_secret: 'keep-this' } } },
  oidc: { issuer: 'https://id.example.com', client_id: 'shop', client_secret: 'keep-this' },
  saml: { idp_metadata: IDP_METADATA },
}
type Login = keyof typeof logins
const names = Object.keys(logins) as Login[]
const pairs = names.flatMap((first) =>
  names.filter((second) => second !== first).map((second) => [first, second] as const),
)

eachTarget((target) => {
  let world: World
  before(() => {
    world = new World(target.api)
  })

  for (const [first, second] of pairs) {
    test(`with ${first} enabled, ${second} is refused every way, and nothing changes`, async () => {
      const route = await world.make('https_edge_route', { [first]: logins[first], [second]: { enabled: false } })
      const tries = [
        ['PUT', `${route.path}/${second}`, logins[second]],
        ['PATCH', route.path, { description: 'new', [second]: logins[second] }],
        [
          'POST',
          route.path.slice(0, route.path.lastIndexOf('/')),
          { ...(await world.least('https_edge_route')), ...logins },
        ],
      ] as const
      for (const [method, path, body] of tries) {
        const { msg, status_code } = await target.api.refused('ERR_SEVERAL_LOGINS', method, path, { body })
        assert.equal(status_code, 400)
        assert.ok(msg.includes(`\`${first}\``) && msg.includes(`\`${second}\``), msg)
      }
      assert.deepEqual(await target.api.get(route.path), route.body)
      const edge = await target.api.get(`/edges/https/${route.body.edge_id}`)
      assert.deepEqual(edge.routes, [route.body])
    })

    test(`from ${first} to ${second}: in one PATCH, after DELETE, or after disabling`, async () => {
      const off = { ...logins[first], enabled: false }
      const patched = await world.make('https_edge_route', { [first]: logins[first] })
      const after = await target.api.update(patched.path, { [first]: off, [second]: logins[second] })
      assert.deepEqual([after[first].enabled, after[second].enabled], [false, true])
      await target.api.refused('ERR_SEVERAL_LOGINS', 'PUT', `${patched.path}/${first}`, { body: logins[first] })

      const deleted = await world.make('https_edge_route', { [first]: logins[first] })
      await target.api.delete(`${deleted.path}/${first}`)
      await target.api.put(`${deleted.path}/${second}`, logins[second])

      const disabled = await world.make('https_edge_route', { [first]: logins[first] })
      await target.api.put(`${disabled.path}/${first}`, off)
      await target.api.put(`${disabled.path}/${second}`, logins[second])
    })
  }

  test('when all three are set concurrently, one is accepted', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { path } = await world.make('https_edge_route')
      const sent = names.map((name) => target.api.send('PUT', `${path}/${name}`, { body: logins[name] }))
      const statuses = (await Promise.all(sent)).map(({ status }) => status)
      assert.deepEqual(
        statuses.toSorted((a, b) => a - b),
        [200, 400, 400],
      )
      const route = await target.api.get(path)
      assert.deepEqual(
        names.map((name) => route[name]?.enabled === true),
        statuses.map((status) => status === 200),
      )
    }
  })

  test('each route of an edge has its own login', async () => {
    const edge = await world.make('https_edge')
    for (const name of names) await world.make('https_edge_route', { [name]: logins[name] }, edge)
  })

  describe('an enabled module needs', () => {
    const { client_id, client_secret } = logins.oauth.provider.github
    const bare: readonly (readonly [what: string, code: string, module: Login, body: object, field: string])[] = [
      ['a provider', 'ERR_PROVIDER_MISSING', 'oauth', {}, 'provider'],
      [
        'a client id',
        'ERR_FIELD_REQUIRED',
        'oauth',
        { provider: { google: { client_secret } } },
        'provider.google.client_id',
      ],
      [
        'a client secret',
        'ERR_FIELD_REQUIRED',
        'oauth',
        { provider: { google: { client_id } } },
        'provider.google.client_secret',
      ],
      ['metadata', 'ERR_FIELD_REQUIRED', 'saml', { idp_metadata: '' }, 'idp_metadata'],
    ]
    for (const [what, code, module, body, field] of bare) {
      test(`${what} (${module}); a disabled one does not`, async () => {
        const { path } = await world.make('https_edge_route')
        const put = await target.api.refused(code, 'PUT', `${path}/${module}`, { body })
        assert.ok(put.msg.includes(`\`${field}\``), put.msg)
        const patch = await target.api.refused(code, 'PATCH', path, { body: { [module]: body } })
        assert.ok(patch.msg.includes(`\`${module}.${field}\``), patch.msg)
        for (const { msg } of [put, patch]) assert.ok(!msg.includes(client_secret), msg)
        assert.equal((await target.api.put(`${path}/${module}`, { ...body, enabled: false })).enabled, false)
      })
    }
  })

  test('two providers are refused by name', async () => {
    const { path } = await world.make('https_edge_route')
    const body = { provider: { github: {}, twitch: {} } }
    const { msg } = await target.api.refused('ERR_SEVERAL_PROVIDERS', 'PUT', `${path}/oauth`, { body })
    assert.match(msg, /`github`, `twitch`/)
  })

  test('metadata that is not a well-formed entity, or has a DTD, is refused with the reason', async () => {
    const { path } = await world.make('https_edge_route')
    for (const [idp_metadata, reason] of [
      [IDP_METADATA.slice(0, -5), /line/],
      [IDP_METADATA.replace('?>', '?><!DOCTYPE x>'), /DTD/],
      [IDP_METADATA.replace('entityID=', 'x='), /entityID/],
      [IDP_METADATA.replaceAll('IDPSSODescriptor', 'SPSSODescriptor'), /IDPSSODescriptor/],
    ] as const) {
      const body = { idp_metadata }
      const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/saml`, { body })
      assert.match(msg, /`idp_metadata`/)
      assert.match(msg, reason)
    }
  })

  test('the secret of a provider is returned as stored by PUT, GET, the route and its edge', async () => {
    const client_secret = `${unique('secret')} ünd "quotes" \\`
    const oauth = { provider: { amazon: { client_id: 'shop', client_secret } } }
    const route = await world.make('https_edge_route', { oauth })
    const edge = await target.api.get(`/edges/https/${route.body.edge_id}`)
    const shown = [
      route.body.oauth,
      await target.api.get(`${route.path}/oauth`),
      (await target.api.get(route.path)).oauth,
      edge.routes[0].oauth,
      (await target.api.update(route.path, { description: 'new' })).oauth,
      await target.api.put(`${route.path}/oauth`, oauth),
    ]
    for (const each of shown) assert.equal(each.provider.amazon.client_secret, client_secret)
  })

  const { platform } = target
  if (platform) {
    test('the secret of a provider is neither in the database nor in the log', async () => {
      const { databaseUrl, log } = platform()
      const cookie_prefix = unique('prefix').replaceAll(/[^A-Za-z0-9]/g, '')
      const client_secret = unique('secret')
      const oauth = { cookie_prefix, provider: { google: { client_id: 'shop', client_secret } } }
      const { path } = await world.make('https_edge_route', { oauth })
      await target.api.put(`${path}/oauth`, oauth)
      const stored = await databaseContents(databaseUrl)
      // A value that is not secret is found, which proves that the search works.
      assert.ok(stored.includes(cookie_prefix))
      assert.ok(!stored.includes(client_secret))
      assert.ok(!log.join('').includes(client_secret))
    })
  }
})
