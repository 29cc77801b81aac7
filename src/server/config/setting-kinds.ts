/** What a setting of the server is: its spellings, its check and its help text. */

interface SettingOptions<Default extends string | null> {
  /** As an operator would write it; null if it depends on other settings or is unset. */
  readonly default: Default
  /** What to show instead when `default` is null. */
  readonly defaultNote?: string
  readonly about: string
  readonly example: string
  /** A secret. Read from the environment only: flags show in process lists, and files get committed. */
  readonly envOnly?: boolean
  /** Whether a running server applies a new value without a restart. */
  readonly isLive?: boolean
}

export interface Setting<T, Default extends string | null = string | null> extends SettingOptions<Default> {
  /** The flag without its dashes; the other spellings derive from it. */
  readonly name: string
  /** The value in `--help`: `<path>`, or `[on|off]` if the flag alone means `on`. */
  readonly takes: string
  /** Relative paths start at `cwd`. */
  readonly parse: (text: string, cwd?: string) => T
}

/** `spelling` is as in `--help`, without the dashes: `data-dir <folder>`. */
export function setting<T, const Default extends string | null>(
  spelling: `${string} <${string}>` | `${string} [on|off]`,
  parse: Setting<T>['parse'],
  options: SettingOptions<Default>,
): Setting<T, Default> {
  const [name = '', takes = ''] = spelling.split(' ')
  return { name, takes, parse, ...options }
}
