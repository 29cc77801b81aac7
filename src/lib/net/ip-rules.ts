/** Rules that allow or deny networks: an address passes when an allow rule matches it and no deny rule does. */
import { BlockList, isIP } from 'node:net'
import { readCidr } from './cidr.ts'

export interface IpRule {
  readonly action: 'allow' | 'deny'
  /** In CIDR form. */
  readonly network: string
}

/** Compiles rules, in any order, into a test for addresses. An empty list admits nobody. */
export function compileIpRules(rules: readonly IpRule[]): (address: string) => boolean {
  // One list for each family: in a shared list `::/0` would match every IPv4 address as well.
  const lists = {
    allow: { 4: new BlockList(), 6: new BlockList() },
    deny: { 4: new BlockList(), 6: new BlockList() },
  }
  for (const { action, network } of rules) {
    const cidr = readCidr(network)
    lists[action][cidr.family].addSubnet(cidr.network, cidr.bits, familyName[cidr.family])
  }
  return (address) => {
    const plain = plainAddress(address)
    const family = isIP(plain)
    if (family !== 4 && family !== 6) return false
    const matches = (list: Record<4 | 6, BlockList>) => list[family].check(plain, familyName[family])
    return matches(lists.allow) && !matches(lists.deny)
  }
}

/** The same, but remembers the answer for each peer: checking walks the rules, and may happen often on one connection. */
export function compilePeerRules(rules: readonly IpRule[]): (peer: { readonly ip: string }) => boolean {
  const isAdmitted = compileIpRules(rules)
  const known = new WeakMap<{ readonly ip: string }, boolean>()
  return (peer) => {
    let passes = known.get(peer)
    if (passes === undefined) {
      passes = isAdmitted(peer.ip)
      known.set(peer, passes)
    }
    return passes
  }
}

const familyName = { 4: 'ipv4', 6: 'ipv6' } as const

/** An address as rules compare it: IPv4-mapped IPv6 as IPv4, and without a zone. */
export function plainAddress(address: string): string {
  const unzoned = address.split('%')[0] ?? ''
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(unzoned)?.[1]
  return mapped ?? unzoned
}
