/** Checks the regular expressions of users before anything is compiled from them. */
import { RE2JS, RE2JSException } from 're2js'

/** A pattern that cannot be used; the message continues a sentence that began with where it stands. */
export class BadPattern extends Error {}

export const MAX_PATTERN_BYTES = 1024
/** Instructions in the program of one pattern. RE2 is linear in the text it searches, but also in this. */
const MAX_PROGRAM = 10_000

/** The size of the program of an RE2 pattern; throws `BadPattern`. */
export function patternSize(pattern: string): number {
  if (Buffer.byteLength(pattern) > MAX_PATTERN_BYTES) {
    throw new BadPattern(`is too long for a pattern; at most ${MAX_PATTERN_BYTES} bytes are allowed`)
  }
  // Before compiling: 1 KiB such as `(?:aaa…){1000}` takes a second and a million instructions to compile.
  const size = estimate(pattern)
  if (size > MAX_PROGRAM) {
    throw new BadPattern(
      `is too costly: it compiles to over ${MAX_PROGRAM} instructions; use fewer or smaller repetitions`,
    )
  }
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
  return size
}

/** An upper bound, near the truth, of how many instructions a pattern compiles to. */
function estimate(pattern: string): number {
  const outer: number[] = []
  let sum = 0
  let last = 0
  for (const { 0: text, groups } of pattern.matchAll(atoms)) {
    if (groups?.most !== undefined) {
      const times = Math.max(1, Number(groups.most || groups.least))
      sum += last * (times - 1)
      last *= times
    } else if (text.startsWith('(')) {
      outer.push(sum)
      sum = last = 0
    } else if (text === ')') {
      last = sum + 2
      sum = (outer.pop() ?? 0) + last
    } else {
      last = 1
      sum += text.startsWith('\\Q') ? text.length : 1
    }
  }
  return outer.reduce((total, each) => total + each, sum)
}

const atoms = new RegExp(
  [
    String.raw`\{(?<least>\d+)(?:,?)(?<most>\d*)\}`,
    String.raw`\((?:\?(?:P?<\w*>|[a-zA-Z-]*:?))?`,
    String.raw`\\(?:Q[^]*?(?:\\E|$)|[pPx]\{[^}]*\}|[^])`,
    String.raw`\[\^?\]?(?:\\[^]|\[:\^?\w*:\]|[^\]\\])*\]`,
    '[^]',
  ].join('|'),
  'g',
)
