/**
 * Reads a network in CIDR form strictly, and suggests a correction when it is almost right.
 *
 * Written by hand: libraries for addresses read `010.1.1.1` as octal, and do not suggest corrections.
 */

import { isIPv4, isIPv6 } from 'node:net'
import { BadInput } from '../shape/bad-input.ts'

interface Cidr {
  /** The lowest address of the range, as `canonical` spells it. */
  readonly network: string
  readonly bits: number
  readonly family: 4 | 6
  /** The one spelling of this network (RFC 5952 for IPv6), so equal networks are equal strings. */
  readonly canonical: string
}

/** Reads `10.0.0.0/8` or `2001:db8::/32`; throws an `Error` whose message suggests the right form. */
export function readCidr(text: string): Cidr {
  // Limits the text that error messages quote.
  if (text.length > MAX_CIDR_LENGTH) throw notANetwork()
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  if (address.includes('%')) throw new BadInput('A network cannot have a zone; leave out the `%` and what follows it.')
  const family = isIPv4(address) ? 4 : isIPv6(address) ? 6 : undefined
  if (family === undefined) throw notANetwork()

  const width = family === 4 ? 32 : 128
  const value = family === 4 ? readIPv4(address) : readIPv6(address)
  const mapped = family === 6 && value >> 32n === 0xffffn
  if (slash < 0) {
    const whole = family === 4 || mapped ? `${writeIPv4(value)}/32` : `${writeIPv6(value)}/128`
    throw new BadInput(`\`${address}\` has no mask; write \`${whole}\` for this one address.`, { reason: 'no_mask' })
  }
  const bits = readBits(text.slice(slash + 1), width)
  const lowest = (value >> BigInt(width - bits)) << BigInt(width - bits)
  if (mapped && bits >= 96) {
    // IPv4 visitors are matched as IPv4, so such a rule would never match.
    throw new BadInput(`\`${text}\` is an IPv4 network; write it as \`${writeIPv4(lowest)}/${bits - 96}\`.`)
  }
  const network = family === 4 ? writeIPv4(lowest) : writeIPv6(lowest)
  const canonical = `${network}/${bits}`
  if (lowest !== value) {
    throw new BadInput(
      `\`${text}\` is not the lowest address of its range; write \`${canonical}\`, or \`/${width}\` for one address.`,
      { reason: 'not_lowest' },
    )
  }
  return { network, bits, family, canonical }
}

/** The longest possible spelling: an IPv6 address with an IPv4 tail (45 characters) and `/128`. */
const MAX_CIDR_LENGTH = 49

function notANetwork(): Error {
  return new BadInput('A network is an IPv4 or IPv6 address with a mask, such as `10.0.0.0/8` or `2001:db8::/32`.')
}

function readBits(text: string, width: number): number {
  const bits = /^(0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : Number.POSITIVE_INFINITY
  if (bits > width) throw new BadInput(`The mask after the \`/\` must be a whole number from 0 to ${width}.`)
  return bits
}

function readIPv4(address: string): bigint {
  return address.split('.').reduce((value, octet) => (value << 8n) | BigInt(octet), 0n)
}

export function writeIPv4(value: bigint): string {
  return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.')
}

/** The value of an address that `isIPv6` has accepted. */
function readIPv6(address: string): bigint {
  const [head = '', tail] = address.split('::')
  const left = groups(head)
  const right = tail === undefined ? [] : groups(tail)
  const gap = Array<bigint>(8 - left.length - right.length).fill(0n)
  return [...left, ...gap, ...right].reduce((value, group) => (value << 16n) | group, 0n)
}

function groups(text: string): bigint[] {
  if (text === '') return []
  return text.split(':').flatMap((group) => {
    if (!group.includes('.')) return [BigInt(`0x${group}`)]
    const tail = readIPv4(group)
    return [tail >> 16n, tail & 0xffffn]
  })
}

/** RFC 5952 §4: lower case, no leading zeros, `::` for the first longest run of two or more zero groups. */
export function writeIPv6(value: bigint): string {
  const hex = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16))
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
