/** Writes certificates (RFC 5280 §4.1): their names, their extensions, and the signature over all of it. */
import { createHash, type KeyObject, sign } from 'node:crypto'
import { ipBytes } from '../net/ip-bytes.ts'
import { extensionOid, nameOid } from './certificate-fields.ts'
import { derElements, derOnly, derTag } from './der.ts'
import {
  der,
  derBits,
  derBoolean,
  derInteger,
  derNamedBits,
  derOctets,
  derOid,
  derSequence,
  derTime,
  derToPem,
  derUtf8,
} from './der-writer.ts'
import { sanTag } from './x509-names.ts'

export interface CertificateContents {
  readonly serialNumber: Buffer
  /** In DER, as `distinguishedName` writes it or a certificate holds it. */
  readonly issuer: Buffer
  readonly subject: Buffer
  /** In milliseconds since 1970, as is `notAfter`. */
  readonly notBefore: number
  readonly notAfter: number
  /** As SubjectPublicKeyInfo in DER. */
  readonly publicKey: Buffer
  readonly extensions: readonly Buffer[]
}

/**
 * Signs with an EC or RSA key, and returns the certificate in PEM.
 *
 * Written by hand: `node:crypto` cannot make certificates. A certificate is issued while a visitor waits in a handshake, so
 * it must be signed synchronously. `@peculiar/x509` signs through WebCrypto, in turns of the event loop, and depends on
 * eleven packages. The tests verify these certificates with OpenSSL.
 */
export function writeCertificate(contents: CertificateContents, signer: KeyObject): string {
  const { serialNumber, issuer, subject, notBefore, notAfter, publicKey, extensions } = contents
  const algorithm =
    signer.asymmetricKeyType === 'rsa'
      ? derSequence(derOid(RSA_WITH_SHA256), DER_NULL)
      : derSequence(derOid(ECDSA_WITH_SHA256))
  const signed = derSequence(
    // Version 3, which has extensions.
    der(0xa0, derInteger(Buffer.from([2]))),
    derInteger(serialNumber),
    algorithm,
    issuer,
    derSequence(derTime(notBefore), derTime(notAfter)),
    subject,
    publicKey,
    der(0xa3, derSequence(...extensions)),
  )
  return derToPem('CERTIFICATE', derSequence(signed, algorithm, derBits(sign('sha256', signed, signer))))
}

const ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2'
/** RFC 4055 §5: its parameters must be NULL, not absent. */
const RSA_WITH_SHA256 = '1.2.840.113549.1.1.11'
const DER_NULL = Buffer.from([5, 0])

/** A name with these parts in this order; empty without parts. */
export function distinguishedName(parts: readonly (readonly [keyof typeof nameOid, string])[]): Buffer {
  return derSequence(...parts.map(([kind, text]) => der(0x31, derSequence(derOid(nameOid[kind]), derUtf8(text)))))
}

/** The most characters of a common name (RFC 5280 appendix A.1, ub-common-name). */
export const MAX_COMMON_NAME = 64

/** Bit numbers (RFC 5280 §4.2.1.3). */
export const keyUsageBit = { digitalSignature: 0, certSign: 5, crlSign: 6 } as const

export const extensions = {
  basicConstraints: ({ isCa }: { isCa: boolean }) =>
    // CA:FALSE is the default, which DER leaves out.
    extension(extensionOid.basicConstraints, derSequence(...(isCa ? [derBoolean(true)] : [])), { isCritical: true }),
  keyUsage: (...bits: readonly number[]) => extension(extensionOid.keyUsage, derNamedBits(bits), { isCritical: true }),
  extendedKeyUsage: (...purposes: readonly (keyof typeof purposeOid)[]) =>
    extension(extensionOid.extendedKeyUsage, derSequence(...purposes.map((purpose) => derOid(purposeOid[purpose])))),
  subjectKeyId: (id: Buffer) => extension(SUBJECT_KEY_ID, derOctets(id)),
  authorityKeyId: (id: Buffer) => extension('2.5.29.35', derSequence(der(0x80, id))),
  /** IP addresses become iPAddress names, all others DNS names. RFC 5280 §4.2.1.6: critical when the subject is empty. */
  subjectAltName: (names: readonly string[], { isCritical }: { isCritical: boolean }) =>
    extension(extensionOid.subjectAltName, derSequence(...names.map(generalName)), { isCritical }),
  /** RFC 8737 §3: the digest that proves to an authority that a name is served here. */
  acmeIdentifier: (digest: Buffer) => extension('1.3.6.1.5.5.7.1.31', derOctets(digest), { isCritical: true }),
  /** One URI, for an empty subject. */
  subjectUri: (uri: string) =>
    extension(extensionOid.subjectAltName, derSequence(der(sanTag.uri, Buffer.from(uri, 'latin1'))), {
      isCritical: true,
    }),
}

/** RFC 5280 §4.2.1.12. */
const purposeOid = { serverAuth: '1.3.6.1.5.5.7.3.1', clientAuth: '1.3.6.1.5.5.7.3.2' } as const

const SUBJECT_KEY_ID = '2.5.29.14'

/** The key identifier of a SubjectPublicKeyInfo in DER: RFC 7093 §2, method 1. */
export function keyId(publicKey: Buffer): Buffer {
  const [, bits] = derElements(derOnly(publicKey, derTag.sequence))
  return createHash('sha256')
    .update(bits?.body.subarray(1) ?? '')
    .digest()
    .subarray(0, 20)
}

/** The subject key identifier among a certificate's extensions. */
export function ownKeyId(extensions: ReadonlyMap<string, Buffer>): Buffer | undefined {
  const value = extensions.get(SUBJECT_KEY_ID)
  return value && derOnly(value, derTag.octetString)
}

function extension(oid: string, value: Buffer, { isCritical = false }: { isCritical?: boolean } = {}): Buffer {
  return derSequence(derOid(oid), ...(isCritical ? [derBoolean(true)] : []), derOctets(value))
}

function generalName(name: string): Buffer {
  const address = ipBytes(name)
  return address ? der(sanTag.ipAddress, address) : der(sanTag.dnsName, Buffer.from(name, 'latin1'))
}
