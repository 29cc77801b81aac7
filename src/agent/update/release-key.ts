/** The key that releases are signed with, as people write it. */
import { createPublicKey, type KeyObject } from 'node:crypto'

/** An Ed25519 key from PEM or from the base64 of its DER; throws with words that go on from the name. */
export function releaseKey(text: string): KeyObject {
  try {
    const key = text.includes('-----BEGIN')
      ? createPublicKey(text)
      : createPublicKey({ key: Buffer.from(text.trim(), 'base64'), format: 'der', type: 'spki' })
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // Said below.
  }
  throw new Error('must be an Ed25519 public key, as PEM or as the base64 of its DER')
}
