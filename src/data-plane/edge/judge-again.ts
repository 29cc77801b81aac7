/** Judges what is open of visitors again when edges have changed (D42): by address and TLS, which are known for as long as it is open. */
import { X509Certificate } from 'node:crypto'
import type { VisitorErrorCode } from '../../model/visitor-errors.ts'
import type { ConnectionVerdict, Peer, Phases, TlsFacts } from '../../modules/phases.ts'
import { type BrokenPhases, type Edge, firstVerdict } from './compiled-edge.ts'
import { isVersionAtLeast } from './tls-versions.ts'

/** How long changes are collected, in milliseconds: all that is open is looked through for them together. */
const COLLECT_MS = 500

/** The most certificates between that of a client and an authority. */
const MAX_CHAIN = 10

/** Ends what is open of visitors that these edges no longer let in. */
type Judge = (edgeIds: ReadonlySet<string>) => void

/** A function that is called with the id of each edge that has changed, and calls `judges` soon after. */
export function judgingAgain(...judges: readonly Judge[]): (edgeId: string) => void {
  let changed: Set<string> | undefined
  const judge = (): void => {
    const edgeIds = changed ?? new Set()
    changed = undefined
    for (const each of judges) each(edgeIds)
  }
  return (edgeId) => {
    if (!changed) setTimeout(judge, COLLECT_MS).unref()
    changed ??= new Set()
    changed.add(edgeId)
  }
}

/** What is known of a connection. */
interface Known {
  readonly peer: Peer
  /** Undefined where TLS does not end here. */
  readonly tls: TlsFacts | undefined
  readonly serverName: string | undefined
}

/** Why `edge` would refuse a connection that it let in as `before`; only what it asks anew is judged. */
export function refusedNow(
  edge: Edge,
  before: Edge,
  { peer, tls, serverName }: Known,
  broken?: BrokenPhases,
): VisitorErrorCode | undefined {
  if (edge === before || edge.broken !== undefined) return undefined
  const reached = { edgeId: edge.id, serverName }
  const accepts = edge.accept.filter((accept) => !before.accept.includes(accept))
  const refused = firstVerdict(edge, accepts, (accept) => accept(peer, reached), broken)
  if (refused) return refused
  if (edge.tlsKey !== before.tlsKey && !meetsAnew(edge, tls)) return 'CLIENT_CERTIFICATE_REQUIRED'
  const handshakes = edge.handshake.filter((handshake) => !before.handshake.includes(handshake))
  const ask = (handshake: NonNullable<Phases['handshake']>): ConnectionVerdict =>
    tls ? handshake(tls, peer, reached) : { refuse: 'CONNECTION_DENIED' }
  return firstVerdict(edge, handshakes, ask, broken)
}

/** Whether a connection has what other demands on TLS ask of clients: the version, and a certificate of these authorities. */
function meetsAnew({ tls: demands }: Edge, tls: TlsFacts | undefined): boolean {
  if (!demands) return true
  const { minVersion, clientAuthorities } = demands
  if (tls && minVersion && !isVersionAtLeast(tls.version, minVersion)) return false
  return clientAuthorities === undefined || isIssuedBy(tls?.clientCertificate, clientAuthorities)
}

/** Authorities are parsed once for all that is open. */
const parsed = new WeakMap<readonly string[], readonly X509Certificate[]>()

function isIssuedBy(certificate: X509Certificate | undefined, authorities: readonly string[]): boolean {
  const known = parsed.get(authorities) ?? authorities.map((pem) => new X509Certificate(pem))
  parsed.set(authorities, known)
  let each = certificate
  for (let i = 0; each && i < MAX_CHAIN; i++, each = each.issuerCertificate) {
    const issued = each
    const isBy = (authority: X509Certificate): boolean =>
      authority.fingerprint256 === issued.fingerprint256 ||
      (issued.checkIssued(authority) && issued.verify(authority.publicKey))
    if (known.some(isBy)) return true
  }
  return false
}
