/** Reads a network in CIDR form strictly, and suggests a correction when it is almost right. */

import { BadInput } from '../shape/bad-input.ts'
import { ipBytes, ipText, isMappedIPv4 } from './ip-bytes.ts'

interface Cidr {
  /** The lowest address of the range, as `canonical` spells it. */
  readonly network: string
  readonly bits: number
  readonly family: 4 | 6
  /** The one spelling of this network (RFC 5952 for IPv6), so equal networks are equal strings. */
  readonly canonical: string
}

/**
 * Reads `10.0.0.0/8` or `2001:db8::/32`; throws an `Error` whose message suggests the right form. Written by hand: libraries
 * for addresses read `010.1.1.1` as octal, and do not suggest corrections.
 */
export function readCidr(text: string): Cidr {
  // Limits the text that error messages quote.
  if (text.length > MAX_CIDR_LENGTH) throw notANetwork()
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  if (address.includes('%')) throw new BadInput('A network cannot have a zone; leave out the `%` and what follows it.')
  const bytes = ipBytes(address)
  if (bytes === undefined) throw notANetwork()

  const width = 8 * bytes.length
  const isMapped = isMappedIPv4(bytes)
  if (slash < 0) {
    const whole = `${ipText(bytes)}/${isMapped ? 32 : width}`
    throw new BadInput(`\`${address}\` has no mask; write \`${whole}\` for this one address.`, { reason: 'no_mask' })
  }
  const bits = readBits(text.slice(slash + 1), width)
  const lowest = lowestOf(bytes, bits)
  const network = ipText(lowest)
  if (isMapped && bits >= 96) {
    // IPv4 visitors are matched as IPv4, so such a rule would never match.
    throw new BadInput(`\`${text}\` is an IPv4 network; write it as \`${network}/${bits - 96}\`.`)
  }
  const canonical = `${network}/${bits}`
  if (!lowest.equals(bytes)) {
    throw new BadInput(
      `\`${text}\` is not the lowest address of its range; write \`${canonical}\`, or \`/${width}\` for one address.`,
      { reason: 'not_lowest' },
    )
  }
  return { network, bits, family: bytes.length === 4 ? 4 : 6, canonical }
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

/** The lowest address of the range. */
function lowestOf(bytes: Buffer, bits: number): Buffer {
  return Buffer.from(bytes.map((byte, i) => byte & (0xff00 >> Math.max(0, Math.min(8, bits - 8 * i)))))
}
