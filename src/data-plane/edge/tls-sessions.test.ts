import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ConnectionOptions, SecureVersion } from 'node:tls'
import { type Identity, loadX509, makeIdentity } from '../../../test/support/make-certificate.ts'
import { bareSession, Front, type FrontOptions, isResumed, sessionFrom, tlsEdge } from './testing/test-front.ts'

const DAY = 86_400_000
const valid = { notBefore: new Date(Date.now() - DAY), notAfter: new Date(Date.now() + DAY) }

const fronts: Front[] = []
after(() => Promise.all(fronts.map((front) => front.stop())))

async function start(options: FrontOptions): Promise<Front> {
  const front = await new Front(options).start()
  fronts.push(front)
  return front
}

const only = (version: SecureVersion): ConnectionOptions => ({ minVersion: version, maxVersion: version })
const modern = ['TLSv1.2', 'TLSv1.3'] as const

describe('sessions', () => {
  for (const version of modern) {
    test(`of ${version} resume on their own edge and on no other`, async () => {
      const front = await start({
        edges: {
          'a.test': tlsEdge('a'),
          'b.test': tlsEdge('b'),
          'strict.test': tlsEdge('strict', { minVersion: version }),
          'mutual.test': tlsEdge('mutual', { clientAuthorities: [(await clients()).root.certificatePem] }),
        },
      })
      const session = await sessionFrom(front, 'a.test', only(version))
      assert.equal(await isResumed(front, 'a.test', { session, ...only(version) }), true)
      for (const other of ['b.test', 'strict.test']) {
        assert.equal(await isResumed(front, other, { session, ...only(version) }), false, other)
      }
      assert.match(await front.refusal('mutual.test', { ...bareSession(session), ...only(version) }), /alert/)
      assert.equal((await front.fault()).fault, 'client_certificate')
    })

    test(`of ${version} do not resume once the edge demands something else`, async () => {
      const front = await start({ edges: { 'a.test': tlsEdge('a') } })
      const session = await sessionFrom(front, 'a.test', only(version))
      front.edges.set('a.test', tlsEdge('a', { minVersion: 'TLSv1.2' }))
      assert.equal(await isResumed(front, 'a.test', { session, ...only(version) }), false)
      front.edges.set('a.test', tlsEdge('a'))
      assert.equal(await isResumed(front, 'a.test', { session, ...only(version) }), true, 'this test can fail')
    })

    test(`of ${version} may resume on an edge that differs in nothing, and then report that edge`, async () => {
      const front = await start({ edges: { 'a.test': tlsEdge('a'), 'b.test': tlsEdge('b') } })
      const pair = front.authority.issue(['a.test', 'b.test'])
      front.certificates.replace(
        new Map([
          ['a.test', pair],
          ['b.test', pair],
        ]),
      )
      const session = await sessionFrom(front, 'a.test', only(version))
      const visitor = await front.enter('b.test', { ...bareSession(session), ...only(version) })
      const { facts } = await front.secured()
      assert.deepEqual([facts.serverName, facts.clientCertificate], ['b.test', undefined])
      visitor.destroy()
    })
  }
})

