/** The text of a field of an answer, whatever it holds. */

/** Empty for what is not there. */
export function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}
