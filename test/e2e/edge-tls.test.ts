/** TLS at the edge: passed through unchanged, or ended with the configured versions and certificates. */
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { tlsIdentity } from '../support/tls-identity.ts'
import { until } from '../support/until.ts'
import { tlsUpstream } from '../support/upstream.ts'
import { clientHello } from './edges/client-hello.ts'
import { authority, extras, leaf, type Pair, validFor } from './edges/identities.ts'
import { listener, type Recorder, recorder } from './edges/upstreams.ts'
import { dial, dialled, type EdgeEntry, readToEnd, versions } from './edges/visitor.ts'
import { type HttpsEdge, type RawEdge, World } from './edges/world.ts'

/** The domain of the server: clients accept a wildcard below it, unlike below `localhost`. */
const DOMAIN = 'tunnels.test'

let world: World
before(async () => {
  world = await World.start({ flags: { domain: DOMAIN } })
})
after(() => world.stop())

const listenerName = (name: string): EdgeEntry => ({ name, port: world.platform.httpsPort, ca: world.platform.ca })

/** What a visitor reads from a TLS edge that greets it, or the error if it reads nothing. */
async function greeting(name: string, tls: ConnectionOptions): Promise<string> {
  const socket = dial(listenerName(name), { tls })
  let error = ''
  socket.on('error', (cause: NodeJS.ErrnoException) => {
    error ||= cause.code ?? cause.message
  })
  const read = await readToEnd(socket)
  return read.length > 0 ? read.toString() : error || 'closed'
}

describe('a TLS edge that passes TLS through', () => {
  test('passes the ClientHello to the service byte for byte, in any chunks, and the answer back', async (t) => {
    const service = await listener(t, (socket) => socket.once('data', () => socket.write('not TLS at all')))
    const { name, port } = await world.tlsEdge({ backend: await world.toAddress(service) })
    const hello = await clientHello((to) => connectTls({ port: to, host: '127.0.0.1', servername: name }))
    for (const pieces of [1, 2, hello.length]) {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      await once(socket, 'connect')
      const size = Math.ceil(hello.length / pieces)
      for (let at = 0; at < hello.length; at += size) {
        socket.write(hello.subarray(at, at + size))
        await new Promise((resolve) => setImmediate(resolve))
      }
      const [answer] = (await once(socket, 'data')) as [Buffer]
      assert.equal(answer.toString(), 'not TLS at all')
      await until('the service has all of it', () => service.received.at(-1)?.length === hello.length)
      assert.deepEqual(service.received.at(-1), hello)
      socket.destroy()
    }
  })

  test('lets the service end TLS with its own certificate, whatever the protocol inside', async (t) => {
    const name = world.name()
    const identity = await tlsIdentity([name])
    const service = await tlsUpstream(t, { cert: identity.cert, key: identity.key, ALPNProtocols: ['odd'] })
    await world.tlsEdge({ backend: await world.toAddress(service) }, [name])
    const socket = await dialled(listenerName(name), { tls: { ca: identity.ca, ALPNProtocols: ['odd'] } })
    assert.equal(socket.alpnProtocol, 'odd')
    socket.write('echo')
    assert.equal(String((await once(socket, 'data'))[0]), 'echo')
    socket.destroy()
  })

  test('also passes it through with `upstream`, or when termination is disabled', async (t) => {
    for (const tls_termination of [{ terminate_at: 'upstream' }, { terminate_at: 'edge', enabled: false }]) {
      const service = await listener(t)
      const { name, port } = await world.tlsEdge({ backend: await world.toAddress(service), tls_termination })
      const hello = await clientHello((to) => connectTls({ port: to, host: '127.0.0.1', servername: name }))
      const socket = connect(port, '127.0.0.1')
      socket.write(hello)
      await until('the service has the hello', () => service.received[0]?.equals(hello))
      socket.destroy()
    }
  })
})

