/** A small strict reader of DER: it reads one level per call, so the caller decides how deep it goes. */
import { BadInput } from '../shape/bad-input.ts'

export interface DerElement {
  readonly tag: number
  readonly body: Buffer
}

export const derTag = { boolean: 0x01, bitString: 0x03, octetString: 0x04, oid: 0x06, sequence: 0x30 } as const

/**
 * The elements that make up all of `bytes`; throws on anything that is not DER.
 *
 * Written by hand: `node:crypto` does not provide the parts of a certificate that we show, and an ASN.1 library builds the
 * whole tree of untrusted input, however deep it is.
 */
export function derElements(bytes: Buffer): DerElement[] {
  const elements: DerElement[] = []
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] ?? 0
    // Tag numbers above 30 take more bytes; nothing we read has them.
    if ((tag & 0x1f) === 0x1f) throw new BadInput('DER: unexpected long tag')
    const { length, start } = readLength(bytes, at + 1)
    if (start + length > bytes.length) throw new BadInput('DER: an element is cut short')
    elements.push({ tag, body: bytes.subarray(start, start + length) })
    at = start + length
  }
  return elements
}

/** The body of the one element with this tag that `bytes` consists of. */
export function derOnly(bytes: Buffer, tag: number): Buffer {
  const [element, ...rest] = derElements(bytes)
  if (element?.tag !== tag || rest.length > 0) throw new BadInput(`DER: expected one element with tag ${tag}`)
  return element.body
}

/** The dotted form of an object identifier's body. */
export function dottedOid(body: Buffer): string {
  // Without a limit one long arc would make the arithmetic below quadratic; real identifiers are under 20 bytes.
  if (body.length === 0 || body.length > MAX_OID_BYTES)
    throw new BadInput('DER: an object identifier is too long or empty')
  const arcs: bigint[] = []
  let arc = 0n
  for (const byte of body) {
    // X.690 §8.19.2: no leading zeros, or one identifier would have many spellings.
    if (arc === 0n && byte === 0x80) throw new BadInput('DER: an object identifier is malformed')
    arc = (arc << 7n) | BigInt(byte & 0x7f)
    if (byte & 0x80) continue
    arcs.push(arc)
    arc = 0n
  }
  if (arc !== 0n) throw new BadInput('DER: an object identifier is cut short')
  const [first = 0n, ...others] = arcs
  // X.690 §8.19.4: the first two arcs share one number.
  const root = first < 80n ? first / 40n : 2n
  return [root, first - root * 40n, ...others].join('.')
}

const MAX_OID_BYTES = 64

function readLength(bytes: Buffer, at: number): { length: number; start: number } {
  const first = bytes[at]
  if (first === undefined) throw new BadInput('DER: an element has no length')
  if (first < 0x80) return { length: first, start: at + 1 }
  const size = first & 0x7f
  if (size < 1 || size > 4 || at + 1 + size > bytes.length) throw new BadInput('DER: a length is not readable')
  const length = bytes.readUIntBE(at + 1, size)
  // DER has one way to write a length: the shortest.
  if (length < 0x80 || length < 2 ** (8 * (size - 1))) throw new BadInput('DER: a length is not in its shortest form')
  return { length, start: at + 1 + size }
}
