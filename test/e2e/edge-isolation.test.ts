/** The guards of one edge cannot be bypassed through another edge, or through connections that were open before. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import type { ConnectionOptions, SecureVersion } from 'node:tls'
import { bareSession } from '../../src/data-plane/edge/testing/test-front.ts'
import { authority, leaf, type Pair } from './edges/identities.ts'
import { listener, type Recorder, recorder } from './edges/upstreams.ts'
import { askHttp1, askHttp2, dial, dialled, type EdgeEntry, http2Over, readToEnd, versions } from './edges/visitor.ts'
import { type HttpsEdge, World } from './edges/world.ts'

let world: World
/** The service behind every edge with a guard. */
let guarded: Recorder
/** The service behind every edge without one. */
let open: Recorder
let caOne: string
let caTwo: string
let one: Pair
let two: Pair
before(async () => {
  world = await World.start()
  guarded = await recorder(world)
  open = await recorder(world)
  const [first, second] = [await authority('authority one'), await authority('authority two')]
  caOne = (await world.api.create('/certificate_authorities', { ca_pem: first.certificatePem })).id
  caTwo = (await world.api.create('/certificate_authorities', { ca_pem: second.certificatePem })).id
  one = await leaf(first, { name: 'CN=one' })
  two = await leaf(second, { name: 'CN=two' })
})
after(() => world.stop())

const listenerName = (name: string): EdgeEntry => ({ name, port: world.platform.httpsPort, ca: world.platform.ca })
const mutual = (id: string) => ({ mutual_tls: { certificate_authority_ids: [id] } })

/** Statuses of visits, 0 when no answer came. */
async function status(name: string, tls: ConnectionOptions): Promise<number> {
  try {
    return (await world.ask(name, { tls })).status
  } catch {
    return 0
  }
}

describe('a TLS session', () => {
  /** Returns a TLS session from a visit that was served, to be offered elsewhere. */
  async function sessionFrom(name: string, tls: ConnectionOptions): Promise<ConnectionOptions> {
    const socket = await dialled(listenerName(name), { tls })
    let session: Buffer | undefined
    socket.on('session', (given: Buffer) => {
      session = given
    })
    assert.equal((await askHttp1(socket, { name })).status, 200)
    // Over TLS 1.3 a session may come at any time up to the answer, and a server need not give any.
    session ??= socket.getSession()
    socket.destroy()
    return session ? bareSession(session) : {}
  }

  async function isResumed(name: string, tls: ConnectionOptions): Promise<boolean> {
    const socket = await dialled(listenerName(name), { tls })
    const { status: given } = await askHttp1(socket, { name })
    assert.equal(given, 200)
    const resumed = socket.isSessionReused()
    socket.destroy()
    return resumed
  }

  for (const version of ['TLSv1.2', 'TLSv1.3'] as const satisfies SecureVersion[]) {
    const only = { minVersion: version, maxVersion: version }

    test(`is resumed by the edge that gave it, over ${version}`, async () => {
      const { name } = await world.httpsTo(open)
      assert.equal(await isResumed(name, { ...only, ...(await sessionFrom(name, only)) }), true)
    })

    test(`of an open edge does not bypass mutual TLS of another, over ${version}`, async () => {
      const from = await world.httpsTo(open)
      const to = await world.httpsTo(guarded, { modules: mutual(caOne) })
      const session = await sessionFrom(from.name, only)
      const before = guarded.seen.length
      assert.equal(await status(to.name, { ...only, ...session }), 0)
      assert.equal(guarded.seen.length, before)
      assert.equal(await status(to.name, { ...only, ...session, ...one }), 200, 'a certificate does')
      assert.equal(guarded.last.get('postern-mtls-subject-cn'), 'one')
    })

    test(`of one edge with mutual TLS does not bypass that of another, over ${version}`, async () => {
      const from = await world.httpsTo(guarded, { modules: mutual(caOne) })
      const to = await world.httpsTo(guarded, { modules: mutual(caTwo) })
      const twin = await world.httpsTo(guarded, { modules: mutual(caOne) })
      const session = await sessionFrom(from.name, { ...only, ...one })
      const before = guarded.seen.length
      assert.equal(await status(to.name, { ...only, ...session }), 0)
      assert.equal(await status(to.name, { ...only, ...session, ...one }), 0)
      assert.equal(await status(twin.name, { ...only, ...session }), 0, 'not even with the same authorities')
      assert.equal(guarded.seen.length, before)
      assert.equal(await status(to.name, { ...only, ...session, ...two }), 200)
      assert.equal(guarded.last.get('postern-mtls-subject-cn'), 'two', 'the visitor has its new identity')
    })

    test(`from before mutual TLS was turned on does not bypass it, over ${version}`, async () => {
      const edge = await world.httpsTo(guarded)
      const session = await sessionFrom(edge.name, only)
      assert.equal(await isResumed(edge.name, { ...only, ...session }), true)
      await world.api.put(`${edge.path}/mutual_tls`, mutual(caOne).mutual_tls)
      await world.inForce()
      const before = guarded.seen.length
      assert.equal(await status(edge.name, { ...only, ...session }), 0)
      assert.equal(guarded.seen.length, before)
    })

    test(`from before the authorities changed does not bypass the new ones, over ${version}`, async () => {
      const edge = await world.httpsTo(guarded, { modules: mutual(caOne) })
      const session = await sessionFrom(edge.name, { ...only, ...one })
      await world.api.put(`${edge.path}/mutual_tls`, mutual(caTwo).mutual_tls)
      await world.inForce()
      const before = guarded.seen.length
      assert.equal(await status(edge.name, { ...only, ...session }), 0)
      assert.equal(await status(edge.name, { ...only, ...session, ...one }), 0)
      assert.equal(guarded.seen.length, before)
    })

    test(`of an HTTPS edge does not bypass mutual TLS of a TLS edge, over ${version}`, async (t) => {
      const bytes = await listener(t, (socket) => socket.end('hello'))
      const from = await world.httpsTo(open)
      const to = await world.tlsEdge({ backend: await world.toAddress(bytes), ...mutual(caOne) })
      const session = await sessionFrom(from.name, only)
      const read = await readToEnd(dial(listenerName(to.name), { tls: { ...only, ...session } }))
      assert.deepEqual([read.toString(), bytes.sockets.length], ['', 0])
    })
  }

  test('over TLS 1.2 does not bypass an edge, nor a change, that requires 1.3', async () => {
    const only: ConnectionOptions = { maxVersion: 'TLSv1.2' }
    const from = await world.httpsTo(open)
    const to = await world.httpsTo(guarded, { modules: { tls_termination: { min_version: '1.3' } } })
    const before = guarded.seen.length
    const session = await sessionFrom(from.name, only)
    assert.equal(await status(to.name, { ...only, ...session }), 0)
    assert.equal(guarded.seen.length, before)

    const raised = await world.httpsTo(open)
    const own = await sessionFrom(raised.name, only)
    await world.api.put(`${raised.path}/tls_termination`, { min_version: '1.3' })
    await world.inForce()
    assert.equal(await status(raised.name, { ...only, ...own }), 0)
    assert.equal(await status(raised.name, {}), 200)
  })
})

