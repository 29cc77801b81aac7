/** What flags of several benches have in common. */

/** A whole number; throws an `Error` that says what is wrong. */
export function count(flag: string, text: string, least: number): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < least) throw new Error(`--${flag} must be a whole number, ${least} or more`)
  return value
}

/** The rows of `--only`; null is all. Throws when there is no such row. */
export function onlyRows(only: string | undefined, names: readonly string[]): readonly string[] | null {
  const chosen = only?.split(',') ?? null
  const unknown = chosen?.filter((name) => !names.includes(name)) ?? []
  if (unknown.length > 0) throw new Error(`--only: there is no ${unknown.join(', ')}; rows are ${names.join(', ')}`)
  return chosen
}
