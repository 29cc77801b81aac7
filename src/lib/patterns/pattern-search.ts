/** Searches text for users' regular expressions at a bounded cost. */
import { compileProgram, LATIN1, op, type PatternProgram } from './pattern-program.ts'

/** Whether one of the patterns matches anywhere in `text`; undefined when more than `maxSteps` would be needed to know. */
export type PatternSearch = (text: string, maxSteps: number) => boolean | undefined

/** Compiles RE2 patterns that were checked before (`pattern.ts`) into one search. */
export function compilePatterns(patterns: readonly string[]): PatternSearch {
  return patterns.length === 0 ? () => false : searchProgram(compileProgram(patterns))
}

/**
 * A search for the patterns that `program` was compiled from.
 *
 * The regular expression engine is linear in the text, but also in the size of the pattern, and a search cannot be stopped:
 * `[ab]*a[ab]{900}c` takes 0.3 s on 8 KiB. So the engine only compiles; its program runs here, counting steps.
 */
export function searchProgram(program: PatternProgram): PatternSearch {
  const { start, kinds, outs, args, masks } = program
  const { length } = kinds
  // Work space, indexes into the program: allocated once, used by one search at a time.
  const alive = new Int32Array(length)
  const reading = new Int32Array(length)
  const pending = new Int32Array(length + 1)
  /** The round in which each instruction was last visited, so that nothing has to be cleared between rounds. */
  const visited = new Int32Array(length)
  let round = 0
  const isAnchored = beginsWithText(program)

  return (text, maxSteps) => {
    let steps = maxSteps
    let aliveCount = 0
    let before = -1
    for (let at = 0; ; ) {
      // An anchored pattern can begin only at the start of the text.
      if (isAnchored && at > 0 && aliveCount === 0) return false
      const rune = text.codePointAt(at) ?? -1
      const context = around(before, rune)
      if (++round > MAX_ROUND) {
        visited.fill(0)
        round = 1
      }
      // Everything reachable without reading a character: from the state after the last one, and from the start.
      let readingCount = 0
      let pendingCount = 0
      pending[pendingCount++] = start
      for (let i = 0; i < aliveCount; i++) pending[pendingCount++] = alive[i] ?? 0
      while (pendingCount > 0) {
        let pc = pending[--pendingCount] ?? 0
        while (pc !== 0 && visited[pc] !== round) {
          visited[pc] = round
          steps--
          const kind = kinds[pc] ?? 0
          if (kind >= op.rune) {
            reading[readingCount++] = pc
            break
          }
          if (kind === op.match) return true
          if (kind === op.emptyWidth && ((args[pc] ?? 0) & ~context) !== 0) break
          if (kind === op.alt || kind === op.altMatch) pending[pendingCount++] = args[pc] ?? 0
          pc = outs[pc] ?? 0
        }
      }
      if (rune < 0) return false
      steps -= rune < LATIN1 ? readingCount : readingCount * STEPS_ABOVE_LATIN1
      if (steps < 0) return undefined
      aliveCount = 0
      const word = rune >> 5
      const bit = 1 << (rune & 31)
      for (let i = 0; i < readingCount; i++) {
        const pc = reading[i] ?? 0
        const takes = rune < LATIN1 ? ((masks[(pc << 3) | word] ?? 0) & bit) !== 0 : takesRune(program, pc, rune)
        if (takes) alive[aliveCount++] = outs[pc] ?? 0
      }
      before = rune
      at += rune > 0xffff ? 2 : 1
    }
  }
}

/** Whether a program can match only at the start of the text. */
function beginsWithText({ start, kinds, outs, args }: PatternProgram): boolean {
  let pc = start
  while (kinds[pc] === op.capture || kinds[pc] === op.nothing) pc = outs[pc] ?? 0
  return kinds[pc] === op.emptyWidth && ((args[pc] ?? 0) & BEGIN_TEXT) !== 0
}

/** The engine's bit for the start of the text. */
const BEGIN_TEXT = 4

const MAX_ROUND = 2 ** 31 - 1
/** For characters from `LATIN1` up, testing an instruction costs about this many steps. */
const STEPS_ABOVE_LATIN1 = 10

/** Whether an instruction accepts `rune`. */
function takesRune({ kinds, spans, ranges }: PatternProgram, pc: number, rune: number): boolean {
  if ((kinds[pc] ?? 0) >= op.anyRune) return true
  // Binary search for the last range that begins at or before `rune`; a range takes two entries.
  let low = (spans[pc * 2] ?? 0) >> 1
  let high = (spans[pc * 2 + 1] ?? 0) >> 1
  const first = low
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ranges[middle * 2] ?? 0) <= rune) low = middle + 1
    else high = middle
  }
  return low > first && rune <= (ranges[low * 2 - 1] ?? 0)
}

/** What holds between two characters, for `^`, `$`, `\b` and the like: bits as the engine numbers them. */
function around(before: number, after: number): number {
  let bits = isWord(before) === isWord(after) ? 32 : 16
  if (before < 0) bits |= 5
  else if (before === 0x0a) bits |= 1
  if (after < 0) bits |= 10
  else if (after === 0x0a) bits |= 2
  return bits
}

function isWord(rune: number): boolean {
  return (
    (rune >= 0x61 && rune <= 0x7a) || (rune >= 0x41 && rune <= 0x5a) || (rune >= 0x30 && rune <= 0x39) || rune === 0x5f
  )
}
