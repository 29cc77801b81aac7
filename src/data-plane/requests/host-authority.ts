/** Normalises the `Host` of a request, so that names can be compared. */
import { isIPv6 } from 'node:net'

/** RFC 1035 §2.3.4, in characters. */
const MAX_NAME = 253
/** Wider than the names that edges can have: a name that is not served is not a syntax error. */
const name = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/
const withPort = /^(.*?)(?::([0-9]{0,5}))?$/s

/** Lower case, without port and trailing dot, an IPv6 address in brackets; undefined when it is not a host. */
export function hostOf(authority: string): string | undefined {
  if (authority.length <= MAX_NAME && name.test(authority)) return authority
  const [, sent = '', port = ''] = withPort.exec(authority) ?? []
  if (Number(port) > 65_535) return undefined
  const host = sent.toLowerCase().replace(/\.$/, '')
  if (host.length <= MAX_NAME && name.test(host)) return host
  return host.startsWith('[') && host.endsWith(']') && isPlainIPv6(host.slice(1, -1)) ? host : undefined
}

/** Node accepts a zone id, which is meaningful on one machine only. */
function isPlainIPv6(address: string): boolean {
  return isIPv6(address) && !address.includes('%')
}
