/** Checks that a client holds the private key of the key it offers, by its signature over this login (RFC 4252 §7). */
import { verify } from 'node:crypto'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { isSshCertificateType, plainType, readSshCertificate } from '../../lib/ssh-keys/ssh-certificate.ts'
import { blobType, keyOfBlob } from '../../lib/ssh-keys/ssh-key-blob.ts'
import { isSignedSsh } from '../../lib/ssh-keys/ssh-signature.ts'

/** What a client sent to log in with a key. */
export interface KeyOffer {
  readonly type: string
  /** The public key, or the whole certificate. */
  readonly blob: Buffer
  /** The hash of an RSA signature; undefined means SHA-1, which proves nothing. Certificates name it in their type. */
  readonly hash: string | undefined
  /**
   * Absent when the client first asks whether the key would be accepted. With a certificate, the signature begins with
   * the name of its algorithm.
   */
  readonly proof?: { readonly signature: Buffer; readonly signed: Buffer } | undefined
}

const hashes: Readonly<Record<string, string | null>> = {
  'ssh-ed25519': null,
  'ecdsa-sha2-nistp256': 'sha256',
  'ecdsa-sha2-nistp384': 'sha384',
  'ecdsa-sha2-nistp521': 'sha512',
}

const rsaHashes: readonly string[] = ['sha256', 'sha512']

/** The accepted signature algorithms, as clients name them. */
export const signatureAlgorithms: readonly string[] = [...Object.keys(hashes), ...rsaHashes.map(rsaSignature)]

/** RFC 8332 §3: `sha256` is `rsa-sha2-256`. */
export function rsaSignature(hash: string): string {
  return `rsa-${hash.replace('sha', 'sha2-')}`
}

/** Whether the type and hash of the key are accepted. */
export function isUsable({ type, blob, hash }: KeyOffer): boolean {
  if (isSshCertificateType(type)) return typeOf(blob) === certificateTypeOf(type)
  return typeOf(blob) === type && hashOf(type, hash) !== undefined
}

export function isProven(offer: KeyOffer): boolean {
  if (!offer.proof || !isUsable(offer)) return false
  const { signed, signature } = offer.proof
  try {
    if (isSshCertificateType(offer.type)) {
      const { keyBlob } = readSshCertificate(offer.blob)
      return isSignedSsh(keyBlob, signed, signature, { algorithm: plainType(offer.type) })
    }
    const hash = hashOf(offer.type, offer.hash)
    return hash !== undefined && verify(hash, signed, keyOfBlob(offer.blob), signature)
  } catch {
    return false // the key or the signature is malformed
  }
}

/** Whether the client offers a certificate, of any kind. */
export function isCertificate({ type }: KeyOffer): boolean {
  return isSshCertificateType(type)
}

/** The type inside a certificate that is offered as `type`, which may name an RSA hash; undefined when not accepted. */
function certificateTypeOf(type: string): string | undefined {
  const plain = plainType(type)
  if (Object.hasOwn(hashes, plain)) return type
  return plain === 'rsa-sha2-256' || plain === 'rsa-sha2-512' ? 'ssh-rsa-cert-v01@openssh.com' : undefined
}

/** Null when the key type itself defines the hash; undefined when the type or hash is not accepted. */
function hashOf(type: string, hash: string | undefined): string | null | undefined {
  if (type !== 'ssh-rsa') return Object.hasOwn(hashes, type) ? hashes[type] : undefined
  return hash !== undefined && rsaHashes.includes(hash) ? hash : undefined
}

function typeOf(blob: Buffer): string | undefined {
  try {
    return blobType(blob)
  } catch (error) {
    if (error instanceof BadInput) return undefined
    throw error
  }
}
