/** Time as a parameter, in milliseconds since 1970, so that tests can set it. */

export type Clock = () => number

/** RFC 3339 in UTC with whole seconds, the format of times in all answers of the API. */
export function timestamp(millis: number): string {
  return `${new Date(millis).toISOString().slice(0, 19)}Z`
}
