/** A small writer of DER: each function returns one complete element. */
import { derTag } from './der.ts'

/**
 * An element with this tag that contains `parts`. Written by hand: `node:crypto` cannot write certificates, and ours use ten
 * kinds of elements (see x509-writer.ts).
 */
export function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([Buffer.from([tag]), lengthBytes(length), ...parts])
}

export function derSequence(...parts: readonly Buffer[]): Buffer {
  return der(derTag.sequence, ...parts)
}

export function derOid(dotted: string): Buffer {
  const [root = 0, second = 0, ...others] = dotted.split('.').map(Number)
  // X.690 §8.19.4: the first two arcs share one number.
  return der(derTag.oid, Buffer.from([root * 40 + second, ...others].flatMap(base128)))
}

export function derBoolean(value: boolean): Buffer {
  return der(derTag.boolean, Buffer.from([value ? 0xff : 0]))
}

/** A non-negative number, from its big-endian bytes. */
export function derInteger(bytes: Buffer): Buffer {
  const firstSet = bytes.findIndex((byte) => byte !== 0)
  const shortest = firstSet < 0 ? Buffer.from([0]) : bytes.subarray(firstSet)
  // X.690 §8.3.3: the highest bit is the sign.
  const sign = Buffer.alloc((shortest[0] ?? 0) >= 0x80 ? 1 : 0)
  return der(0x02, sign, shortest)
}

export function derUtf8(text: string): Buffer {
  return der(0x0c, Buffer.from(text))
}

/** Whole bytes as a BIT STRING. */
export function derBits(bytes: Buffer): Buffer {
  return der(derTag.bitString, Buffer.from([0]), bytes)
}

/** Named bits, by their numbers, as a BIT STRING without zeros at its end (X.690 §11.2.2). */
export function derNamedBits(numbers: readonly number[]): Buffer {
  const highest = Math.max(...numbers)
  const bytes = Buffer.alloc((highest >> 3) + 1)
  for (const number of numbers) bytes[number >> 3] = (bytes[number >> 3] ?? 0) | (0x80 >> (number & 7))
  return der(derTag.bitString, Buffer.from([7 - (highest & 7)]), bytes)
}

export function derOctets(bytes: Buffer): Buffer {
  return der(derTag.octetString, bytes)
}

/** A time in whole seconds, in the form of RFC 5280 §4.1.2.5: years from 2050 on have four digits. */
export function derTime(millis: number): Buffer {
  const digits = `${new Date(millis).toISOString().slice(0, 19).replace(/\D/g, '')}Z`
  const isShort = digits < '2050' && digits >= '1950'
  return isShort ? der(0x17, Buffer.from(digits.slice(2))) : der(0x18, Buffer.from(digits))
}

/** One DER value as PEM. */
export function derToPem(label: string, bytes: Buffer): string {
  const lines = bytes.toString('base64').replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}

function lengthBytes(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.from([0x80 | bytes.length, ...bytes])
}

function base128(arc: number): number[] {
  const bytes = [arc % 128]
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift(0x80 | (rest % 128))
  return bytes
}
