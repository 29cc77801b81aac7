/** The URL of a request with the changes of the rules so far. */
import type { Moment } from './moment.ts'

export function urlOf({ request }: Moment): string {
  if (!request) throw new Error('there is no request')
  const { scheme, authority, target, replacedHost, replacedTarget } = request
  return `${scheme}://${replacedHost ?? authority}${replacedTarget ?? target}`
}