describe('a connection to an open edge', () => {
  let entry: HttpsEdge
  let inside: Record<string, HttpsEdge>
  before(async () => {
    entry = await world.httpsTo(open)
    const nobody = await world.ipPolicy({ allow: ['192.0.2.0/24'] })
    inside = {
      'mutual TLS': await world.httpsTo(guarded, { modules: mutual(caOne) }),
      'a minimum TLS version': await world.httpsTo(guarded, { modules: { tls_termination: { min_version: '1.3' } } }),
      'an IP restriction': await world.httpsTo(guarded, { ip_restriction: { ip_policy_ids: [nobody] } }),
    }
  })

  for (const guard of ['mutual TLS', 'a minimum TLS version', 'an IP restriction']) {
    test(`does not bypass ${guard} of another, whatever its Host header`, async () => {
      const { name = '' } = inside[guard] ?? {}
      const before = guarded.seen.length
      // A version that the other edge would refuse in a handshake of its own.
      const tls = { maxVersion: 'TLSv1.2' } as const
      for (const host of [name, `${name}:443`, `${name}.`, name.toUpperCase(), `${name}:${world.platform.httpsPort}`]) {
        for (const version of versions) {
          const answer = await world.ask(entry.name, { version, host, tls })
          assert.deepEqual([host, answer.status, answer.code], [host, 421, 'ERR_MISDIRECTED'])
        }
      }
      const socket = await dialled(listenerName(entry.name), { tls })
      const absolute = await askHttp1(socket, { name }, { path: `https://${name}/` })
      assert.equal(absolute.status, 421)
      socket.destroy()
      const headers = { 'x-forwarded-host': name, 'x-host': name, forwarded: `host=${name}`, 'x-original-url': '/' }
      for (const version of versions) assert.equal((await world.ask(entry.name, { version, headers })).status, 200)
      assert.equal(guarded.seen.length, before)
    })

    test(`does not bypass ${guard} of another with two names in one request`, async () => {
      const { name = '' } = inside[guard] ?? {}
      const before = guarded.seen.length
      const twice: [host: string, headers: Record<string, string | string[]>, path: string][] = [
        [entry.name, { Host: name }, '/'],
        [name, { host: entry.name }, '/'],
        [entry.name, {}, `https://${name}/`],
        [name, {}, `https://${entry.name}/`],
        [`${entry.name}, ${name}`, {}, '/'],
        [`${name}@${entry.name}`, {}, '/'],
        [`${entry.name}/${name}`, {}, '/'],
        [`${entry.name} ${name}`, {}, '/'],
        ['', {}, '/'],
      ]
      for (const [host, headers, path] of twice) {
        const answer = await world.ask(entry.name, { host, headers, path })
        assert.deepEqual([host, path, answer.code], [host, path, 'ERR_BAD_VISITOR_REQUEST'])
      }
      for (const host of [name, entry.name.toUpperCase().concat(',')]) {
        const answer = await world.ask(entry.name, { version: '2', headers: { host } })
        assert.equal(answer.status, 400, 'a Host that differs from :authority')
      }
      assert.equal(guarded.seen.length, before)
    })
  }

  test('still serves its own edge after a refusal, and judges each HTTP/2 request separately', async () => {
    const session = http2Over(await dialled(listenerName(entry.name), { version: '2' }), entry)
    const hosts = [entry.name, ...Object.values(inside).map(({ name }) => name), entry.name]
    const answers = await Promise.all(hosts.map((host) => askHttp2(session, { name: host })))
    assert.deepEqual(
      answers.map((answer) => answer.status),
      [200, 421, 421, 421, 200],
    )
    session.destroy()
  })

  test('cannot forge identity headers, in any number and spelling', async () => {
    const names = [
      'postern-mtls-subject-cn',
      'Postern-Mtls-Subject-Cn',
      'postern_mtls_subject_cn',
      'postern-mtls_subject-cn',
      'postern-auth-user-email',
    ]
    for (const name of names) {
      for (const version of versions) {
        const headers = { [name]: ['one', 'two'], 'x-real': 'kept' }
        const trailers = { [name]: 'three' }
        assert.equal((await world.ask(entry.name, { version, headers })).status, 200)
        assert.equal((await world.ask(entry.name, { version, method: 'POST', body: 'x', trailers })).status, 200)
        assert.deepEqual(
          open.seen.slice(-2).flatMap((seen) => seen.names.filter((each) => /postern|_/i.test(each))),
          [],
        )
      }
    }
    const about = { headers: { connection: 'x-forwarded-for, x-forwarded-proto, host, postern-mtls-subject-cn' } }
    await world.ask(entry.name, about)
    assert.deepEqual([open.last.get('x-forwarded-for'), open.last.get('host')], ['127.0.0.1', entry.name])
  })
})

