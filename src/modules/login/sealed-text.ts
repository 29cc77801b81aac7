/** Sealed values in characters that URLs and cookies allow. */
import type { Sealer } from '../../lib/secrets/seal.ts'

export type Seals = Pick<Sealer, 'seal' | 'open'>

const sealedForm = /^sealed:2:([0-9a-f]{16}):(.+)$/s

export function sealJson(sealer: Seals, value: object, context: string): string {
  const [, keyId, base64] = sealedForm.exec(sealer.seal(JSON.stringify(value), context)) ?? []
  if (keyId === undefined || base64 === undefined) throw new Error('a sealed value has an unexpected form')
  return keyId + Buffer.from(base64, 'base64').toString('base64url')
}

/**
 * Undefined when it was not sealed for `context`, was changed, or was sealed under another key. Each text has one spelling:
 * any other is refused. `Value` is what is sealed for this context.
 */
export function openJson<Value>(sealer: Seals, sealed: string, context: string): Value | undefined {
  const [, keyId, base64url = ''] = /^([0-9a-f]{16})([\w-]+)$/.exec(sealed) ?? []
  if (keyId === undefined) return undefined
  const bytes = Buffer.from(base64url, 'base64url')
  // Decoders ignore the unused bits of the last character.
  if (bytes.toString('base64url') !== base64url) return undefined
  try {
    return JSON.parse(sealer.open(`sealed:2:${keyId}:${bytes.toString('base64')}`, context)) as Value
  } catch {
    return undefined
  }
}
