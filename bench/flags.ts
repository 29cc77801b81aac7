/** Checks for flags that several benches share. */

export class FlagFault extends Error {}

/** Whether an error only means that a flag was mistyped. */
export function isFlagFault(error: unknown): error is Error {
  if (error instanceof FlagFault) return true
  return error instanceof Error && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')
}

/** A whole number; throws a `FlagFault` that says what is wrong. */
export function count(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < least)
    throw new FlagFault(`--${flag} must be a whole number, ${least} or more`)
  return value
}

/** The rows of `--only`; null means all. Throws when there is no such row. */
export function onlyRows(only: string | undefined, names: readonly string[]): readonly string[] | null {
  const chosen = only?.split(',') ?? null
  const unknown = chosen?.filter((name) => !names.includes(name)) ?? []
  if (unknown.length > 0) throw new FlagFault(`--only: there is no ${unknown.join(', ')}; rows are ${names.join(', ')}`)
  return chosen
}
