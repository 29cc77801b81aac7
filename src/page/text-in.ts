/** The text of a field of an answer, whatever it holds. */

/** Empty for null and undefined. */
export function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  return value === null || value === undefined ? '' : JSON.stringify(value)
}
