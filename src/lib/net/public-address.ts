/** Checks whether an address is on the public internet; all others may lead to a private network or to this machine. */
import { BlockList } from 'node:net'
import { ipBytes } from './ip-bytes.ts'

/** IANA's special-purpose IPv4 networks, with multicast and reserved ones. */
const special4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const

/** Public IPv6 is in 2000::/3; these networks within it are special, or embed an IPv4 address. */
const special6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const

const list4 = new BlockList()
for (const [network, bits] of special4) list4.addSubnet(network, bits, 'ipv4')
const list6 = new BlockList()
for (const [network, bits] of special6) list6.addSubnet(network, bits, 'ipv6')

/** Whether `address`, in any spelling that a socket gives, is public. False for text that is not an address. */
export function isPublicAddress(address: string): boolean {
  const bytes = ipBytes(address)
  if (!bytes) return false
  if (bytes.length === 4) return !list4.check(bytes.join('.'), 'ipv4')
  const first = bytes[0] ?? 0
  return first >= 0x20 && first <= 0x3f && !list6.check(hextets(bytes), 'ipv6')
}

/** Whether `address` is a loopback address. */
export function isLoopbackAddress(address: string): boolean {
  const bytes = ipBytes(address)
  if (!bytes) return false
  if (bytes.length === 4) return bytes[0] === 127
  return hextets(bytes) === '0:0:0:0:0:0:0:1'
}

function hextets(bytes: Buffer): string {
  return Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16)).join(':')
}
