/**
 * Looks for regular expressions of users in text, at a cost with an upper bound.
 *
 * The engine that reads the patterns is linear in the text, but also in the size of a pattern, and it cannot be
 * stopped: `[ab]*a[ab]{900}c` takes 0.3 s on 8 KiB. So it compiles, and its program is walked here, with the steps counted.
 */
import { RE2Set } from 're2js'

/** Whether one of the patterns matches anywhere in `text`; undefined when more than `maxSteps` would be needed to know. */
export type PatternSearch = (text: string, maxSteps: number) => boolean | undefined

/** Compiles RE2 patterns that were checked before (`pattern.ts`) into one search. */
export function compilePatterns(patterns: readonly string[]): PatternSearch {
  if (patterns.length === 0) return () => false
  const set = new RE2Set()
  for (const pattern of patterns) set.add(pattern)
  set.compile()
  const { start, inst: program } = set.prog
  // Flat, since a search reads little else.
  const kinds = Uint8Array.from(program, ({ op }) => op)
  const outs = Int32Array.from(program, ({ out }) => out)
  const args = Int32Array.from(program, ({ arg }) => arg)
  const masks = latin1Masks(program)
  // Positions of the program: made once, used by one search at a time.
  const alive = new Int32Array(program.length)
  const reading = new Int32Array(program.length)
  const pending = new Int32Array(program.length + 1)
  /** The round in which a position was last visited, so that none has to be cleared. */
  const visited = new Int32Array(program.length)
  let round = 0

  return (text, maxSteps) => {
    let steps = maxSteps
    let aliveCount = 0
    let before = -1
    for (let at = 0; ; ) {
      const rune = text.codePointAt(at) ?? -1
      const context = around(before, rune)
      if (++round > MAX_ROUND) {
        visited.fill(0)
        round = 1
      }
      // All that can be reached without reading: from what the last character led to, and from the start.
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
        const takes = rune < LATIN1 ? ((masks[(pc << 3) | word] ?? 0) & bit) !== 0 : takesRune(program[pc], rune)
        if (takes) alive[aliveCount++] = outs[pc] ?? 0
      }
      before = rune
      at += rune > 0xffff ? 2 : 1
    }
  }
}

const MAX_ROUND = 2 ** 31 - 1
/** Up to here one look into a table tells what an instruction takes; above, it costs about this many steps. */
const LATIN1 = 256
const STEPS_ABOVE_LATIN1 = 10

/** The kinds of instruction, as the engine numbers them; 5 fails, 3 and 7 only lead on, 8 and 9 name what they take. */
const op = { alt: 1, altMatch: 2, emptyWidth: 4, match: 6, rune: 8, anyRune: 10, notNewline: 11 } as const

/** The bit in the argument of a single character. */
const FOLDS_CASE = 1

interface Instruction {
  readonly op: number
  readonly arg: number
  /** One character, or the first and last of each range. */
  readonly runes: Int32Array
  matchRune(rune: number): boolean
}

/** Which characters below `LATIN1` each instruction takes: a bit for each, in eight words. */
function latin1Masks(program: readonly Instruction[]): Int32Array {
  const masks = new Int32Array(program.length * 8)
  const take = (pc: number, from: number, to: number): void => {
    for (let rune = from; rune <= to && rune < LATIN1; rune++) {
      const word = (pc << 3) | (rune >> 5)
      masks[word] = (masks[word] ?? 0) | (1 << (rune & 31))
    }
  }
  // A single character may stand for its other case too, which takes long to ask for.
  const singles = new Map<number, readonly number[]>()
  for (const [pc, step] of program.entries()) {
    const [first = 0] = step.runes
    if (step.op < op.rune) continue
    if (step.op >= op.anyRune) {
      take(pc, 0, LATIN1)
      if (step.op === op.notNewline) masks[pc << 3] = ~(1 << 0x0a)
    } else if (step.runes.length === 1) {
      const key = first * 2 + (step.arg & FOLDS_CASE)
      const taken = singles.get(key) ?? [...Array(LATIN1).keys()].filter((rune) => step.matchRune(rune))
      singles.set(key, taken)
      for (const rune of taken) take(pc, rune, rune)
    } else {
      for (let i = 0; i < step.runes.length && (step.runes[i] ?? 0) < LATIN1; i += 2) {
        take(pc, step.runes[i] ?? 0, step.runes[i + 1] ?? 0)
      }
    }
  }
  return masks
}

function takesRune(step: Instruction | undefined, rune: number): boolean {
  if (!step) return false
  return step.op >= op.anyRune || step.matchRune(rune)
}

/** What `^`, `$`, `\b` and the like ask of a place: bits as the engine numbers them. */
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
