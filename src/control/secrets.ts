/** Seals secret fields on their way into the store and opens them on their way out. */
import type { Sealer } from '../lib/seal.ts'
import { Refusal } from '../model/errors.ts'

/** `value` with the fields called `names` sealed; what is unset stays unset. */
export function sealFields<T extends object>(sealer: Sealer, names: readonly string[], value: T): T {
  return mapFields(names, value, (each) => sealer.seal(JSON.stringify(each)))
}

/** `value` with the fields called `names` opened; throws `Refusal` when they are sealed under another key. */
export function openFields<T extends object>(sealer: Sealer, names: readonly string[], value: T): T {
  return mapFields(names, value, (each) => {
    try {
      return JSON.parse(sealer.open(String(each))) as unknown
    } catch (cause) {
      // The start made sure of the key, so it has changed since.
      throw new Refusal('KEY_ROTATED', undefined, { cause })
    }
  })
}

function mapFields<T extends object>(names: readonly string[], value: T, change: (each: unknown) => unknown): T {
  if (names.length === 0) return value
  const given = value as Readonly<Record<string, unknown>>
  const changed = names.filter((name) => given[name] !== undefined).map((name) => [name, change(given[name])] as const)
  return { ...value, ...Object.fromEntries(changed) }
}
