/** Compiles users' regular expressions into flat arrays, which can move between threads and are searched directly. */
import { RE2Set } from 're2js'

/** The automaton of a list of patterns, as plain data: one array for each field of its instructions. */
export interface PatternProgram {
  /** The index of the first instruction; instruction 0 always fails. */
  readonly start: number
  readonly kinds: Uint8Array
  readonly outs: Int32Array
  readonly args: Int32Array
  /** The characters below `LATIN1` that each instruction accepts: one bit per character, in eight words. */
  readonly masks: Int32Array
  /** Where each instruction's ranges are in `ranges`: two numbers each, the first index and the one past the last. */
  readonly spans: Int32Array
  /** First and last character of each range. */
  readonly ranges: Int32Array
}

/** Characters below this are matched by one table lookup. */
export const LATIN1 = 256

/** The kinds of instruction, as the engine numbers them; 5 fails, and 8 and 9 list the characters they accept. */
export const op = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  emptyWidth: 4,
  match: 6,
  nothing: 7,
  rune: 8,
  anyRune: 10,
  notNewline: 11,
} as const

/** The bit in an instruction's argument that says to ignore case; only single characters have it. */
const FOLDS_CASE = 1

interface Instruction {
  readonly op: number
  readonly out: number
  readonly arg: number
  /** One character, or the first and last of each range. */
  readonly runes: Int32Array
}

/** Compiles patterns that were checked before (`pattern.ts`). */
export function compileProgram(patterns: readonly string[]): PatternProgram {
  const set = new RE2Set()
  for (const pattern of patterns) set.add(pattern)
  set.compile()
  const { start } = set.prog
  const program: readonly Instruction[] = set.prog.inst
  const { spans, ranges } = rangesOf(program)
  return {
    start,
    kinds: Uint8Array.from(program, (step) => step.op),
    outs: Int32Array.from(program, ({ out }) => out),
    args: Int32Array.from(program, ({ arg }) => arg),
    masks: latin1Masks(program, spans, ranges),
    spans,
    ranges,
  }
}

/** The buffers to transfer, so that a program reaches another thread without being copied. */
export function programBuffers({ kinds, outs, args, masks, spans, ranges }: PatternProgram): ArrayBuffer[] {
  return [kinds, outs, args, masks, spans, ranges].map(({ buffer }) => buffer as ArrayBuffer) // as made above
}

function rangesOf(program: readonly Instruction[]): Pick<PatternProgram, 'spans' | 'ranges'> {
  const spans = new Int32Array(program.length * 2)
  const ranges: number[] = []
  // Instructions that repeat one class share its ranges.
  const known = new Map<Int32Array | number, readonly [from: number, to: number]>()
  for (const [pc, step] of program.entries()) {
    if (step.op < op.rune || step.op >= op.anyRune) continue
    const [first = 0] = step.runes
    const folds = (step.arg & FOLDS_CASE) !== 0
    const key = step.runes.length === 1 ? first * 2 + Number(folds) : step.runes
    const span = known.get(key) ?? add(ranges, step.runes.length > 1 ? step.runes : cases(first, folds))
    known.set(key, span)
    spans.set(span, pc * 2)
  }
  return { spans, ranges: Int32Array.from(ranges) }
}

function add(ranges: number[], more: Iterable<number>): readonly [from: number, to: number] {
  const from = ranges.length
  for (const rune of more) ranges.push(rune)
  return [from, ranges.length]
}

/** A single character as ranges, with its other cases. */
function cases(rune: number, folds: boolean): Iterable<number> {
  if (!folds) return [rune, rune]
  if (rune > LAST_ASCII) return foldedClass(rune)
  const text = String.fromCodePoint(rune)
  const both = [text.toUpperCase(), text.toLowerCase()].map((each) => each.charCodeAt(0))
  // Two letters have a third case: the long s, and the Kelvin sign.
  return [...both, ...(text.toLowerCase() === 's' ? [0x17f] : text.toLowerCase() === 'k' ? [0x212a] : [])].flatMap(
    (each) => [each, each],
  )
}

const LAST_ASCII = 0x7f
const LAST_RUNE = 0x10ffff

/** The engine lists a character's other cases only in a class of several characters, so this adds another one. */
function foldedClass(rune: number): Iterable<number> {
  const set = new RE2Set()
  set.add(`(?i)[\\x{${rune.toString(16)}}\\x{${LAST_RUNE.toString(16)}}]`)
  set.compile()
  const step = set.prog.inst.find(({ runes }: Instruction) => runes.length > 2)
  return step ? step.runes.subarray(0, -2) : [rune, rune]
}

function latin1Masks(program: readonly Instruction[], spans: Int32Array, ranges: Int32Array): Int32Array {
  const masks = new Int32Array(program.length * 8)
  const take = (pc: number, from: number, to: number): void => {
    for (let rune = from; rune <= to && rune < LATIN1; rune++) {
      const word = (pc << 3) | (rune >> 5)
      masks[word] = (masks[word] ?? 0) | (1 << (rune & 31))
    }
  }
  for (const [pc, step] of program.entries()) {
    if (step.op < op.rune) continue
    if (step.op >= op.anyRune) {
      masks.fill(-1, pc << 3, (pc + 1) << 3)
      if (step.op === op.notNewline) masks[pc << 3] = ~(1 << 0x0a)
      continue
    }
    // Ranges are sorted.
    const end = spans[pc * 2 + 1] ?? 0
    for (let i = spans[pc * 2] ?? 0; i < end && (ranges[i] ?? 0) < LATIN1; i += 2) {
      take(pc, ranges[i] ?? 0, ranges[i + 1] ?? 0)
    }
  }
  return masks
}
