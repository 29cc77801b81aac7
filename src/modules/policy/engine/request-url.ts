/** The URL of a request with the changes of the rules so far. */
import type { Moment } from './moment.ts'

export function urlOf({ ownRequest }: Moment): string {
  const { scheme, authority, target, replacedHost, replacedTarget } = ownRequest
  return `${scheme}://${replacedHost ?? authority}${replacedTarget ?? target}`
}
