/** Reads a TLS certificate with its chain and key in PEM form, and checks that they belong together. */

import { type KeyObject, sign, verify, type X509Certificate } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'
import { readBlock, readBlocks } from './certificate.ts'
import { holdsPrivateKey } from './pem.ts'
import { type KeyLimits, type PrivateKeyType, readPrivateKey } from './private-key.ts'
import { type CertificateNames, readCertificateNames } from './x509-names.ts'

/** The most UTF-8 bytes of a certificate with its chain. */
export const MAX_TLS_PEM_BYTES = 64 * 1024

/** Real chains have two to four certificates; every handshake sends them all. */
const MAX_CHAIN = 10

export interface TlsCertificate extends CertificateNames {
  readonly notBefore: string
  readonly notAfter: string
  readonly keyUsages: readonly string[]
  readonly extendedKeyUsages: readonly string[]
  /** Lower-case hex. */
  readonly serialNumber: string
  readonly privateKeyType: PrivateKeyType
}

/** `part` says what is wrong: a certificate, the order of the chain, the key, or the pair of certificate and key. */
export class BadTlsCertificate extends Error {
  readonly part: 'certificate' | 'chain' | 'key' | 'pair'

  constructor(part: BadTlsCertificate['part'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'BadTlsCertificate'
    this.part = part
  }
}

/** Reads a certificate, its intermediate certificates, and its key; throws `BadTlsCertificate`. */
export function readTlsCertificate(certificatePem: string, privateKeyPem: string, limits?: KeyLimits): TlsCertificate {
  const [leaf, ...chain] = inPart('certificate', () => readChain(certificatePem))
  if (!leaf) {
    throw new BadTlsCertificate(
      'certificate',
      'There is no certificate here; send it in PEM form, starting `-----BEGIN CERTIFICATE-----`.',
    )
  }
  const names = readNames(leaf.der)
  checkOrder([leaf, ...chain].map(({ certificate }) => certificate))
  const { key, type } = inPart('key', () => readPrivateKey(privateKeyPem, limits))
  if (!isPair(leaf.certificate.publicKey, key)) {
    throw new BadTlsCertificate('pair', 'The private key does not belong to the first certificate.')
  }
  return {
    ...names,
    notBefore: leaf.facts.not_before,
    notAfter: leaf.facts.not_after,
    keyUsages: leaf.facts.key_usages,
    extendedKeyUsages: leaf.facts.extended_key_usages,
    serialNumber: leaf.certificate.serialNumber.toLowerCase(),
    privateKeyType: type,
  }
}

function readChain(pem: string) {
  if (holdsPrivateKey(pem)) {
    throw new BadInput('This holds a private key, which belongs in `private_key_pem`; send only certificates here.')
  }
  return readBlocks(pem, MAX_CHAIN, readBlock)
}

function readNames(der: Buffer): CertificateNames {
  try {
    return readCertificateNames(der)
  } catch (cause) {
    throw new BadTlsCertificate('certificate', 'The names in the first certificate cannot be read.', { cause })
  }
}

/** RFC 5246 §7.4.2: each certificate must certify the one before it; TLS 1.2 clients may insist on the order. */
function checkOrder(certificates: readonly X509Certificate[]): void {
  for (const [i, issuer] of certificates.entries()) {
    const issued = certificates[i - 1]
    if (!issued || hasIssued(issuer, issued)) continue
    throw new BadTlsCertificate(
      'chain',
      `Certificate ${i + 1} did not issue certificate ${i}; put your own certificate first, then its issuer, then the issuer of that.`,
    )
  }
}

function hasIssued(issuer: X509Certificate, issued: X509Certificate): boolean {
  try {
    return issued.checkIssued(issuer) && issued.verify(issuer.publicKey)
  } catch {
    return false
  }
}

/** Tries a signature: comparing public keys would not notice a damaged private half. */
function isPair(publicKey: KeyObject, privateKey: KeyObject): boolean {
  const probe = Buffer.from('postern')
  const digest = privateKey.asymmetricKeyType === 'ed25519' ? null : 'sha256'
  try {
    return verify(digest, probe, publicKey, sign(digest, probe, privateKey))
  } catch {
    return false
  }
}

function inPart<T>(part: BadTlsCertificate['part'], read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof BadInput)) throw cause
    throw new BadTlsCertificate(part, cause.message, { cause })
  }
}
