/** Whether a client holds the private part of the key it names: its signature over this very login (RFC 4252 §7). */
import { verify } from 'node:crypto'
import { BadInput } from '../lib/bad-input.ts'
import { blobType, keyOfBlob } from '../lib/ssh-key-blob.ts'

/** What a client sent to log in with a key. */
export interface KeyOffer {
  readonly type: string
  readonly blob: Buffer
  /** For RSA what is signed with; undefined is SHA-1, which proves nothing. */
  readonly hash: string | undefined
  /** Left out by a client that first asks whether the key would do. */
  readonly proof?: { readonly signature: Buffer; readonly signed: Buffer } | undefined
}

const hashes: Readonly<Record<string, string | null>> = {
  'ssh-ed25519': null,
  'ecdsa-sha2-nistp256': 'sha256',
  'ecdsa-sha2-nistp384': 'sha384',
  'ecdsa-sha2-nistp521': 'sha512',
}

const rsaHashes: readonly string[] = ['sha256', 'sha512']

/** Whether the key is of a kind that can prove anything here. */
export function isUsable({ type, blob, hash }: KeyOffer): boolean {
  return typeOf(blob) === type && hashOf(type, hash) !== undefined
}

export function isProven(offer: KeyOffer): boolean {
  const hash = hashOf(offer.type, offer.hash)
  if (!offer.proof || hash === undefined || !isUsable(offer)) return false
  try {
    return verify(hash, offer.proof.signed, keyOfBlob(offer.blob), offer.proof.signature)
  } catch {
    return false // a key or a signature that is none
  }
}

/** Null is the one that comes with the key; undefined is none that we take. */
function hashOf(type: string, hash: string | undefined): string | null | undefined {
  if (type !== 'ssh-rsa') return hashes[type]
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
