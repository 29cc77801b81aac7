/** The names in a certificate, read from its DER: its subject, its issuer, and the hosts it is for. */

import { ipv6Text } from '../net/ip-bytes.ts'
import { BadInput } from '../shape/bad-input.ts'
import { type CertificateParts, certificateParts, extensionOid, nameAttribute, nameOid } from './certificate-fields.ts'
import { type DerElement, derElements, derOnly, derTag } from './der.ts'

export interface CertificateNames {
  /** Each is `''` when the subject has none, and the last when it has several. */
  readonly subject: Readonly<Record<keyof typeof nameOid, string>>
  readonly issuerCommonName: string
  readonly dnsNames: readonly string[]
  readonly ips: readonly string[]
}

/** Reads the names of a certificate in DER; throws on anything malformed. */
export function readCertificateNames(der: Buffer): CertificateNames {
  const { subject, issuer, extensions } = certificateParts(der)
  const hosts = alternativeNames(extensions)
  return {
    subject: Object.fromEntries(
      Object.entries(nameOid).map(([kind, oid]) => [kind, nameAttribute(subject, oid)]),
    ) as CertificateNames['subject'], // the kinds of that table
    issuerCommonName: nameAttribute(issuer, nameOid.commonName),
    dnsNames: hosts.filter(({ tag }) => tag === sanTag.dnsName).map(({ body }) => dnsName(body)),
    ips: hosts.filter(({ tag }) => tag === sanTag.ipAddress).map(({ body }) => address(body)),
  }
}

/** RFC 5280 §4.2.1.6; only the kinds that we use. */
export const sanTag = { rfc822Name: 0x81, dnsName: 0x82, uri: 0x86, ipAddress: 0x87 } as const

/** The subject's alternative names as they are in the certificate; `sanTag` has their kinds. */
export function alternativeNames(extensions: CertificateParts['extensions']): DerElement[] {
  const value = extensions.get(extensionOid.subjectAltName)
  return value ? derElements(derOnly(value, derTag.sequence)) : []
}

function dnsName(body: Buffer): string {
  const name = body.toString('latin1')
  if (!/^[\x21-\x7e]+$/.test(name)) throw new BadInput('a DNS name contains invalid characters')
  return name
}

function address(body: Buffer): string {
  if (body.length === 4) return body.join('.')
  if (body.length === 16) return ipv6Text(body)
  throw new BadInput('an IP address has neither 4 nor 16 bytes')
}
