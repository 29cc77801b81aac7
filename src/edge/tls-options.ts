/** How the server of an edge is set up: from what the edge demands to what `node:tls` takes. */
import { constants, createHash } from 'node:crypto'
import { createSecureContext, type SecureContextOptions, type TlsOptions } from 'node:tls'
import { modernSuites, suitesWithOlder } from '../lib/x509/tls-suites.ts'
import type { EdgeKind } from '../model/edge-config.ts'
import type { TlsDemands } from '../modules/phases.ts'
import type { ServerCertificate } from './certificates.ts'

/** What is told to a client that names the protocols it speaks. */
export type Offer = 'http' | 'echo' | 'none'

export function offerFor(kind: EdgeKind, alpn: readonly string[]): Offer {
  if (kind !== 'tls') return 'http'
  // we cannot know what the service speaks, but where there is no choice we can agree.
  return alpn.length === 1 ? 'echo' : 'none'
}

export interface ServerPlan {
  /** Tells the server from all others. */
  readonly key: string
  readonly offer: Offer
  readonly certificate: ServerCertificate
}

export function serverOptions(demands: TlsDemands, plan: ServerPlan): TlsOptions {
  const { clientAuthorities } = demands
  // Node's own timeout starts anew with each byte and closes nothing; below zero it is not set up at all.
  const common = { ...contextOptions(demands, plan), ...alpnOptions(plan.offer), handshakeTimeout: -1 }
  if (!clientAuthorities) return common
  // An authority that was named is trusted as it is, though another may have certified it. A server takes this option in
  // the context for a name alone; in all else that context is the server's own.
  const context = createSecureContext({ ...common, allowPartialTrustChain: true })
  // OpenSSL tells who shows no certificate so. One that does not verify is Node's to refuse: see certificate-alert.ts.
  return { ...common, requestCert: true, rejectUnauthorized: true, SNICallback: (_, done) => done(null, context) }
}

function contextOptions(demands: TlsDemands, { key, certificate }: ServerPlan): SecureContextOptions {
  const { minVersion = 'TLSv1.2', clientAuthorities } = demands
  const isOld = minVersion === 'TLSv1' || minVersion === 'TLSv1.1'
  return {
    cert: certificate.cert,
    key: certificate.key,
    minVersion,
    // D32: old versions only where the edge names one, and their suites only there.
    ciphers: isOld ? suitesWithOlder : modernSuites,
    // An empty list keeps Node from loading the authorities of the whole world.
    ca: [...(clientAuthorities ?? [])],
    // A resumed session would not look at the client's certificate again.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | (clientAuthorities ? constants.SSL_OP_NO_TICKET : 0),
    // Each context has ticket keys of its own by default; this keeps sessions apart once more.
    sessionIdContext: createHash('sha256').update(key).digest('hex').slice(0, 32),
  }
}

/** As TLS writes it. Node copies a view of this kind into memory of its own; a list would hold 64 KiB for each server. */
const httpProtocols = new DataView(Uint8Array.from(Buffer.from('\x02h2\x08http/1.1', 'latin1')).buffer)

function alpnOptions(offer: Offer): TlsOptions {
  if (offer === 'http') return { ALPNProtocols: httpProtocols }
  return offer === 'echo' ? { ALPNCallback: ({ protocols }) => protocols[0] } : {}
}