describe('a TLS edge that ends TLS', () => {
  test('gives the service what was inside, in both directions, each until its own end', async (t) => {
    const service = await listener(t, (socket) => {
      socket.on('data', (chunk) => socket.write(chunk.toString().toUpperCase()))
      socket.on('end', () => socket.end('!'))
    })
    const backend = await world.toAddress(service)
    const { name } = await world.tlsEdge({ backend, tls_termination: {} })
    const socket = await dialled(listenerName(name))
    socket.allowHalfOpen = true
    socket.end('hello')
    assert.equal((await readToEnd(socket)).toString(), 'HELLO!')
    assert.equal(service.received[0]?.toString(), 'hello')
  })

  test('agrees on a protocol only when the visitor offers just one', async (t) => {
    const service = await listener(t)
    const { name } = await world.tlsEdge({ backend: await world.toAddress(service), tls_termination: {} })
    for (const [offered, agreed] of [
      [['mqtt'], 'mqtt'],
      [['h2', 'http/1.1'], false],
    ] as const) {
      const socket = await dialled(listenerName(name), { tls: { ALPNProtocols: [...offered] } })
      assert.equal(socket.alpnProtocol, agreed)
      socket.destroy()
    }
  })
})

describe('the minimum TLS version', () => {
  const old = { ciphers: 'DEFAULT@SECLEVEL=0' }
  const clients: Record<string, ConnectionOptions> = {
    '1.0': { minVersion: 'TLSv1', maxVersion: 'TLSv1', ...old },
    '1.1': { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ...old },
    '1.2': { maxVersion: 'TLSv1.2' },
    '1.3': { minVersion: 'TLSv1.3' },
  }
  const order = Object.keys(clients)
  for (const lowest of ['1.0', '1.1', '1.2', '1.3', null]) {
    test(`is ${lowest ?? '1.2 by default'}; lower ones get alert 70 and reach no service`, async (t) => {
      const service = await listener(t, (socket) => socket.end('hello'))
      const tls_termination = { min_version: lowest }
      const tls = await world.tlsEdge({ backend: await world.toAddress(service), tls_termination })
      const web = await recorder(t)
      const https = await world.httpsTo(web, { modules: { tls_termination } })
      for (const [version, options] of Object.entries(clients)) {
        const before = service.sockets.length
        const passes = order.indexOf(version) >= order.indexOf(lowest ?? '1.2')
        const read = await greeting(tls.name, options)
        assert.equal(read, passes ? 'hello' : 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', `a client of ${version}`)
        assert.equal(service.sockets.length - before, passes ? 1 : 0)
        const asked = await world.ask(https.name, { tls: options }).then(
          ({ status }) => status,
          () => 'nothing',
        )
        assert.equal(asked, passes ? 200 : 'nothing', `a client of ${version} over HTTPS`)
      }
      assert.equal(web.seen.length, service.sockets.length)
    })
  }

  test('causes alert 70 on the wire', async (t) => {
    const { name } = await world.httpsTo(await recorder(t), { modules: { tls_termination: { min_version: '1.3' } } })
    const hello = await clientHello((port) =>
      connectTls({ port, host: '127.0.0.1', servername: name, maxVersion: 'TLSv1.2' }),
    )
    const socket = connect(world.platform.httpsPort, '127.0.0.1')
    socket.write(hello)
    const answer = await readToEnd(socket)
    // An alert record: fatal, protocol_version.
    assert.deepEqual([answer[0], answer.subarray(5, 7).toString('hex')], [0x15, '0246'])
  })
})

describe('mutual TLS', () => {
  let trusted: string
  let good: Pair
  let https: HttpsEdge
  let tls: RawEdge
  let web: Recorder
  let bytes: Awaited<ReturnType<typeof listener>>
  /** Certificates by what is wrong with them. */
  let bad: Record<string, Pair | undefined>
  before(async () => {
    const ca = await authority('trusted')
    const other = await authority('other')
    const impostor = await authority('trusted')
    const between = await authority('between', { issuer: ca, serialNumber: '07' })
    trusted = (await world.api.create('/certificate_authorities', { ca_pem: ca.certificatePem })).id
    good = await leaf(ca, {
      name: 'CN=visitor, O=Example',
      serialNumber: '0a0b0c',
      extensions: await extras({
        usage: 'clientAuth',
        dns: ['a.example.com', 'b.example.com'],
        emails: ['v@example.com'],
      }),
    })
    const chained = await leaf(between, { name: 'CN=by a third' })
    bad = {
      'no certificate': undefined,
      'one of another authority': await leaf(other, { name: 'CN=visitor' }),
      'one of an impostor of the authority': await leaf(impostor, { name: 'CN=visitor' }),
      'one that is self-signed': await leaf(undefined, { name: 'CN=visitor' }),
      'one that is expired': await leaf(ca, { name: 'CN=visitor', ...validFor(-1) }),
      'one that is not valid yet': await leaf(ca, {
        name: 'CN=visitor',
        notBefore: new Date(Date.now() + 3_600_000),
        notAfter: new Date(Date.now() + 7_200_000),
      }),
      'one that is for servers': await leaf(ca, {
        name: 'CN=visitor',
        extensions: await extras({ usage: 'serverAuth' }),
      }),
      'one whose chain has a gap': chained,
    }
    bytes = await listener(world, (socket) => socket.end('hello'))
    web = await recorder(world)
    const mutual_tls = { certificate_authority_ids: [trusted] }
    https = await world.httpsTo(web, { modules: { mutual_tls } })
    tls = await world.tlsEdge({ backend: await world.toAddress(bytes), mutual_tls })
    whole = { cert: chained.cert + between.certificatePem, key: chained.key }
  })
  let whole: Pair

  for (const version of versions) {
    test(`tells the service whose certificate it is, over HTTP/${version}`, async () => {
      const headers = {
        'postern-mtls-subject-cn': 'forged',
        'Postern-Mtls-Serial-Number': 'forged',
        'postern-mtls-other': 'forged',
      }
      const { status } = await world.ask(https.name, { version, tls: { ...good }, headers })
      assert.equal(status, 200)
      const added = web.last.names.filter((name) => name.startsWith('postern'))
      assert.deepEqual(Object.fromEntries(added.map((name) => [name, web.last.all(name)])), {
        'postern-mtls-subject-cn': ['visitor'],
        'postern-mtls-subject-alt-name-dns': ['a.example.com,b.example.com'],
        'postern-mtls-email-addresses': ['v@example.com'],
        'postern-mtls-serial-number': ['0a0b0c'],
      })
    })
  }

  test('accepts a certificate of an intermediate authority that the visitor sends along', async () => {
    assert.equal((await world.ask(https.name, { tls: { ...whole } })).status, 200)
    assert.equal(await greeting(tls.name, { ...whole }), 'hello')
  })

  test('lets a visitor through to a TLS edge, which terminates TLS even without `tls_termination`', async () => {
    assert.equal(await greeting(tls.name, { ...good }), 'hello')
  })

  const faults = [
    'no certificate',
    'one of another authority',
    'one of an impostor of the authority',
    'one that is self-signed',
    'one that is expired',
    'one that is not valid yet',
    'one that is for servers',
    'one whose chain has a gap',
  ]
  for (const fault of faults) {
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      test(`keeps out a visitor with ${fault}, over ${maxVersion}`, async () => {
        assert.ok(fault in bad)
        const before = [web.seen.length, bytes.sockets.length]
        const options = { maxVersion, ...bad[fault] }
        for (const version of versions) {
          await assert.rejects(world.ask(https.name, { version, tls: options }), 'there is no answer')
        }
        const read = await greeting(tls.name, options)
        const isMissing = fault === 'no certificate'
        const missing = maxVersion === 'TLSv1.3' ? 'CERTIFICATE_REQUIRED' : 'HANDSHAKE_FAILURE'
        assert.match(read, new RegExp(`^ERR_SSL_.*ALERT_${isMissing ? missing : 'BAD_CERTIFICATE'}$`))
        assert.deepEqual([web.seen.length, bytes.sockets.length], before)
      })
    }
  }

  test('that is disabled requires nothing', async () => {
    const mutual_tls = { certificate_authority_ids: [trusted], enabled: false }
    const { name } = await world.httpsTo(web, { modules: { mutual_tls } })
    assert.equal((await world.ask(name)).status, 200)
    assert.equal((await world.ask(name, { tls: { ...good } })).status, 200)
    assert.deepEqual(
      web.last.names.filter((each) => each.startsWith('postern')),
      [],
      'an unrequested certificate identifies nobody',
    )
  })

  test('accepts any of several authorities', async () => {
    const second = await authority('second')
    const { id } = await world.api.create('/certificate_authorities', { ca_pem: second.certificatePem })
    const mutual_tls = { certificate_authority_ids: [trusted, id] }
    const { name } = await world.httpsTo(web, { modules: { mutual_tls } })
    assert.equal((await world.ask(name, { tls: { ...good } })).status, 200)
    const of = await leaf(second, { name: 'CN=second visitor' })
    assert.equal((await world.ask(name, { tls: { ...of } })).status, 200)
    assert.equal(web.last.get('postern-mtls-subject-cn'), 'second visitor')
    await assert.rejects(world.ask(name))
  })

  test('trusts the configured authority, though it is not a root', async () => {
    const root = await authority('root')
    const named = await authority('named', { issuer: root })
    const { id } = await world.api.create('/certificate_authorities', { ca_pem: named.certificatePem })
    const { name } = await world.httpsTo(web, { modules: { mutual_tls: { certificate_authority_ids: [id] } } })
    assert.equal((await world.ask(name, { tls: { ...(await leaf(named)) } })).status, 200)
    await assert.rejects(world.ask(name, { tls: { ...(await leaf(root)) } }), 'the issuer is not configured')
  })
})

