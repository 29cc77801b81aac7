/** The public key of releases, as people write it. */
import { createPublicKey, type KeyObject } from 'node:crypto'

/** An Ed25519 key from PEM or from the base64 of its DER; throws an `Error` whose text continues the name of the setting. */
export function releaseKey(text: string): KeyObject {
  try {
    const key = text.includes('-----BEGIN')
      ? createPublicKey(text)
      : createPublicKey({ key: Buffer.from(text.trim(), 'base64'), format: 'der', type: 'spki' })
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // The error below says what is expected.
  }
  throw new Error('must be an Ed25519 public key, as PEM or as the base64 of its DER')
}
