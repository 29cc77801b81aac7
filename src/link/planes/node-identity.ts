/**
 * How a plane of a node proves to other nodes which it is: with a certificate from the authority that all nodes of one database
 * share.
 */
import { constants } from 'node:crypto'
import { type ConnectionOptions, createSecureContext, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Authority } from '../../lib/x509/certificate-authority.ts'
import { certificateParts, readCertificateFields } from '../../lib/x509/certificate-fields.ts'
import { modernSuites } from '../../lib/x509/tls-suites.ts'
import { alternativeNames, sanTag } from '../../lib/x509/x509-names.ts'

/** A plane of a node. */
export interface NodePlane {
  readonly nodeId: string
  readonly planeId: string
}

/** Another node than the one that was meant is at the other end. */
export class AnotherNode extends Error {
  constructor(nodeId: string) {
    super(`node ${nodeId} answered instead`)
    this.name = 'AnotherNode'
  }
}

export interface NodeIdentity {
  readonly self: NodePlane
  /** For the end that listens. It asks for a certificate; `verifiedPeer` judges it. */
  readonly listenerTls: TlsOptions
  /** For the end that connects. */
  readonly linkTls: ConnectionOptions
}

/** The ALPN name of the protocol. Nodes of different versions may meet, so an incompatible change needs another number. */
export const RELAY_PROTOCOL = 'postern-relay/1'

/** The beginning of the URI that a node's certificate names; its ids follow. */
const URI = 'urn:postern:relay:'

const idPattern = /^[A-Za-z0-9_.-]{1,64}$/

/** The server name that nodes send; they find each other by address. */
const SERVER_NAME = 'relay.postern.invalid'

/**
 * Makes a key and a certificate for this plane, which stay in memory.
 *
 * The same authority issues the certificates of edges, which visitors see. Those name hosts, and OpenSSL refuses them here: a
 * node's certificate names only itself (`Authority.issueMember`) and is for clients as well.
 */
export function createNodeIdentity(self: NodePlane, authority: Authority): NodeIdentity {
  const { nodeId, planeId } = self
  if (!idPattern.test(nodeId) || !idPattern.test(planeId))
    throw new Error(`invalid node or plane id: ${nodeId}, ${planeId}`)
  const { cert, key } = authority.issueMember(`${URI}${nodeId}:${planeId}`)
  return { self, ...tlsOptions({ cert, key, ca: authority.certPem }) }
}

/** The TLS options of both ends, from a certificate, its key, and the authority of the other end, all in PEM. */
export function tlsOptions(
  given: { readonly cert: string; readonly key: string; readonly ca: string } | { readonly ca: string },
): Omit<NodeIdentity, 'self'> {
  const options = {
    ...given,
    minVersion: 'TLSv1.3',
    ciphers: modernSuites,
    // A resumed session would skip the check of the other end's certificate.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const
  // `allowPartialTrustChain` trusts the authority even if another one certified it. A server honours it only in the context
  // for a name, so clients always send a name.
  const secureContext = createSecureContext({ ...options, allowPartialTrustChain: true })
  const ALPNProtocols = [RELAY_PROTOCOL]
  return {
    listenerTls: {
      ...options,
      ALPNProtocols,
      SNICallback: (_, done) => done(null, secureContext),
      requestCert: true,
      // Node would close the connection without saying why. Nothing is read before `verifiedPeer` has decided.
      rejectUnauthorized: false,
      // Node's own limit restarts with each byte; the listener has a limit of its own.
      handshakeTimeout: -1,
    },
    linkTls: {
      secureContext,
      ALPNProtocols,
      servername: SERVER_NAME,
      rejectUnauthorized: true,
      // A node's certificate has no host name; `verifiedPeer` checks it.
      checkServerIdentity: () => undefined,
    },
  }
}

/** Tells, after the handshake and at either end, which plane is at the other end, or why it is none. Never throws. */
export function verifiedPeer(socket: TLSSocket): NodePlane | Error {
  if (socket.alpnProtocol !== RELAY_PROTOCOL) return new Error('the other end does not speak the protocol of nodes')
  const raw = socket.getPeerX509Certificate()?.raw
  if (!raw) return new Error('the other end sent no certificate')
  // Node gives the code of OpenSSL here, though its types say otherwise.
  if (socket.authorized !== true)
    return new Error(`the certificate of the other end is refused: ${String(socket.authorizationError)}`)
  try {
    return namedIn(raw) ?? new Error('the certificate of the other end is not that of a node')
  } catch (cause) {
    return new Error('the certificate of the other end cannot be read', { cause })
  }
}

/** Throws on anything malformed. */
function namedIn(der: Buffer): NodePlane | undefined {
  const { isCa, extendedKeyUsages } = readCertificateFields(der)
  if (isCa || !extendedKeyUsages.includes('client_auth') || !extendedKeyUsages.includes('server_auth')) return undefined
  const [name, ...others] = alternativeNames(certificateParts(der).extensions)
  if (name?.tag !== sanTag.uri || others.length > 0) return undefined
  const uri = name.body.toString('latin1')
  const [nodeId = '', planeId = '', ...rest] = uri.startsWith(URI) ? uri.slice(URI.length).split(':') : []
  return idPattern.test(nodeId) && idPattern.test(planeId) && rest.length === 0 ? { nodeId, planeId } : undefined
}
