/** What a client certificate says of a visitor, read once per connection. */

import { toHeaderValue } from '../lib/http/http-header.ts'
import { certificateParts, nameAttribute, nameOid } from '../lib/x509/certificate-fields.ts'
import { alternativeNames, sanTag } from '../lib/x509/certificate-names.ts'
import type { DerElement } from '../lib/x509/der.ts'
import type { TlsFacts } from './phases.ts'

/** Each ready to be sent as a header, `''` when the certificate does not say. */
export interface ClientCertificate {
  readonly subject: string
  readonly commonName: string
  /** Several are joined with commas. */
  readonly dnsNames: string
  readonly emailAddresses: string
  /** Lower-case hex. */
  readonly serialNumber: string
}

/** Undefined when there is no client certificate; throws when it cannot be read. */
export function clientCertificate(tls: TlsFacts | undefined): ClientCertificate | undefined {
  if (!tls?.clientCertificate) return undefined
  const known = read.get(tls) ?? readCertificate(tls.clientCertificate)
  read.set(tls, known)
  return known
}

/** A connection has one handshake and many requests. */
const read = new WeakMap<TlsFacts, ClientCertificate>()

function readCertificate({ raw, subject, serialNumber }: NonNullable<TlsFacts['clientCertificate']>) {
  const parts = certificateParts(raw)
  const names = alternativeNames(parts.extensions)
  return {
    subject: toHeaderValue(subject.replaceAll('\n', ',')),
    commonName: toHeaderValue(nameAttribute(parts.subject, nameOid.commonName)),
    dnsNames: joined(names, sanTag.dnsName),
    emailAddresses: joined(names, sanTag.rfc822Name),
    serialNumber: serialNumber.toLowerCase(),
  }
}

/** Leaves out a name that no host and no mail address has: with a comma in it, it would pass for two. */
function joined(names: readonly DerElement[], tag: number): string {
  return names
    .filter((name) => name.tag === tag)
    .map(({ body }) => body.toString('latin1'))
    .filter((name) => /^[\x21-\x2b\x2d-\x7e]+$/.test(name))
    .join(',')
}
