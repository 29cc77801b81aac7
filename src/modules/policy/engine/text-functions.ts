/** The functions of expressions that read texts and make new ones. */
import { payFor } from './cel-values.ts'
import { Fault, type Frame, type Impl, type Impls } from './evaluation-frame.ts'
import { itemsOf, MAX_ITEMS, MAX_TEXT } from './operators.ts'

/**
 * The cost of comparing two characters in a search. The worst case, such as `baaa…` in `aaaa…`, takes as many
 * comparisons as the length of one text times that of the other.
 */
const SOUGHT_NANOS = 1
/** The cost of reading a character, and of writing one into a new text. */
const READ_NANOS = 6
/** The cost of each character of a text whose code points are counted. */
const COUNT_NANOS = 9
const MADE_NANOS = 6
/** The cost of making one of the pieces of a text. */
const PIECE_NANOS = 120
/** The cost of writing one value into a format with the library; numbers with a fraction take the longest. */
const FORMATTED_NANOS = 60_000
/** Formatting values as hexadecimal costs this many times as much as reading them. */
const HEXADECIMAL = 6

const ALL = Number.POSITIVE_INFINITY

function codePoints(text: string): number {
  let count = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    // The second half of a surrogate pair does not count; a lone half does.
    const isSecond = code >= 0xdc00 && code <= 0xdfff && i > 0 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800
    if (!isSecond) count++
  }
  return count
}

function paySearch({ budget }: Frame, text: string, sought: string): void {
  if (sought.length <= text.length) budget.charge(text.length * Math.max(1, sought.length) * SOUGHT_NANOS)
}

/** Charges for a search, which the library then does. */
const searchPrice: Impl = (frame, a, b) => {
  if (typeof a === 'string' && typeof b === 'string') paySearch(frame, a, b)
  return undefined
}

function makeText(make: (text: string) => string): Impl {
  return (frame, a) => {
    if (typeof a !== 'string') return undefined
    frame.budget.charge(a.length * MADE_NANOS)
    return make(a)
  }
}

/** Replaces from left to right, in one pass. */
function replace(frame: Frame, text: unknown, from: unknown, to: unknown, most: number): unknown {
  if (typeof text !== 'string' || typeof from !== 'string' || typeof to !== 'string') return undefined
  paySearch(frame, text, from)
  const pieces: string[] = []
  let at = 0
  let length = text.length
  for (let count = 0; count < most; count++) {
    const found = text.indexOf(from, from === '' && count > 0 ? at + 1 : at)
    if (found < 0 || (from === '' && at >= text.length && count > 0)) break
    frame.budget.charge(PIECE_NANOS)
    length += to.length - from.length
    if (length > MAX_TEXT) return new Fault('a text has become too long')
    pieces.push(text.slice(at, found), to)
    at = found + from.length
  }
  pieces.push(text.slice(at))
  frame.budget.charge(length / 2)
  return pieces.join('')
}

function split(frame: Frame, text: unknown, by: unknown, most: unknown): unknown {
  if (typeof text !== 'string' || typeof by !== 'string' || typeof most !== 'bigint') return undefined
  if (most === 0n) return []
  paySearch(frame, text, by)
  // The last piece takes all the rest.
  const pieces: string[] = []
  for (let at = 0; ; ) {
    frame.budget.charge(PIECE_NANOS)
    if (pieces.length >= MAX_ITEMS) return new Fault('a list has become too long')
    const end = pieces.length === Number(most) - 1 ? -1 : endOfPiece(text, by, at)
    if (end < 0) {
      if (by !== '' || at < text.length) pieces.push(text.slice(at))
      return pieces
    }
    pieces.push(text.slice(at, end))
    at = end + by.length
  }
}

/** Without a separator the pieces are characters. */
function endOfPiece(text: string, by: string, at: number): number {
  if (by !== '') return text.indexOf(by, at)
  const end = at + ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1)
  return end < text.length ? end : -1
}

function join(frame: Frame, list: unknown, by: unknown): unknown {
  if (!frame.library.cel.isCelList(list) || typeof by !== 'string') return undefined
  const texts: string[] = []
  let length = 0
  for (const item of itemsOf(list, frame.budget)) {
    if (typeof item !== 'string') return new Fault('only strings can be joined')
    length += item.length + by.length
    texts.push(item)
  }
  if (length > MAX_TEXT) return new Fault('a text has become too long')
  frame.budget.charge(length)
  return texts.join(by)
}

export const textFunctions: Impls = {
  'size/1': (frame, a) => {
    if (typeof a === 'string') {
      frame.budget.charge(a.length * COUNT_NANOS)
      return BigInt(codePoints(a))
    }
    if (a instanceof Uint8Array) return BigInt(a.length)
    const { isCelList, isCelMap } = frame.library.cel
    return isCelList(a) || isCelMap(a) ? BigInt(a.size) : undefined
  },
  'startsWith/2': (frame, a, b) => {
    if (typeof a !== 'string' || typeof b !== 'string') return undefined
    frame.budget.charge(b.length * READ_NANOS)
    return a.startsWith(b)
  },
  'endsWith/2': (frame, a, b) => {
    if (typeof a !== 'string' || typeof b !== 'string') return undefined
    frame.budget.charge(b.length * READ_NANOS)
    return a.endsWith(b)
  },
  'contains/2': (frame, a, b) => {
    if (typeof a !== 'string' || typeof b !== 'string') return undefined
    paySearch(frame, a, b)
    return a.includes(b)
  },
  'indexOf/2': searchPrice,
  'indexOf/3': searchPrice,
  'lastIndexOf/2': searchPrice,
  'lastIndexOf/3': searchPrice,
  'lower/1': makeText((text) => text.toLowerCase()),
  'upper/1': makeText((text) => text.toUpperCase()),
  'lowerAscii/1': makeText((text) => text.replace(/[A-Z]+/g, (part) => part.toLowerCase())),
  'upperAscii/1': makeText((text) => text.replace(/[a-z]+/g, (part) => part.toUpperCase())),
  'replace/3': (frame, a, b, c) => replace(frame, a, b, c, ALL),
  'replace/4': (frame, a, b, c, d) =>
    typeof d === 'bigint' ? replace(frame, a, b, c, d < 0n ? ALL : Number(d)) : undefined,
  'split/2': (frame, a, b) => split(frame, a, b, -1n),
  'split/3': split,
  'join/1': (frame, a) => join(frame, a, ''),
  'join/2': join,
  'trim/1': (frame, a) => {
    if (typeof a === 'string') frame.budget.charge(a.length * MADE_NANOS)
    return undefined
  },
  'strings.quote/1': (frame, a) => {
    if (typeof a === 'string') frame.budget.charge(a.length * PIECE_NANOS)
    return undefined
  },
  'format/2': (frame, a, b) => {
    if (typeof a !== 'string') return undefined
    frame.budget.charge(a.length * MADE_NANOS + (a.split('%').length - 1) * FORMATTED_NANOS)
    if (/%[xX]/.test(a)) for (let i = 0; i < HEXADECIMAL; i++) payFor(frame.library.cel, b, frame.budget)
    return undefined
  },
  'reverse/1': (frame, a) => {
    if (typeof a === 'string') {
      frame.budget.charge(a.length * PIECE_NANOS)
      return Array.from(a).reverse().join('')
    }
    return frame.library.cel.isCelList(a) ? itemsOf(a, frame.budget).reverse() : undefined
  },
}
