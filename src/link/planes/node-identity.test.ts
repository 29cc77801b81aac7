import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, describe, test } from 'node:test'
import { type ConnectionOptions, connect, createServer, type TLSSocket, type TlsOptions } from 'node:tls'
import { newAuthority } from '../../data-plane/remote/testing/test-nodes.ts'
import { createNodeIdentity, type NodePlane, RELAY_PROTOCOL, tlsOptions, verifiedPeer } from './node-identity.ts'

const authority = newAuthority()
const stranger = newAuthority()
const self: NodePlane = { nodeId: 'node_1', planeId: 'w1' }
const own = createNodeIdentity(self, authority)
const closers: (() => unknown)[] = []
after(() => {
  for (const close of closers) close()
})

/** What each end of one connection learns of the other; for the client, that may be the error that ended the handshake. */
async function meet(door: TlsOptions, link: ConnectionOptions) {
  const seen = Promise.withResolvers<NodePlane | Error>()
  const server = createServer(door, (socket) => {
    socket.on('error', () => {})
    seen.resolve(verifiedPeer(socket))
  }).listen(0, '127.0.0.1')
  server.on('tlsClientError', (error) => seen.resolve(error))
  await once(server, 'listening')
  closers.push(() => server.close())
  const { port } = server.address() as { port: number } // it listens on a port
  const socket: TLSSocket = connect({ ...link, host: '127.0.0.1', port })
  const byLink = await new Promise<NodePlane | Error>((resolve) => {
    socket.on('secureConnect', () => resolve(verifiedPeer(socket)))
    socket.on('error', resolve)
  })
  const byListener = await seen.promise
  socket.destroy()
  return { byLink, byListener }
}

test('two planes of one authority know each other, by TLS 1.3 and the protocol of nodes', async () => {
  const other = createNodeIdentity({ nodeId: 'node_2', planeId: 'w9' }, authority)
  const { byLink, byListener } = await meet(other.listenerTls, own.linkTls)
  assert.deepEqual([byLink, byListener], [other.self, self])
  assert.deepEqual([own.listenerTls.minVersion, own.listenerTls.ALPNProtocols], ['TLSv1.3', [RELAY_PROTOCOL]])
})

test('ids that could be read as other ids are refused', () => {
  for (const id of ['', 'a:b', 'a b', 'ä', 'x'.repeat(65), 'a\n']) {
    assert.throws(() => createNodeIdentity({ nodeId: id, planeId: 'w1' }, authority))
    assert.throws(() => createNodeIdentity({ nodeId: 'n', planeId: id }, authority))
  }
})

const ca = authority.certPem
const anHourAgo = Date.now() - 3_600_000
const hostile: Record<string, [tls: ReturnType<typeof tlsOptions>, byListener: RegExp, byLink: RegExp]> = {
  'the certificate of an edge': [
    tlsOptions({ ...authority.issue(['app.example.com']), ca }),
    /refused: INVALID_PURPOSE/,
    /not that of a node/,
  ],
  'the certificate of an edge with the name of a node': [
    tlsOptions({ ...authority.issue(['urn:postern:relay:node_1:w1']), ca }),
    /refused: INVALID_PURPOSE/,
    /not that of a node/,
  ],
  'the certificate of a member that is no node': [
    tlsOptions({ ...authority.issueMember('urn:postern:other:node_1:w1'), ca }),
    /not that of a node/,
    /not that of a node/,
  ],
  'a member with one id too many': [
    tlsOptions({ ...authority.issueMember('urn:postern:relay:node_1:w1:x'), ca }),
    /not that of a node/,
    /not that of a node/,
  ],
  'a node of another authority': [
    tlsOptions({ ...stranger.issueMember('urn:postern:relay:node_1:w1'), ca }),
    /refused: UNABLE_TO_GET_ISSUER_CERT_LOCALLY/,
    /unable to get local issuer/,
  ],
  'a node whose certificate has expired': [
    tlsOptions({ ...authority.issueMember('urn:postern:relay:node_1:w1', { notAfter: anHourAgo }), ca }),
    /refused: CERT_HAS_EXPIRED/,
    /expired/,
  ],
}

describe('a peer is not taken for a node when it shows', () => {
  for (const [name, [tls, byListener, byLink]] of Object.entries(hostile)) {
    test(`${name}, to a door`, async () => {
      const seen = await meet(own.listenerTls, tls.linkTls)
      assert.ok(seen.byListener instanceof Error)
      assert.match(seen.byListener.message, byListener)
    })
    test(`${name}, as a door`, async () => {
      const seen = await meet(tls.listenerTls, own.linkTls)
      assert.ok(seen.byLink instanceof Error)
      assert.match(seen.byLink.message, byLink)
    })
  }

  test('no certificate', async () => {
    const { byListener } = await meet(own.listenerTls, tlsOptions({ ca }).linkTls)
    assert.ok(byListener instanceof Error)
    assert.match(byListener.message, /sent no certificate/)
  })

  test('another protocol, or an older TLS', async () => {
    const { ALPNProtocols, ...silent } = own.linkTls
    assert.deepEqual(ALPNProtocols, [RELAY_PROTOCOL])
    const { byListener } = await meet(own.listenerTls, silent)
    assert.ok(byListener instanceof Error)
    assert.match(byListener.message, /does not speak the protocol/)
    const other = await meet(own.listenerTls, { ...own.linkTls, ALPNProtocols: ['postern-relay/9'] })
    assert.ok(other.byListener instanceof Error && other.byLink instanceof Error)
    const { cert, key } = authority.issueMember('urn:postern:relay:node_1:w1')
    const { secureContext: _, ...plain } = own.linkTls
    const old = await meet(own.listenerTls, { ...plain, ca, cert, key, maxVersion: 'TLSv1.2' })
    assert.ok(old.byListener instanceof Error && old.byLink instanceof Error)
  })
})

test('a node that sends no server name is verified all the same', async () => {
  const { servername: _, ...nameless } = own.linkTls
  const { byListener } = await meet(own.listenerTls, nameless)
  assert.deepEqual(byListener, self)
})
