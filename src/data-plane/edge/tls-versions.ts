/** The options of an edge's TLS server: translates the demands of the edge for `node:tls`. */
import { constants, createHash, hkdfSync } from 'node:crypto'
import { createSecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls'
import { modernSuites, suitesWithOlder } from '../../lib/x509/tls-suites.ts'
import type { EdgeKind } from '../../model/edge-config.ts'
import type { TlsDemands } from '../../modules/phases.ts'
import type { ServerCertificate } from './served-certificates.ts'

/** From oldest to newest. */
const tlsVersions: readonly string[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

export function isVersionAtLeast(version: string, least: string): boolean {
  return tlsVersions.indexOf(version) >= tlsVersions.indexOf(least)
}

/** How the server answers a client that offers protocols (ALPN). */
export type Offer = 'http' | 'echo' | 'none'

export function offerFor(kind: EdgeKind, alpn: readonly string[]): Offer {
  if (kind !== 'tls') return 'http'
  // we do not know what the service speaks, but can accept a single protocol.
  return alpn.length === 1 ? 'echo' : 'none'
}

export interface ServerPlan {
  /** Unique for each server. */
  readonly key: string
  readonly offer: Offer
  readonly certificate: ServerCertificate
  /** Set when sessions resume at other data planes too: those with the same secret and the same scope. */
  readonly tickets?: { readonly secret: Buffer; readonly scope: string } | undefined
}

/** What OpenSSL wants for tickets, in bytes: a name, a key to encrypt and one to authenticate. */
const TICKET_KEYS_BYTES = 48

export function serverOptions(demands: TlsDemands, plan: ServerPlan): TlsOptions {
  const { clientAuthorities } = demands
  // Node's own timeout restarts with each byte and closes nothing; a negative value disables it.
  const common = { ...contextOptions(demands, plan), ...alpnOptions(plan.offer), handshakeTimeout: -1 }
  if (!clientAuthorities) return common
  // A configured authority is trusted as such, even if another one certified it. Node accepts this option only in the
  // context for a name; that context equals the server's own in all else.
  const context = createSecureContext({ ...common, allowPartialTrustChain: true })
  // OpenSSL sends the alert to a client without a certificate. Node rejects one that does not verify: see
  // certificate-alert.ts.
  return { ...common, requestCert: true, rejectUnauthorized: true, SNICallback: (_, done) => done(null, context) }
}

function contextOptions(demands: TlsDemands, { key, certificate, tickets }: ServerPlan): SecureContextOptions {
  const { minVersion = 'TLSv1.2', clientAuthorities } = demands
  const isOld = minVersion === 'TLSv1' || minVersion === 'TLSv1.1'
  return {
    cert: certificate.cert,
    key: certificate.key,
    minVersion,
    // D32: old versions only where the edge allows them, and old cipher suites only there.
    ciphers: isOld ? suitesWithOlder : modernSuites,
    // An empty list keeps Node from loading its default authorities.
    ca: [...(clientAuthorities ?? [])],
    secureOptions:
      constants.SSL_OP_NO_RENEGOTIATION |
      constants.SSL_OP_PRIORITIZE_CHACHA |
      // A resumed session would skip the client's certificate.
      (clientAuthorities ? constants.SSL_OP_NO_TICKET : 0),
    // Each context has its own ticket keys by default; this separates sessions once more.
    sessionIdContext: createHash('sha256')
      .update(tickets?.scope ?? key)
      .digest('hex')
      .slice(0, 32),
    ...(tickets && { ticketKeys: ticketKeys(tickets) }),
  }
}

/** The scope contains all that must separate sessions, so servers of different scopes have different keys. */
function ticketKeys({ secret, scope }: NonNullable<ServerPlan['tickets']>): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', createHash('sha256').update(scope).digest(), TICKET_KEYS_BYTES))
}

/** In wire format. Node copies a view of this kind; a list would hold 64 KiB per server. */
const httpProtocols = new DataView(Uint8Array.from(Buffer.from('\x02h2\x08http/1.1\x08http/1.0', 'latin1')).buffer)

function alpnOptions(offer: Offer): TlsOptions {
  if (offer === 'http') return { ALPNProtocols: httpProtocols }
  return offer === 'echo' ? { ALPNCallback: ({ protocols }) => protocols[0] } : {}
}
