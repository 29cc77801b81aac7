/** Converts IP addresses between text and the bytes used in packets and headers. */
import { isIPv4, isIPv6 } from 'node:net'

/** The 4 or 16 bytes of `address`; undefined when it is not an IP address. A zone, as in `fe80::1%eth0`, is dropped. */
export function ipBytes(address: string): Buffer | undefined {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number))
  const [plain = ''] = address.split('%')
  return isIPv6(plain) ? ipv6Bytes(plain) : undefined
}

/** The text of an address of 4 or 16 bytes; an IPv4-mapped IPv6 address is written as IPv4. */
export function ipText(bytes: Buffer): string {
  if (bytes.length === 4) return bytes.join('.')
  if (isMappedIPv4(bytes)) return bytes.subarray(12).join('.')
  return ipv6Text(bytes)
}

/** RFC 5952 §4: lower case, no leading zeros, `::` for the first longest run of two or more zero groups. */
export function ipv6Text(bytes: Buffer): string {
  const hex = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(2 * i).toString(16))
  let runStart = 0
  let runLength = 1
  for (let start = 0; start < 8; start++) {
    let end = start
    while (hex[end] === '0') end++
    if (end - start > runLength) {
      runStart = start
      runLength = end - start
    }
  }
  if (runLength < 2) return hex.join(':')
  return `${hex.slice(0, runStart).join(':')}::${hex.slice(runStart + runLength).join(':')}`
}

/** RFC 4291 §2.5.5.2: the prefix of an IPv4-mapped IPv6 address. */
const MAPPED = Buffer.from('00000000000000000000ffff', 'hex')

export function isMappedIPv4(bytes: Buffer): boolean {
  return bytes.length === 16 && bytes.subarray(0, 12).equals(MAPPED)
}

/** The same address in 16 bytes; IPv4 becomes IPv4-mapped. */
export function asIPv6(bytes: Buffer): Buffer {
  return bytes.length === 4 ? Buffer.concat([MAPPED, bytes]) : bytes
}

function ipv6Bytes(address: string): Buffer {
  const [head = '', tail] = address.split('::')
  const left = groupBytes(head)
  const right = tail === undefined ? [] : groupBytes(tail)
  const gap = Array<number>(16 - left.length - right.length).fill(0)
  return Buffer.from([...left, ...gap, ...right])
}

function groupBytes(text: string): number[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (group.includes('.')) return group.split('.').map(Number)
    const value = Number.parseInt(group, 16)
    return [value >> 8, value & 0xff]
  })
}
