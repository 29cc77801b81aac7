/**
 * Which plane of which node this is, so that other nodes can be sure of it: a certificate from the authority that all nodes
 * of one database share. Edges have certificates from it too, and visitors see those; but they name hosts, and a node's
 * names nothing but itself (`Authority.issueMember`), and is for clients as well, so that OpenSSL refuses the others.
 */
import { constants } from 'node:crypto'
import { type ConnectionOptions, createSecureContext, type TLSSocket, type TlsOptions } from 'node:tls'
import type { Authority } from '../lib/x509/certificate-authority.ts'
import { certificateParts, readCertificateFields } from '../lib/x509/certificate-fields.ts'
import { alternativeNames, sanTag } from '../lib/x509/certificate-names.ts'
import { modernSuites } from '../lib/x509/tls-suites.ts'

/** A plane of a node. */
export interface NodePlane {
  readonly nodeId: string
  readonly planeId: string
}

export interface NodeIdentity {
  readonly self: NodePlane
  /** For the end that listens. It asks for a certificate, and leaves it to `verifiedPeer` to refuse one. */
  readonly doorTls: TlsOptions
  /** For the end that connects. */
  readonly linkTls: ConnectionOptions
}

/** What is spoken over the connection. Nodes of different versions may meet: another meaning needs another number. */
export const RELAY_PROTOCOL = 'postern-relay/1'

/** What a node's certificate names, before its ids. */
const URI = 'urn:postern:relay:'

const idPattern = /^[A-Za-z0-9_.-]{1,64}$/

/** What nodes send as the name they look for; they find each other by address. */
const SERVER_NAME = 'relay.postern.invalid'

/** Makes a key and a certificate for this plane, which stay in memory. */
export function createNodeIdentity(self: NodePlane, authority: Authority): NodeIdentity {
  const { nodeId, planeId } = self
  if (!idPattern.test(nodeId) || !idPattern.test(planeId)) throw new Error(`not ids of a node: ${nodeId}, ${planeId}`)
  const { cert, key } = authority.issueMember(`${URI}${nodeId}:${planeId}`)
  return { self, ...tlsOptions({ cert, key, ca: authority.certPem }) }
}

/** The TLS of both ends with a certificate, its key, and the authority of the other end; all in PEM. */
export function tlsOptions(
  given: { readonly cert: string; readonly key: string; readonly ca: string } | { readonly ca: string },
): Omit<NodeIdentity, 'self'> {
  const options = {
    ...given,
    minVersion: 'TLSv1.3',
    ciphers: modernSuites,
    // A resumed session would skip the certificate of the other end.
    secureOptions: constants.SSL_OP_NO_TICKET,
  } as const
  // The authority is trusted by itself, even if another one certified it. A server takes that only in the context for a
  // name, so a name is always sent.
  const secureContext = createSecureContext({ ...options, allowPartialTrustChain: true })
  const ALPNProtocols = [RELAY_PROTOCOL]
  return {
    doorTls: {
      ...options,
      ALPNProtocols,
      SNICallback: (_, done) => done(null, secureContext),
      requestCert: true,
      // Node would close the connection without saying why. Nothing is read before `verifiedPeer` has decided.
      rejectUnauthorized: false,
      // Node's own limit restarts with each byte; the door has one.
      handshakeTimeout: -1,
    },
    linkTls: {
      secureContext,
      ALPNProtocols,
      servername: SERVER_NAME,
      rejectUnauthorized: true,
      // There is no name to check; `verifiedPeer` checks what there is.
      checkServerIdentity: () => undefined,
    },
  }
}

/** Who is at the other end, after the handshake, at either end; or why that is nobody. Never throws. */
export function verifiedPeer(socket: TLSSocket): NodePlane | Error {
  if (socket.alpnProtocol !== RELAY_PROTOCOL) return new Error('it does not speak the protocol of nodes')
  const raw = socket.getPeerX509Certificate()?.raw
  if (!raw) return new Error('it shows no certificate')
  // Node gives the code of OpenSSL here, though its types say otherwise.
  if (socket.authorized !== true) return new Error(`its certificate is refused: ${String(socket.authorizationError)}`)
  try {
    return namedIn(raw) ?? new Error('its certificate is not that of a node')
  } catch (cause) {
    return new Error('its certificate cannot be read', { cause })
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
