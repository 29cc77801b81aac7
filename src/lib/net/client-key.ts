/** The source of a connection, as limits count it: an IPv4 address, or the /64 network of an IPv6 one. */
import { plainAddress } from './ip-rules.ts'

/** A client with one address of a /64 network usually has them all, so they count as one source. */
export function clientKeyOf(ip: string): string {
  const address = plainAddress(ip)
  if (!address.includes(':')) return address
  const [head = '', tail] = address.split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - first.length - last.length)
  return [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')
}
