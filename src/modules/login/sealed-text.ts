/** Sealed texts in characters that URLs and cookies allow. */
import type { Sealer } from '../../lib/secrets/seal.ts'

type Seals = Pick<Sealer, 'seal' | 'open'>

const sealedForm = /^sealed:2:([0-9a-f]{16}):(.+)$/s

export function sealText(sealer: Seals, text: string, context: string): string {
  const [, keyId, base64] = sealedForm.exec(sealer.seal(text, context)) ?? []
  if (keyId === undefined || base64 === undefined) throw new Error('a sealed value has an unexpected form')
  return keyId + Buffer.from(base64, 'base64').toString('base64url')
}

/**
 * Undefined when it was not sealed for `context`, was changed, or was sealed under another key. Each text has one spelling:
 * any other is refused.
 */
export function openText(sealer: Seals, sealed: string, context: string): string | undefined {
  const [, keyId, base64url = ''] = /^([0-9a-f]{16})([\w-]+)$/.exec(sealed) ?? []
  if (keyId === undefined) return undefined
  const bytes = Buffer.from(base64url, 'base64url')
  // Decoders ignore the unused bits of the last character.
  if (bytes.toString('base64url') !== base64url) return undefined
  try {
    return sealer.open(`sealed:2:${keyId}:${bytes.toString('base64')}`, context)
  } catch {
    return undefined
  }
}
