/** Time as a parameter: milliseconds since 1970, so that tests can set it and jump it. */

export type Clock = () => number

/** RFC 3339 in UTC, whole seconds, as every answer of the API spells times. */
export function timestamp(millis: number): string {
  return `${new Date(millis).toISOString().slice(0, 19)}Z`
}
