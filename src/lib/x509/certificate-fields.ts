/** Reads from the DER of a certificate (RFC 5280 §4.1) what node:crypto does not provide: names and key usages. */
import { BadInput } from '../shape/bad-input.ts'
import { type DerElement, derElements, derOnly, derTag, dottedOid } from './der.ts'

interface CertificateFields {
  readonly commonName: string
  readonly isCa: boolean
  readonly keyUsages: string[]
  readonly extendedKeyUsages: string[]
}

/**
 * Reads these fields of a certificate in DER; throws on anything malformed and on trailing bytes.
 *
 * `X509Certificate.toLegacyObject()` has the common name too, but Node 24 crashes in it when the certificate contains a
 * public key that OpenSSL cannot decode.
 */
export function readCertificateFields(der: Buffer): CertificateFields {
  const { subject, extensions } = certificateParts(der)
  return {
    commonName: nameAttribute(subject, nameOid.commonName),
    isCa: isCa(extensions.get(extensionOid.basicConstraints)),
    keyUsages: keyUsages(extensions.get(extensionOid.keyUsage)),
    extendedKeyUsages: extendedKeyUsages(extensions.get(extensionOid.extendedKeyUsage)),
  }
}

export interface CertificateParts {
  readonly issuer: DerElement
  readonly subject: DerElement
  /** The values of the extensions by dotted OID. */
  readonly extensions: ReadonlyMap<string, Buffer>
}

/** Splits a certificate in DER into parts; throws on anything malformed and on trailing bytes. */
export function certificateParts(der: Buffer): CertificateParts {
  const [tbs] = derElements(derOnly(der, derTag.sequence))
  const fields = tbs ? derElements(tbs.body) : []
  // The version, tagged [0], is absent from a certificate of version 1.
  const at = fields[0]?.tag === 0xa0 ? 3 : 2
  const [issuer, subject] = [fields[at], fields[at + 2]]
  if (issuer?.tag !== derTag.sequence || subject?.tag !== derTag.sequence) throw new BadInput('a name is missing')
  return { issuer, subject, extensions: readExtensions(fields.find(({ tag }) => tag === 0xa3)) }
}

/** The parts of a name that we show (RFC 5280 §4.1.2.4). */
export const nameOid = {
  commonName: '2.5.4.3',
  country: '2.5.4.6',
  locality: '2.5.4.7',
  province: '2.5.4.8',
  organization: '2.5.4.10',
  organizationalUnit: '2.5.4.11',
} as const

export const extensionOid = {
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  extendedKeyUsage: '2.5.29.37',
} as const

/** In the order of their bits (RFC 5280 §4.2.1.3). */
const keyUsageNames = [
  'digital_signature',
  'content_commitment',
  'key_encipherment',
  'data_encipherment',
  'key_agreement',
  'cert_sign',
  'crl_sign',
  'encipher_only',
  'decipher_only',
] as const

const extendedKeyUsageNames: ReadonlyMap<string, string> = new Map([
  ['1.3.6.1.5.5.7.3.1', 'server_auth'],
  ['1.3.6.1.5.5.7.3.2', 'client_auth'],
  ['1.3.6.1.5.5.7.3.3', 'code_signing'],
  ['1.3.6.1.5.5.7.3.4', 'email_protection'],
  ['1.3.6.1.5.5.7.3.8', 'time_stamping'],
  ['1.3.6.1.5.5.7.3.9', 'ocsp_signing'],
])

/** The text encoding of each kind of string that a name may contain, by tag. */
const stringEncodings: ReadonlyMap<number, string> = new Map([
  [0x0c, 'utf-8'],
  [0x12, 'latin1'],
  [0x13, 'latin1'],
  [0x14, 'latin1'],
  [0x16, 'latin1'],
  [0x1e, 'utf-16be'],
])

/** The last attribute of this kind in a name, which is the most specific; `''` when it has none. */
export function nameAttribute(name: DerElement, oid: string): string {
  const attributes = derElements(name.body).flatMap((set) => derElements(set.body))
  const last = attributes
    .map(({ body }) => derElements(body))
    .findLast(([type]) => type?.tag === derTag.oid && dottedOid(type.body) === oid)
  if (!last) return ''
  const encoding = stringEncodings.get(last[1]?.tag ?? 0)
  if (!encoding) throw new BadInput('a part of a name is not text')
  const text = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(last[1]?.body)
  // PostgreSQL cannot store NUL in text, and no honest name has one.
  if (text.includes('\0')) throw new BadInput('a part of a name contains a NUL character')
  return text
}

/** The values of the extensions by dotted OID. */
function readExtensions(field: DerElement | undefined): Map<string, Buffer> {
  const values = new Map<string, Buffer>()
  if (!field) return values
  for (const extension of derElements(derOnly(field.body, derTag.sequence))) {
    const parts = derElements(extension.body)
    const [oid, value] = [parts[0], parts.at(-1)]
    if (oid?.tag !== derTag.oid || value?.tag !== derTag.octetString) throw new BadInput('an extension is malformed')
    const name = dottedOid(oid.body)
    if (values.has(name)) throw new BadInput('an extension occurs twice')
    values.set(name, value.body)
  }
  return values
}

function isCa(value: Buffer | undefined): boolean {
  if (!value) return false
  const [flag] = derElements(derOnly(value, derTag.sequence))
  return flag?.tag === derTag.boolean && flag.body.length === 1 && flag.body[0] !== 0
}

function keyUsages(value: Buffer | undefined): string[] {
  if (!value) return []
  // The first byte of a BIT STRING counts the unused bits at its end, which are zero.
  const bits = derOnly(value, derTag.bitString).subarray(1)
  return keyUsageNames.filter((_, i) => ((bits[i >> 3] ?? 0) & (0x80 >> (i & 7))) !== 0)
}

function extendedKeyUsages(value: Buffer | undefined): string[] {
  if (!value) return []
  return derElements(derOnly(value, derTag.sequence)).map(({ tag, body }) => {
    if (tag !== derTag.oid) throw new BadInput('an extended key usage is malformed')
    const oid = dottedOid(body)
    return extendedKeyUsageNames.get(oid) ?? oid
  })
}
