/** The fields of a client certificate, as expressions read them; parsed once per connection. */
import type { X509Certificate } from 'node:crypto'
import { certificateParts, nameAttribute, nameOid } from '../../../lib/x509/certificate-fields.ts'
import type { DerElement } from '../../../lib/x509/der.ts'
import { alternativeNames, readCertificateNames, sanTag } from '../../../lib/x509/x509-names.ts'

type Part = keyof typeof nameOid

export type CertificateValues = Readonly<ReturnType<typeof read>>

/** Throws when the certificate cannot be read. */
export function certificateValues(certificate: X509Certificate): CertificateValues {
  const values = known.get(certificate) ?? read(certificate)
  known.set(certificate, values)
  return values
}

/** Certificates that were already parsed, since many requests share one connection and its certificate. */
const known = new WeakMap<X509Certificate, CertificateValues>()

function read(certificate: X509Certificate) {
  const { subject, issuer, extensions } = certificateParts(certificate.raw)
  const { dnsNames, ips } = readCertificateNames(certificate.raw)
  /** One part of a name, such as its organization; empty when the name has none. */
  const part = (name: DerElement) => (which: Part) => nameAttribute(name, nameOid[which])
  return {
    subject: certificate.subject.replaceAll('\n', ','),
    issuer: certificate.issuer.replaceAll('\n', ','),
    subjectPart: part(subject),
    issuerPart: part(issuer),
    dnsNames,
    emailAddresses: alternativeNames(extensions)
      .filter(({ tag }) => tag === sanTag.rfc822Name)
      .map(({ body }) => body.toString('latin1')),
    ipAddresses: ips,
    serialNumber: certificate.serialNumber.toLowerCase(),
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
    pem: certificate.toString(),
  }
}
