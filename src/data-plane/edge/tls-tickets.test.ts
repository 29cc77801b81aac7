import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import type { ConnectionOptions, SecureVersion } from 'node:tls'
import { makeIdentity } from '../../../test/support/make-certificate.ts'
import { bareSession, Front, isResumed, sessionFrom, tlsEdge } from './testing/test-front.ts'
import type { TlsEdge } from './tls-servers.ts'

const fronts: Front[] = []
after(() => Promise.all(fronts.map((front) => front.stop())))

/** The front of one data plane. Each issues certificates of its own. */
async function plane(edges: Readonly<Record<string, TlsEdge>>, ticketSecret: Buffer | undefined): Promise<Front> {
  const front = await new Front({ edges, servers: { ticketSecret } }).start()
  fronts.push(front)
  return front
}

const only = (version: SecureVersion): ConnectionOptions => ({ minVersion: version, maxVersion: version })
const secret = randomBytes(32)

for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
  describe(`a session of ${version}`, () => {
    test('resumes at another plane of the node, on its own edge and on no other', async () => {
      const edges = { 'a.test': tlsEdge('a'), 'b.test': tlsEdge('b'), 'c.test': tlsEdge('c', { minVersion: version }) }
      const [here, there] = [await plane(edges, secret), await plane(edges, secret)]
      const session = await sessionFrom(here, 'a.test', only(version))
      assert.equal(await isResumed(there, 'a.test', { session, ...only(version) }), true)
      for (const name of ['b.test', 'c.test']) {
        for (const front of [here, there]) {
          assert.equal(await isResumed(front, name, { session, ...only(version) }), false, name)
        }
      }
    })

    test('resumes with an uploaded certificate, and not once that is replaced', async () => {
      const edges = { 'a.test': tlsEdge('a') }
      const [here, there] = [await plane(edges, secret), await plane(edges, secret)]
      const [pair, other] = [here.authority.issue(['a.test']), here.authority.issue(['a.test'])]
      for (const front of [here, there]) front.certificates.replace(new Map([['a.test', pair]]))
      const session = await sessionFrom(here, 'a.test', { ...only(version), ca: here.made.certPem })
      assert.equal(await isResumed(there, 'a.test', { session, ...only(version) }), true)
      there.certificates.replace(new Map([['a.test', other]]))
      assert.equal(await isResumed(there, 'a.test', { session, ...only(version) }), false)
    })

    test('does not resume under another secret, nor without one', async () => {
      const edges = { 'a.test': tlsEdge('a') }
      const here = await plane(edges, secret)
      const session = await sessionFrom(here, 'a.test', only(version))
      for (const there of [await plane(edges, randomBytes(32)), await plane(edges, undefined)]) {
        assert.equal(await isResumed(there, 'a.test', { session, ...only(version) }), false)
      }
    })

    test('carries no client identity to another plane: every connection shows its certificate again', async () => {
      const day = 86_400_000
      const valid = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) }
      const root = await makeIdentity({ name: 'CN=Root', isCa: true, ...valid })
      const client = await makeIdentity({ name: 'CN=client', issuer: root, ...valid })
      const mutual = (id: string): TlsEdge => tlsEdge(id, { clientAuthorities: [root.certificatePem] })
      const edges = { 'a.test': mutual('a'), 'b.test': mutual('b'), 'open.test': tlsEdge('open') }
      const [here, there] = [await plane(edges, secret), await plane(edges, secret)]
      const identity = { cert: client.certificatePem, key: client.privateKeyPem, ...only(version) }
      const session = await sessionFrom(here, 'a.test', identity)
      assert.equal(await isResumed(there, 'a.test', { session, ...identity }), false)
      const plain = await sessionFrom(here, 'open.test', only(version))
      for (const name of ['a.test', 'b.test']) {
        for (const offered of [session, plain]) {
          assert.match(await there.refusal(name, { ...bareSession(offered), ...only(version) }), /alert/)
          assert.equal((await there.fault()).fault, 'client_certificate')
        }
      }
    })
  })
}
