/** Reads and explains the flags of a tunnel, for the agent and for the SSH gateway. */
import type { TunnelKind } from './endpoint-options.ts'
import { type FlagTaker, type TunnelFlag, tunnelFlags } from './tunnel-flags.ts'

/** The flags of `taker`, for all commands or for one. */
export function flagsOf(taker: FlagTaker, kind?: TunnelKind): readonly TunnelFlag[] {
  return tunnelFlags.filter((flag) => (flag.only ?? taker) === taker && (kind === undefined || flag.for.includes(kind)))
}

/** The flag that sets the key at `path`. */
export function flagFor(path: readonly string[], taker: FlagTaker): string | undefined {
  const found = flagsOf(taker).find((flag) => path.every((part, i) => flag.path[i] === part))
  return found && `--${found.name}`
}

export function isRepeatable({ isMany }: TunnelFlag, taker: FlagTaker): boolean {
  return isMany === true || isMany === taker
}

/** The help text of a flag. */
export function aboutFlag(flag: TunnelFlag, taker: FlagTaker): string {
  const { about, agentAdds = '' } = flag
  return `${about}${taker === 'agent' ? agentAdds : ''}${isRepeatable(flag, taker) ? ' (repeatable)' : ''}`
}

/** One value of a flag: text, a number, or for a switch whether it is on. */
export type FlagValue = string | number | boolean

/** Parses the value of a flag. Text that should be a number and is not becomes NaN, which the reader refuses. */
export function flagValue({ isNumber, takes }: TunnelFlag, text: string): FlagValue {
  if (takes === undefined) return text === 'true'
  if (!isNumber) return text
  return text.trim() === '' ? Number.NaN : Number(text)
}

/** Sets the key of a flag in `tunnel`; a value of a repeatable flag is appended to its list. */
export function setFlag(tunnel: Record<string, unknown>, { path, isMany }: TunnelFlag, value: FlagValue): void {
  const [key, inner] = path
  tunnel[key] =
    inner === undefined
      ? addValue(tunnel[key])
      : { ...mapOf(tunnel[key]), [inner]: addValue(mapOf(tunnel[key])[inner]) }

  function addValue(before: unknown): unknown {
    return isMany ? [...(Array.isArray(before) ? before : []), value] : value
  }
}

/** Only `setFlag` writes these, so each is a map or absent. */
function mapOf(value: unknown): Readonly<Record<string, unknown>> {
  return (value ?? {}) as Readonly<Record<string, unknown>>
}
