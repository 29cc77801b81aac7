/** The URL of a request as the rules so far left it. */
import type { Moment } from './moment.ts'

export function urlOf({ request }: Moment): string {
  if (!request) throw new Error('there is no request')
  const { scheme, authority, target, replacedHost, replacedTarget } = request
  return `${scheme}://${replacedHost ?? authority}${replacedTarget ?? target}`
}
