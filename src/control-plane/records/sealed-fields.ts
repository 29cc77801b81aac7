/** Seals secret fields on their way into the store, each bound to its row and name, and opens them on the way out. */
import { type Sealer, SealFault } from '../../lib/secrets/seal.ts'
import { Refusal } from '../../model/errors.ts'

/** The place of a resource's own secrets; a value that is moved to another place cannot be opened there. */
export function resourceAt(id: string): string {
  return `resources/${id}`
}

/** The place of the secrets of a module. */
export function moduleAt(hostId: string, module: string): string {
  return `modules/${hostId}/${module}`
}

/** Seals the fields `names` of `value`, which is kept at `place`; unset fields stay unset. */
export function sealFields<T extends object>(sealer: Sealer, names: readonly string[], value: T, boundTo: string): T {
  return changeFields(names, value, boundTo, (each, context) => sealer.seal(JSON.stringify(each), context))
}

/** Opens the fields `names` of `value`, which is kept at `place`; throws `Refusal` when one cannot be opened. */
export function openFields<T extends object>(sealer: Sealer, names: readonly string[], value: T, boundTo: string): T {
  return changeFields(names, value, boundTo, (each, context) => {
    try {
      return JSON.parse(sealer.open(String(each), context)) as unknown
    } catch (cause) {
      // The key was right at the start, so it has been rotated since.
      if (cause instanceof SealFault && cause.reason === 'other_key')
        throw new Refusal('KEY_ROTATED', undefined, { cause })
      throw new Refusal('SECRET_UNREADABLE', `the stored secret \`${context}\` cannot be opened: ${WHY}`, { cause })
    }
  })
}

const WHY = 'it was changed or moved in the database itself; set it again or restore a backup'

/** Applies `change` to the fields `names` of `value`, with the context of each; unset fields stay unset. */
export function changeFields<T extends object>(
  names: readonly string[],
  value: T,
  boundTo: string,
  change: (each: unknown, context: string) => unknown,
): T {
  if (names.length === 0) return value
  const given = value as Readonly<Record<string, unknown>>
  const changed = names
    .filter((name) => given[name] !== undefined)
    .map((name) => [name, change(given[name], `${boundTo}/${name}`)] as const)
  return { ...value, ...Object.fromEntries(changed) }
}
