/** The URL of a request, in all forms in which the sender may have signed it. */
import type { RequestContext } from '../phases.ts'

/** With and without the default port, and with and without needless escapes. */
export function urlsOf({ scheme, authority, target }: RequestContext): readonly string[] {
  const host = authority.replace(/:\d+$/, '')
  const authorities = [authority, host, `${host}:${scheme === 'https' ? 443 : 80}`]
  const targets = [target, target.replace(needlessEscape, (each) => decodeURIComponent(each))]
  return [...new Set(authorities.flatMap((each) => targets.map((rest) => `${scheme}://${each}${rest}`)))]
}

/** `:/?@!$'()*,;`: HubSpot signs these as characters, however they were sent. */
const needlessEscape = /%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi
