/** Whether a described handshake meets what an edge demands of TLS: for real traffic, TLS itself checks that. */
import { X509Certificate } from 'node:crypto'
import type { TlsDemands, TlsFacts } from '../../modules/phases.ts'

interface DescribedHandshakeFault {
  /** The module that makes the demand. */
  readonly module: string
  readonly reason: string
}

/** From oldest to newest. */
const versions: readonly string[] = ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3']

/** Certificates of a chain that are followed. */
const MAX_CHAIN = 10

export function handshakeFault(
  { minVersion = 'TLSv1.2', clientAuthorities }: TlsDemands,
  { version, clientCertificate }: TlsFacts,
  chain: readonly X509Certificate[],
): DescribedHandshakeFault | undefined {
  if (versions.indexOf(version) < versions.indexOf(minVersion)) {
    return { module: 'tls_termination', reason: `${version} is older than ${minVersion}` }
  }
  // The module itself refuses a client without a certificate.
  if (!clientAuthorities || !clientCertificate) return undefined
  const authorities = clientAuthorities.map((pem) => new X509Certificate(pem))
  if (chainsTo(clientCertificate, chain, authorities)) return undefined
  return { module: 'mutual_tls', reason: 'the certificate of the client does not lead to one of the authorities' }
}

function chainsTo(
  leaf: X509Certificate,
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  let current = leaf
  for (let i = 0; i < MAX_CHAIN; i++) {
    const certificate = current
    const isIssuedBy = (issuer: X509Certificate): boolean =>
      certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
    if (authorities.some((each) => each.fingerprint256 === certificate.fingerprint256 || isIssuedBy(each))) return true
    const next = chain.find((each) => each !== certificate && each.ca && isIssuedBy(each))
    if (!next) return false
    current = next
  }
  return false
}
