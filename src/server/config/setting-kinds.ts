/** What a setting of the server is: its spellings, its check and its help text. */

export interface Setting<T, Default extends string | null = string | null> {
  /** The flag without its dashes; the other spellings derive from it. */
  readonly name: string
  /** The placeholder of the value in `--help`. */
  readonly takes: string
  /** Relative paths start at `cwd`. */
  readonly parse: (text: string, cwd?: string) => T
  /** As an operator would write it; null if it depends on other settings or is unset. */
  readonly default: Default
  /** What the flag means without a value; if omitted, the flag needs one. */
  readonly bare?: string
  /** What to show instead when `default` is null. */
  readonly defaultNote?: string
  readonly about: string
  readonly example: string
  /** A secret. Read from the environment only: flags show in process lists, and files get committed. */
  readonly envOnly?: boolean
  /** The setting works, but is neither in the help nor in the reference. */
  readonly hidden?: boolean
  /** Whether a running server applies a new value without a restart. */
  readonly isLive?: boolean
}

/** Keeps the types of each entry's value and default while checking its shape. */
export function setting<T, const Default extends string | null>(entry: Setting<T, Default>): Setting<T, Default> {
  return entry
}