describe('certificates', () => {
  const upload = async ({ cert, key }: Pair): Promise<string> => {
    const { id } = await world.api.create('/tls_certificates', { certificate_pem: cert, private_key_pem: key })
    return `/tls_certificates/${id}`
  }
  /** The issuer of the certificate that visitors of `name` are shown. */
  const shown = async (name: string): Promise<string> => {
    const socket = await dialled(listenerName(name), { tls: { rejectUnauthorized: false } })
    const certificate = socket.getPeerX509Certificate()
    socket.destroy()
    return certificate?.issuer ?? ''
  }
  const shows = (name: string, issuer: string) =>
    until(`${name} shows a certificate of ${issuer}`, async () => (await shown(name)) === `CN=${issuer}`)

  test("of the server's own authority are issued for every name, and valid for visitors who trust it", async () => {
    const names = [world.name(), `*.${world.name()}`]
    await world.httpsEdge({ names, routes: [] })
    for (const name of [names[0] ?? '', (names[1] ?? '').replace('*', 'a'), (names[1] ?? '').replace('*', 'a.b')]) {
      const socket = await dialled(listenerName(name))
      assert.equal(socket.authorized, true)
      socket.destroy()
    }
    assert.notEqual(new X509Certificate(world.platform.ca).subject, '')
  })

  test('that were uploaded are served for their names only, exact before wildcard, and at once', async () => {
    const base = world.name()
    const names = [`a.${base}`, `b.${base}`, `x.a.${base}`]
    const { path } = await world.httpsEdge({ names, routes: [] })
    const tls = await world.tlsEdge({ tls_termination: {}, backend: await world.toAddress({ address: '127.0.0.1:1' }) })
    const own = await shown(`a.${base}`)
    const ca = await authority('wild')
    const wild = await upload(await leaf(ca, { name: `CN=${base}`, dnsNames: [`*.${base}`] }))
    await shows(`a.${base}`, 'wild')
    assert.equal(await shown(`b.${base}`), 'CN=wild')
    assert.equal(await shown(`x.a.${base}`), own, 'a wildcard of a certificate covers one label')
    assert.equal(await shown(tls.name), own)

    const exactCa = await authority('exact')
    const exact = await upload(await leaf(exactCa, { name: `CN=${base}`, dnsNames: [`a.${base}`, tls.name] }))
    await shows(`a.${base}`, 'exact')
    assert.equal(await shown(`b.${base}`), 'CN=wild')
    assert.equal(await shown(tls.name), 'CN=exact', 'on TLS edges too')

    const newerCa = await authority('newer')
    const newer = await upload(await leaf(newerCa, { name: `CN=${base}`, dnsNames: [`a.${base}`] }))
    await shows(`a.${base}`, 'newer')
    const socket = await dialled(listenerName(`a.${base}`), { tls: { ca: newerCa.certificatePem } })
    assert.equal(socket.authorized, true)
    await world.api.delete(newer)
    await shows(`a.${base}`, 'exact')
    assert.equal(socket.closed, false, 'open connections stay')
    socket.destroy()

    await world.api.delete(exact)
    await shows(`a.${base}`, 'wild')
    await world.api.delete(wild)
    await until('nothing is uploaded', async () => (await shown(`a.${base}`)) === own)
    await world.api.delete(path)
  })

  test('may have any kind of key, and are sent with their chain', async () => {
    for (const key of ['rsa2048', 'p384', 'ed25519'] as const) {
      const { name } = await world.httpsEdge({ routes: [] })
      const root = await authority('root')
      const between = await authority('between', { issuer: root, serialNumber: '09' })
      const made = await leaf(between, { name: `CN=${name}`, dnsNames: [name], key })
      await upload({ cert: made.cert + between.certificatePem, key: made.key })
      await shows(name, 'between')
      const socket = await dialled(listenerName(name), { tls: { ca: root.certificatePem } })
      assert.equal(socket.authorized, true, 'the chain was sent')
      socket.destroy()
    }
  })

  test('that a reserved domain names are preferred for it', async () => {
    const { name } = await world.httpsEdge({ routes: [] })
    const chosenCa = await authority('chosen')
    const chosen = await leaf(chosenCa, { name: `CN=${name}`, dnsNames: [name] })
    const { id } = await world.api.create('/tls_certificates', {
      certificate_pem: chosen.cert,
      private_key_pem: chosen.key,
    })
    await upload(await leaf(await authority('newest'), { name: `CN=${name}`, dnsNames: [name] }))
    await shows(name, 'newest')
    await world.api.create('/reserved_domains', { domain: name, certificate_id: id })
    await shows(name, 'chosen')
  })

  test('that are renewed in place are shown at once, and open connections stay', async () => {
    const { name } = await world.httpsEdge({ routes: [] })
    const before = await leaf(await authority('before'), { name: `CN=${name}`, dnsNames: [name] })
    const path = await upload(before)
    await shows(name, 'before')
    const socket = await dialled(listenerName(name), { tls: { rejectUnauthorized: false } })
    const next = await leaf(await authority('after'), { name: `CN=${name}`, dnsNames: [name], key: 'p384' })
    await world.api.update(path, { certificate_pem: next.cert, private_key_pem: next.key })
    await shows(name, 'after')
    assert.equal(socket.closed, false)
    socket.destroy()
  })

  for (const version of versions) {
    test(`of our own cover names of the domain that are not served, over HTTP/${version}`, async () => {
      for (const name of [DOMAIN, `quiet-fox-1a2b.${DOMAIN}`, `gone.${DOMAIN}`]) {
        const { status, code } = await world.ask(name, { version })
        assert.deepEqual([name, status, code], [name, 404, 'ERR_ENDPOINT_OFFLINE'])
      }
      // None is made for names that strangers choose.
      for (const name of [`two.below.${DOMAIN}`, 'nobody.test']) await assert.rejects(world.ask(name, { version }))
    })

    test(`of names that are not served do not give access to served ones, over HTTP/${version}`, async (t) => {
      const web = await recorder(t)
      const name = `served-${version.replace('.', '-')}.${DOMAIN}`
      await world.httpsEdge({ names: [name], routes: [{ backend: await world.toAddress(web) }] })
      const { status, code } = await world.ask(`gone.${DOMAIN}`, { version, host: name })
      assert.deepEqual([status, code, web.seen.length], [421, 'ERR_MISDIRECTED', 0])
      assert.equal((await world.ask(name, { version })).status, 200)
    })
  }

  test('that are uploaded for all names of the domain are also shown for names that are not served', async () => {
    const ca = await authority('for all')
    const uploaded = await upload(await leaf(ca, { name: `CN=${DOMAIN}`, dnsNames: [`*.${DOMAIN}`] }))
    await shows(`gone.${DOMAIN}`, 'for all')
    const { code } = await world.ask(`gone.${DOMAIN}`, { tls: { ca: ca.certificatePem } })
    assert.equal(code, 'ERR_ENDPOINT_OFFLINE')
    await world.api.delete(uploaded)
  })

  test('have their next expiry in the metrics', async () => {
    const { name } = await world.httpsEdge({ routes: [] })
    const made = await authority('soon over', validFor(1))
    const notAfter = new Date(Date.now() + 3_600_000)
    await upload(await leaf(made, { name: `CN=${name}`, dnsNames: [name], notAfter }))
    await shows(name, 'soon over')
    const metrics = await (await fetch(world.platform.metricsUrl)).text()
    const [, seconds] = /^postern_certificate_first_expiry_seconds (\d+)$/m.exec(metrics) ?? []
    assert.equal(Number(seconds), Math.floor(notAfter.getTime() / 1000))
  })
})