describe('a connection that was open before', () => {
  const changes: Record<string, (edge: HttpsEdge) => Promise<unknown>> = {
    'mutual TLS was turned on': ({ path }) => world.api.put(`${path}/mutual_tls`, mutual(caOne).mutual_tls),
    'the minimum version was raised': ({ path }) => world.api.put(`${path}/tls_termination`, { min_version: '1.3' }),
    'its name moved to an edge with mutual TLS': async ({ path, name }) => {
      await world.api.update(path, { hostports: [] })
      const backend = await world.toAddress(guarded)
      await world.httpsEdge({ names: [name], modules: mutual(caOne), routes: [{ backend }] })
    },
  }
  for (const [what, change] of Object.entries(changes)) {
    for (const version of versions) {
      test(`${what}: it is refused from then on, over HTTP/${version}`, async () => {
        const edge = await world.httpsTo(guarded)
        const socket = await dialled(listenerName(edge.name), { version, tls: { maxVersion: 'TLSv1.2' } })
        const session = version === '2' ? http2Over(socket, edge) : undefined
        const ask = () => (session ? askHttp2(session, edge) : askHttp1(socket, edge))
        assert.equal((await ask()).status, 200)
        await change(edge)
        await world.inForce()
        const before = guarded.seen.length
        const after = await ask().then(
          (answer) => answer.status,
          () => 421,
        )
        assert.equal(after, 421)
        assert.equal(guarded.seen.length, before)
        session?.destroy()
        socket.destroy()
      })
    }
  }

  test('is refused when the authority of its certificate is removed', async () => {
    const edge = await world.httpsTo(guarded, { modules: mutual(caOne) })
    const socket = await dialled(listenerName(edge.name), { tls: { ...one } })
    assert.equal((await askHttp1(socket, edge)).status, 200)
    await world.api.put(`${edge.path}/mutual_tls`, mutual(caTwo).mutual_tls)
    await world.inForce()
    const before = guarded.seen.length
    const after = await askHttp1(socket, edge).then(
      (answer) => answer.status,
      () => 421,
    )
    assert.equal(after, 421)
    assert.equal(guarded.seen.length, before)
    socket.destroy()
  })
})

