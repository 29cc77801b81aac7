/** Where TLS ends, and which modules that allows: contract 2.9, D31 to D34. */
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { makeRefs, type Refs } from './module-table.ts'
import { eachTarget, uniqueName } from './target.ts'
import { type Made, World } from './world.ts'

const upstream = { terminate_at: 'upstream' }
const rule = (expression: string) => ({
  inbound: [{ expressions: [expression], actions: [{ type: 'deny', config: {} }] }],
})

/** Modules that need to read inside the traffic. */
const blind: Readonly<Record<string, (refs: Refs) => { name: string; config: object }>> = {
  'mutual TLS': ({ authorities: [one] }) => ({ name: 'mutual_tls', config: { certificate_authority_ids: [one.id] } }),
  'a policy that reads the handshake': () => ({ name: 'policy', config: rule("conn.tls.version == '1.3'") }),
  'a policy that logs the handshake': () => ({
    name: 'policy',
    config: {
      inbound: [{ actions: [{ type: 'log', config: { metadata: { v: '${conn.tls.cipher_suite}' } } }] }],
    },
  }),
}

/** Modules that need only the connection. */
const fine: Readonly<Record<string, (refs: Refs) => object>> = {
  backend: ({ tunnelGroup }) => ({ backend_id: tunnelGroup.id }),
  ip_restriction: ({ ipPolicies: [one] }) => ({ ip_policy_ids: [one.id] }),
  policy: () => rule("conn.client_ip == '192.0.2.1' && conn.tls.sni == 'a.example.com'"),
}

