/** Checks the regular expressions of users before anything is compiled from them. */
import { RE2JS, RE2JSException } from 're2js'
import { patternPrice } from './pattern-price.ts'

/** A pattern that cannot be used; the message continues a sentence that begins with the field's name. */
export class BadPattern extends Error {}

export const MAX_PATTERN_BYTES = 1024
/** The highest price of one pattern, in instructions: the time of a search grows with it. */
const MAX_PRICE = 10_000

/** The price of a pattern, before it is compiled; throws `BadPattern` when it is too long or too costly. */
export function affordable(pattern: string): number {
  if (Buffer.byteLength(pattern) > MAX_PATTERN_BYTES) {
    throw new BadPattern(`is too long for a pattern; at most ${MAX_PATTERN_BYTES} bytes are allowed`)
  }
  const price = patternPrice(pattern)
  if (price <= MAX_PRICE) return price
  throw new BadPattern(
    `is too costly: it compiles to over ${MAX_PRICE} instructions; use fewer or smaller repetitions and classes`,
  )
}

/** Compiles an RE2 pattern once to see whether it is valid, and returns its price; throws `BadPattern`. */
export function checkPattern(pattern: string): number {
  // Priced before it is compiled: 1 KiB such as `(?:aaa…){1000}` takes a second and a million instructions.
  const price = affordable(pattern)
  try {
    RE2JS.compile(pattern)
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause
    const reason = cause.message.replace(/^error parsing regexp: /, '').slice(0, 120)
    throw new BadPattern(
      `is not a valid RE2 regular expression (which has no look-around and no back-references): ${reason}`,
      { cause },
    )
  }
  return price
}
