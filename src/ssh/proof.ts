/** Whether a client holds the private part of the key it names: its signature over this very login (RFC 4252 §7). */
import { verify } from 'node:crypto'
import { BadInput } from '../lib/shape/bad-input.ts'
import { isSshCertificateType, plainType, readSshCertificate } from '../lib/ssh-keys/ssh-certificate.ts'
import { blobType, keyOfBlob } from '../lib/ssh-keys/ssh-key-blob.ts'
import { isSignedSsh } from '../lib/ssh-keys/ssh-signature.ts'

/** What a client sent to log in with a key. */
export interface KeyOffer {
  readonly type: string
  /** Of a certificate, all of it. */
  readonly blob: Buffer
  /** For RSA what is signed with; undefined is SHA-1, which proves nothing. Certificates have it in their type. */
  readonly hash: string | undefined
  /** Left out by a client that first asks whether the key would do. With a certificate the signature has its name in front. */
  readonly proof?: { readonly signature: Buffer; readonly signed: Buffer } | undefined
}

const hashes: Readonly<Record<string, string | null>> = {
  'ssh-ed25519': null,
  'ecdsa-sha2-nistp256': 'sha256',
  'ecdsa-sha2-nistp384': 'sha384',
  'ecdsa-sha2-nistp521': 'sha512',
}

const rsaHashes: readonly string[] = ['sha256', 'sha512']

/** What may be signed with, as clients name it. */
export const signatureAlgorithms: readonly string[] = [...Object.keys(hashes), ...rsaHashes.map(rsaSignature)]

/** RFC 8332 §3: `sha256` is `rsa-sha2-256`. */
export function rsaSignature(hash: string): string {
  return `rsa-${hash.replace('sha', 'sha2-')}`
}

/** Whether the key is of a kind that can prove anything here. */
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
    return false // a key or a signature that is none
  }
}

/** Whether a certificate is offered, of whatever kind. */
export function isCertificate({ type }: KeyOffer): boolean {
  return isSshCertificateType(type)
}

/** The type that stands in a certificate with which clients sign as `type` says; undefined is one that we do not take. */
function certificateTypeOf(type: string): string | undefined {
  const plain = plainType(type)
  if (Object.hasOwn(hashes, plain)) return type
  return plain === 'rsa-sha2-256' || plain === 'rsa-sha2-512' ? 'ssh-rsa-cert-v01@openssh.com' : undefined
}

/** Null is the one that comes with the key; undefined is none that we take. */
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