eachTarget((target) => {
  let world: World
  let refs: Refs
  before(async () => {
    world = new World(target.api)
    refs = await makeRefs(world)
  })

  for (const [what, describeModule] of Object.entries(blind)) {
    // The modules that are stored and the one that is written are compared in one way, whichever needs to read inside.
    if (target.name === 'postgres' && what !== 'mutual TLS') continue
    describe(`with \`upstream\`, ${what} is refused`, () => {
      const atEdge = async () => {
        const { name, config } = describeModule(refs)
        return world.make('tls_edge', { tls_termination: { terminate_at: 'edge' }, [name]: config })
      }
      const refuses = async (edge: Made, method: string, part: string, body: object) => {
        const { name } = describeModule(refs)
        const before = await target.api.get(edge.path)
        const { msg } = await target.api.refused('ERR_MODULE_NEEDS_TERMINATION', method, `${edge.path}${part}`, {
          body,
        })
        assert.ok(msg.includes(`\`${name}\``), msg)
        assert.deepEqual(await target.api.get(edge.path), before)
      }

      test('in a POST with both', async () => {
        const { name, config } = describeModule(refs)
        const hostports = [uniqueName()]
        const body = { hostports, tls_termination: upstream, [name]: config }
        await target.api.refused('ERR_MODULE_NEEDS_TERMINATION', 'POST', '/edges/tls', { body })
        // The refused request did not claim the name.
        await target.api.create('/edges/tls', { hostports })
      })

      test('in a PATCH that sets `upstream`', async () => {
        await refuses(await atEdge(), 'PATCH', '', { description: 'new', tls_termination: upstream })
      })

      test('in a PATCH that sets the module', async () => {
        const { name, config } = describeModule(refs)
        const edge = await world.make('tls_edge', { tls_termination: upstream })
        await refuses(edge, 'PATCH', '', { description: 'new', [name]: config })
      })

      test('in a PATCH that sets both', async () => {
        const { name, config } = describeModule(refs)
        await refuses(await world.make('tls_edge'), 'PATCH', '', { tls_termination: upstream, [name]: config })
      })

      test('in the PUT of `tls_termination`', async () => {
        await refuses(await atEdge(), 'PUT', '/tls_termination', upstream)
      })

      test('in the PUT of the module', async () => {
        const { name, config } = describeModule(refs)
        await refuses(await world.make('tls_edge', { tls_termination: upstream }), 'PUT', `/${name}`, config)
      })

      test('when a PUT or PATCH would enable a disabled module', async () => {
        const { name, config } = describeModule(refs)
        const disabled = { ...config, enabled: false }
        const edge = await world.make('tls_edge', { tls_termination: upstream, [name]: disabled })
        await refuses(edge, 'PUT', `/${name}`, config)
        await refuses(edge, 'PATCH', '', { [name]: { ...config, enabled: true } })
      })

      test('but not while it is disabled', async () => {
        const { name, config } = describeModule(refs)
        const disabled = { ...config, enabled: false }
        await world.make('tls_edge', { tls_termination: upstream, [name]: disabled })
        const edge = await world.make('tls_edge', { [name]: disabled })
        await target.api.update(edge.path, { tls_termination: upstream })
        await target.api.put(`${edge.path}/${name}`, disabled)
        await target.api.put(`${edge.path}/tls_termination`, upstream)
        await target.api.update(edge.path, { [name]: disabled, tls_termination: upstream })
      })

      test('and one PATCH may end TLS at the edge and set the module', async () => {
        const { name, config } = describeModule(refs)
        const edge = await world.make('tls_edge', { tls_termination: upstream })
        const patched = await target.api.update(edge.path, {
          tls_termination: { terminate_at: 'edge' },
          [name]: config,
        })
        assert.equal(patched[name].enabled, true)
      })
    })
  }

  for (const [name, config] of Object.entries(fine)) {
    test(`with \`upstream\`, ${name} that needs only the connection is allowed in every request`, async () => {
      await world.make('tls_edge', { tls_termination: upstream, [name]: config(refs) })
      const edge = await world.make('tls_edge', { tls_termination: upstream })
      await target.api.update(edge.path, { [name]: config(refs) })
      await target.api.put(`${edge.path}/${name}`, config(refs))
      await target.api.put(`${edge.path}/tls_termination`, upstream)
    })
  }

  test('actions that need HTTP are refused on a TLS edge wherever TLS ends', async () => {
    const policy = { inbound: [{ actions: [{ type: 'redirect', config: { to: 'https://example.com' } }] }] }
    for (const terminate_at of ['edge', 'upstream']) {
      const body = { tls_termination: { terminate_at }, policy }
      await target.api.refused('ERR_BAD_POLICY', 'POST', '/edges/tls', { body })
    }
  })

  test('mutual TLS needs no `tls_termination`, and works with a disabled one', async () => {
    const mutual_tls = { certificate_authority_ids: [refs.authorities[0].id] }
    const edge = await world.make('tls_edge', { mutual_tls })
    assert.equal(edge.body.tls_termination, null)
    await target.api.put(`${edge.path}/tls_termination`, { enabled: false, terminate_at: 'upstream' })
    assert.equal((await target.api.get(edge.path)).mutual_tls.enabled, true)
  })

  for (const host of ['tls_edge', 'https_edge'] as const) {
    for (const [sent, shown] of [
      ['1.0', '1.0'],
      ['1.1', '1.1'],
      ['1.2', '1.2'],
      ['1.3', '1.3'],
      [null, null],
    ] as const) {
      test(`min_version ${sent} of ${host} reads back ${shown}`, async () => {
        const { path } = await world.make(host, { tls_termination: { min_version: '1.1' } })
        const put = await target.api.put(`${path}/tls_termination`, { min_version: sent })
        assert.deepEqual(put, { enabled: true, terminate_at: 'edge', min_version: shown })
      })
    }

    for (const min_version of ['1.4', '1', 'TLSv1.2', 'tls1.2', ' 1.2', 1.2, true]) {
      // Refused before the store is used, so one store is enough.
      if (target.name === 'postgres') continue
      test(`min_version ${JSON.stringify(min_version)} of ${host} is refused`, async () => {
        const { path } = await world.shared(host)
        const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/tls_termination`, {
          body: { min_version },
        })
        assert.match(msg, /`min_version`.*`1\.2`/)
        await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { tls_termination: { min_version } } })
      })
    }
  }

  test('min_version with `upstream` is refused every way, and nothing changes', async () => {
    const tls_termination = { terminate_at: 'upstream', min_version: '1.2' }
    const code = 'ERR_MIN_VERSION_NOT_ALLOWED'
    await target.api.refused(code, 'POST', '/edges/tls', { body: { tls_termination } })
    const { path } = await world.make('tls_edge', { tls_termination: { min_version: '1.2' } })
    const before = await target.api.get(path)
    await target.api.refused(code, 'PATCH', path, { body: { description: 'new', tls_termination } })
    const { msg } = await target.api.refused(code, 'PUT', `${path}/tls_termination`, { body: tls_termination })
    assert.match(msg, /`min_version`/)
    assert.deepEqual(await target.api.get(path), before)
    // A PUT replaces everything, so the stored version does not matter.
    const put = await target.api.put(`${path}/tls_termination`, { terminate_at: 'upstream', min_version: null })
    assert.deepEqual(put, { enabled: true, terminate_at: 'upstream', min_version: null })
  })

  for (const terminate_at of ['agent', 'Edge', '', 1]) {
    // Refused before the store is used, so one store is enough.
    if (target.name === 'postgres') continue
    test(`terminate_at ${JSON.stringify(terminate_at)} of a TLS edge is refused`, async () => {
      const { path } = await world.shared('tls_edge')
      const { msg } = await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/tls_termination`, {
        body: { terminate_at },
      })
      assert.match(msg, /`terminate_at`.*`edge`.*`upstream`/)
    })
  }

  test('an HTTPS edge accepts only `edge` as terminate_at, in every request', async () => {
    const { path } = await world.make('https_edge', { tls_termination: { terminate_at: 'edge' } })
    await target.api.put(`${path}/tls_termination`, await target.api.get(`${path}/tls_termination`))
    const before = await target.api.get(path)
    for (const terminate_at of ['upstream', 'agent', '']) {
      const tls_termination = { terminate_at }
      await target.api.refused('ERR_INVALID_VALUE', 'POST', '/edges/https', { body: { tls_termination } })
      await target.api.refused('ERR_INVALID_VALUE', 'PATCH', path, { body: { tls_termination } })
      await target.api.refused('ERR_INVALID_VALUE', 'PUT', `${path}/tls_termination`, { body: tls_termination })
    }
    assert.deepEqual(await target.api.get(path), before)
  })
})
