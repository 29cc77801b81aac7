/** Reads and explains flags, for all who take them. */
import type { TunnelKind } from './endpoint-options.ts'
import { type FlagTaker, type TunnelFlag, tunnelFlags } from './tunnel-flags.ts'

/** The flags that `taker` has, for all commands or for one. */
export function flagsOf(taker: FlagTaker, kind?: TunnelKind): readonly TunnelFlag[] {
  return tunnelFlags.filter((flag) => (flag.only ?? taker) === taker && (kind === undefined || flag.for.includes(kind)))
}

/** How a key is spelled as a flag. */
export function flagFor(path: readonly string[], taker: FlagTaker): string | undefined {
  const found = flagsOf(taker).find((flag) => path.every((part, i) => flag.path[i] === part))
  return found && `--${found.name}`
}

export function isRepeatable({ isMany = false }: TunnelFlag, taker: FlagTaker): boolean {
  return isMany === true || isMany === taker
}

/** What a flag is for, in the words of its help. */
export function aboutFlag(flag: TunnelFlag, taker: FlagTaker): string {
  const { about, agentAdds = '' } = flag
  return `${about}${taker === 'agent' ? agentAdds : ''}${isRepeatable(flag, taker) ? ' (repeatable)' : ''}`
}

/** One value of a flag: text, a number, or for a switch whether it is on. */
export type FlagValue = string | number | boolean

/** The value of a flag as it was written. What is no number stays one that nobody takes, for whoever checks it. */
export function flagValue({ isNumber, takes }: TunnelFlag, text: string): FlagValue {
  if (takes === undefined) return text === 'true'
  if (!isNumber) return text
  return text.trim() === '' ? Number.NaN : Number(text)
}

/** Puts the value of a flag where the key that it stands for belongs; values of a list come one by one. */
export function setFlag(tunnel: Record<string, unknown>, { path, isMany }: TunnelFlag, value: FlagValue): void {
  const [key, inner] = path
  tunnel[key] =
    inner === undefined ? added(tunnel[key]) : { ...mapOf(tunnel[key]), [inner]: added(mapOf(tunnel[key])[inner]) }

  function added(before: unknown): unknown {
    return isMany ? [...(Array.isArray(before) ? before : []), value] : value
  }
}

/** Written by `setFlag` alone, so that it is a map or not there. */
function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>
}
