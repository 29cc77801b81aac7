/** What a client certificate says about a visitor, read once per connection. */

import { toHeaderValue } from '../lib/http/http-header.ts'
import { certificateParts, nameAttribute, nameOid } from '../lib/x509/certificate-fields.ts'
import type { DerElement } from '../lib/x509/der.ts'
import { alternativeNames, sanTag } from '../lib/x509/x509-names.ts'
import type { TlsFacts } from './phases.ts'

/** Each field can be sent as a header; it is empty when the certificate lacks it. */
export type ClientCertificate = Readonly<ReturnType<typeof readCertificate>>

/** Undefined when there is no client certificate; throws when it cannot be read. */
export function clientCertificate(tls: TlsFacts | undefined): ClientCertificate | undefined {
  if (!tls?.clientCertificate) return undefined
  const known = read.get(tls) ?? readCertificate(tls.clientCertificate)
  read.set(tls, known)
  return known
}

/** What was already read: many requests share the handshake of their connection. */
const read = new WeakMap<TlsFacts, ClientCertificate>()

function readCertificate({ raw, subject, serialNumber }: NonNullable<TlsFacts['clientCertificate']>) {
  const parts = certificateParts(raw)
  const names = alternativeNames(parts.extensions)
  return {
    subject: toHeaderValue(subject.replaceAll('\n', ',')),
    commonName: toHeaderValue(nameAttribute(parts.subject, nameOid.commonName)),
    dnsNames: joinNames(names, sanTag.dnsName),
    emailAddresses: joinNames(names, sanTag.rfc822Name),
    serialNumber: serialNumber.toLowerCase(),
  }
}

/** Joins names with commas. A name with a comma in it would look like two, so it is left out. */
function joinNames(names: readonly DerElement[], tag: number): string {
  return names
    .filter((name) => name.tag === tag)
    .map(({ body }) => body.toString('latin1'))
    .filter((name) => /^[\x21-\x2b\x2d-\x7e]+$/.test(name))
    .join(',')
}