describe('a configuration that cannot be compiled', () => {
  /** Changes stored data behind the API's back; returns a function that restores it. */
  function spoil(table: 'modules' | 'resources', column: string, where: string, change: (stored: string) => string) {
    const database = new DatabaseSync(world.platform.databaseUrl.slice('sqlite:'.length))
    database.exec('PRAGMA busy_timeout = 5000')
    const { stored } = database.prepare(`SELECT ${column} AS stored FROM ${table} WHERE ${where}`).get() as {
      stored: string
    }
    const write = database.prepare(`UPDATE ${table} SET ${column} = ? WHERE ${where}`)
    write.run(change(stored))
    return () => {
      write.run(stored)
      database.close()
    }
  }

  const spoilModule = (host: string, module: string, config: unknown) =>
    spoil('modules', 'config', `host_id = '${host}' AND module = '${module}'`, () => JSON.stringify(config))

  const broken: Record<string, [module: string, good: object, bad: object]> = {
    'an invalid pattern': ['user_agent_filter', { deny: ['a'] }, { enabled: true, allow: [], deny: ['('] }],
    'a secret that cannot be opened': [
      'webhook_verification',
      { provider: 'github', secret: 's' },
      { enabled: true, provider: 'github', secret: { sealed: 'nonsense' } },
    ],
    'an unknown sender': [
      'webhook_verification',
      { provider: 'gitlab', secret: 's' },
      { enabled: true, provider: 'nobody', secret: '' },
    ],
  }
  for (const [what, [module, good, bad]] of Object.entries(broken)) {
    test(`on a route keeps everybody out of it, logs why, and affects nothing else: ${what}`, async () => {
      const backend = await world.toAddress(guarded)
      const edge = await world.httpsEdge({
        routes: [
          { backend, [module]: good },
          { match: '/other', backend },
        ],
      })
      const [route, other] = edge.routes
      assert.ok(route && other)
      const repair = spoilModule(route.id, module, bad)
      const before = guarded.seen.length
      // The edge is compiled again with a change to something else.
      await world.api.create(`${edge.path}/routes`, { match_type: 'path_prefix', match: '/new' })
      await world.inForce()
      for (const version of versions) {
        const answer = await world.ask(edge.name, { version })
        assert.deepEqual([answer.status, answer.code], [503, 'ERR_MODULE_UNAVAILABLE'])
      }
      assert.equal(guarded.seen.length, before)
      assert.equal((await world.ask(edge.name, { path: '/other' })).status, 200)
      const [line] = world.logged('route is broken and refuses traffic').filter((each) => each.route === route.id)
      assert.equal(line?.edge, edge.id)
      assert.match(line?.reason, /./)

      repair()
      await world.api.delete(`${route.path}/${module}`)
      await world.inForce()
      assert.equal((await world.ask(edge.name)).status, 200, 'and it can be repaired')
    })
  }

  test('on an edge keeps everybody out of it', async (t) => {
    const bytes = await listener(t, (socket) => socket.end('hello'))
    const backend = await world.toAddress(bytes)
    const policy = await world.ipPolicy({ allow: ['127.0.0.0/8'] })
    const https = await world.httpsTo(guarded, { modules: mutual(caOne) })
    const tls = await world.tlsEdge({ backend, ...mutual(caOne) })
    const tcp = await world.tcpEdge({ backend, ip_restriction: { ip_policy_ids: [policy] } })
    const nobody = { enabled: true, certificate_authority_ids: [] }
    t.after(spoilModule(https.id, 'mutual_tls', nobody))
    t.after(spoilModule(tls.id, 'mutual_tls', nobody))
    t.after(spoilModule(tcp.id, 'ip_restriction', { enabled: true, ip_policy_ids: ['ipp_gone'] }))
    for (const { path } of [https, tls, tcp]) await world.api.update(path, { description: 'changed' })
    await world.inForce()
    const before = guarded.seen.length
    assert.equal(await status(https.name, { ...one }), 0)
    assert.equal(guarded.seen.length, before)
    const secured = await readToEnd(dial(listenerName(tls.name), { tls: { ...one } }))
    const plain = await readToEnd(connect(tcp.port, '127.0.0.1'))
    assert.deepEqual([secured.toString(), plain.toString(), bytes.sockets.length], ['', '', 0])
    const logged = world.logged('edge is broken and refuses traffic').map(({ edge }) => edge)
    for (const { id } of [https, tls, tcp]) assert.ok(logged.includes(id))
  })

  test("because of an edge's names affects no other edge", async () => {
    const edge = await world.httpsTo(guarded)
    const repair = spoil('resources', 'fields', `id = '${edge.id}'`, (fields) =>
      JSON.stringify({ ...JSON.parse(fields), hostports: ['no hostport'] }),
    )
    try {
      await world.api.create(`${edge.path}/routes`, { match_type: 'path_prefix', match: '/new' })
      const other = await world.httpsTo(open)
      assert.equal((await world.ask(other.name)).status, 200)
    } finally {
      repair()
    }
  })
})