describe('client certificates', () => {
  let front: Front
  let all: Awaited<ReturnType<typeof clients>>

  before(async () => {
    all = await clients()
    front = await start({
      edges: {
        'root.test': tlsEdge('root', { clientAuthorities: [all.root.certificatePem] }),
        'both.test': tlsEdge('both', {
          clientAuthorities: [all.stranger.certificatePem, `${all.lone.certificatePem}${all.root.certificatePem}`],
        }),
        'middle.test': tlsEdge('middle', { clientAuthorities: [all.middle.certificatePem] }),
        'nobody.test': tlsEdge('nobody', { clientAuthorities: [] }),
        'twin.test': tlsEdge('twin', { clientAuthorities: [all.root.certificatePem] }),
        'tls.test': tlsEdge('tls', { clientAuthorities: [all.root.certificatePem] }, 'tls'),
      },
    })
  })

  const good: [who: keyof Awaited<ReturnType<typeof clients>>, where: string][] = [
    ['good', 'root.test'],
    ['good', 'both.test'],
    ['good', 'tls.test'],
    ['forClients', 'root.test'],
    ['viaMiddle', 'root.test'],
    ['viaMiddle', 'middle.test'],
    ['ofStranger', 'both.test'],
  ]
  for (const version of modern) {
    for (const [who, where] of good) {
      test(`${where} lets in ${who}, ${version}`, async () => {
        const visitor = await front.enter(where, { ...only(version), ...identity(all[who], all.middle) })
        const { facts } = await front.secured()
        assert.match(facts.clientCertificate?.subject ?? '', new RegExp(`CN=${who}`))
        visitor.destroy()
      })
    }
  }

  const bad: typeof good = [
    ['good', 'nobody.test'],
    ['good', 'middle.test'],
    ['ofStranger', 'root.test'],
    ['expired', 'root.test'],
    ['early', 'root.test'],
    ['forServers', 'root.test'],
    ['selfSigned', 'root.test'],
    ['impostor', 'root.test'],
    ['byLeaf', 'root.test'],
  ]
  for (const version of modern) {
    for (const [who, where] of bad) {
      test(`${where} does not let in ${who}, ${version}`, async () => {
        const extra = who === 'byLeaf' ? all.good : all.middle
        const words = await front.refusal(where, { ...only(version), ...identity(all[who], extra) })
        assert.doesNotMatch(words, /hello/)
        assert.equal((await front.fault()).fault, 'client_certificate')
      })
    }

    test(`a client without one gets an alert, ${version}`, async () => {
      for (const where of ['root.test', 'nobody.test', 'tls.test']) {
        const words = await front.refusal(where, only(version))
        assert.match(words, version === 'TLSv1.2' ? /alert number 40|handshake failure/ : /alert number 116/)
        assert.equal((await front.fault()).fault, 'client_certificate')
      }
    })

    test(`a session is never resumed, ${version}: every connection shows its certificate again`, async () => {
      const options = { ...only(version), ...identity(all.good, all.middle) }
      const session = await sessionFrom(front, 'root.test', options)
      assert.equal(await isResumed(front, 'root.test', { session, ...options }), false)
      // Without the certificate there is nothing to resume, on this edge or on one with the same authorities.
      for (const where of ['root.test', 'twin.test', 'tls.test']) {
        assert.match(await front.refusal(where, { ...bareSession(session), ...only(version) }), /alert/)
        assert.equal((await front.fault()).fault, 'client_certificate')
      }
    })
  }

  test('edges share no server, though their demands are equal', async () => {
    const apart = await start({ edges: Object.fromEntries(['a', 'b'].map((id) => [`${id}.test`, shared(id)])) })
    const pair = apart.certificates.find('x.test')
    apart.certificates.replace(
      new Map([
        ['a.test', pair],
        ['b.test', pair],
      ]),
    )
    for (const id of ['a', 'b']) {
      const options = { rejectUnauthorized: false, ...identity(all.good, all.middle) }
      const visitor = await apart.enter(`${id}.test`, options)
      visitor.destroy()
    }
    assert.equal(apart.servers.size, 2)
  })

  const shared = (id: string) => tlsEdge(id, { clientAuthorities: [all.root.certificatePem] })
})

/** The clients, each with the certificate that its name describes. */
async function clients() {
  const x509 = await loadX509()
  const usage = (oid: string) => [new x509.ExtendedKeyUsageExtension([oid])]
  const root = await makeIdentity({ name: 'CN=Root', isCa: true, ...valid })
  const stranger = await makeIdentity({ name: 'CN=Stranger', isCa: true, ...valid })
  const lone = await makeIdentity({ name: 'CN=Lone', isCa: true, ...valid })
  const middle = await makeIdentity({ name: 'CN=Middle', isCa: true, issuer: root, ...valid })
  const fake = await makeIdentity({ name: 'CN=Root', isCa: true, ...valid })
  const good = await makeIdentity({ name: 'CN=good', issuer: root, ...valid })
  return {
    root,
    stranger,
    lone,
    middle,
    good,
    forClients: await makeIdentity({
      ...{ name: 'CN=forClients', issuer: root, ...valid },
      extensions: usage('1.3.6.1.5.5.7.3.2'),
    }),
    viaMiddle: await makeIdentity({ name: 'CN=viaMiddle', issuer: middle, ...valid }),
    ofStranger: await makeIdentity({ name: 'CN=ofStranger', issuer: stranger, ...valid }),
    expired: await makeIdentity({ name: 'CN=expired', issuer: root }),
    early: await makeIdentity({
      ...{ name: 'CN=early', issuer: root },
      notBefore: new Date(Date.now() + DAY),
      notAfter: new Date(Date.now() + 2 * DAY),
    }),
    forServers: await makeIdentity({
      ...{ name: 'CN=forServers', issuer: root, ...valid },
      extensions: usage('1.3.6.1.5.5.7.3.1'),
    }),
    selfSigned: await makeIdentity({ name: 'CN=selfSigned', ...valid }),
    impostor: await makeIdentity({ name: 'CN=impostor', issuer: fake, ...valid }),
    byLeaf: await makeIdentity({ name: 'CN=byLeaf', issuer: good, ...valid }),
  }
}

function identity(own: Identity, between: Identity): ConnectionOptions {
  return { cert: own.certificatePem + between.certificatePem, key: own.privateKeyPem }
}
