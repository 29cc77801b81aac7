/** Seals secret fields on their way into the store and opens them on their way out. */
import type { Sealer } from '../lib/seal.ts'

/** `value` with the fields called `names` sealed; what is unset stays unset. */
export function sealFields<T extends object>(sealer: Sealer, names: readonly string[], value: T): T {
  return mapFields(names, value, (each) => sealer.seal(JSON.stringify(each)))
}

export function openFields<T extends object>(sealer: Sealer, names: readonly string[], value: T): T {
  return mapFields(names, value, (each) => JSON.parse(sealer.open(String(each))) as unknown)
}

function mapFields<T extends object>(names: readonly string[], value: T, change: (each: unknown) => unknown): T {
  if (names.length === 0) return value
  const given = value as Readonly<Record<string, unknown>>
  const changed = names.filter((name) => given[name] !== undefined).map((name) => [name, change(given[name])] as const)
  return { ...value, ...Object.fromEntries(changed) }
}
