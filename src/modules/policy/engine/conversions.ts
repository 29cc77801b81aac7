/** The functions of expressions that convert between types. */
import { Fault, type Impl, type Impls } from './evaluation-frame.ts'

/**
 * No number, time or duration is written with more characters than this: conversions are strict, and only read short texts.
 */
const MAX_TEXT = 64

/** The cost of reading a time or a duration with the library. */
const TIME_NANOS = 10_000
const BYTE_NANOS = 3

const isInteger = (text: string): boolean => /^[+-]?\d{1,20}$/.test(text)
const isDouble = (text: string): boolean =>
  /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?|nan)$/i.test(text)

/** Refuses a text that the library would read too leniently or too slowly. */
function readable(isWellFormed: (text: string) => boolean, what: string): Impl {
  return (_frame, a) => {
    if (typeof a !== 'string' || (a.length <= MAX_TEXT && isWellFormed(a))) return undefined
    return new Fault(`a text cannot be read as ${what}`)
  }
}

const readInteger = readable(isInteger, 'a number')
const readDouble = readable(isDouble, 'a number')

const time: Impl = (frame, a) => {
  frame.budget.charge(TIME_NANOS)
  return typeof a === 'string' && a.length > MAX_TEXT ? new Fault('a text cannot be read as a time') : undefined
}

const bytes: Impl = ({ budget }, a) => {
  if (typeof a === 'string' || a instanceof Uint8Array) budget.charge(a.length * BYTE_NANOS)
  return undefined
}

export const conversions: Impls = {
  'int/1': (frame, a, b, c, d) => (typeof a === 'bigint' ? a : readInteger(frame, a, b, c, d)),
  'uint/1': readable(isInteger, 'a number'),
  'double/1': (frame, a, b, c, d) => {
    if (typeof a === 'number') return a
    if (typeof a !== 'string') return undefined
    return readDouble(frame, a, b, c, d) ?? doubleOf(a)
  },
  'bool/1': readable((text) => /^(?:true|True|TRUE|t|1|false|False|FALSE|f|0)$/.test(text), 'true or false'),
  'string/1': (frame, a, b, c, d) => {
    if (typeof a === 'string') return a
    if (typeof a === 'bigint' || typeof a === 'boolean') return String(a)
    return bytes(frame, a, b, c, d)
  },
  'bytes/1': bytes,
  'timestamp/1': time,
  'duration/1': time,
  'dyn/1': (_frame, a) => a,
}

function doubleOf(text: string): number {
  const [, sign, word] = /^([+-]?)(inf(?:inity)?|nan)$/i.exec(text) ?? []
  if (word === undefined) return Number(text)
  if (word.toLowerCase() === 'nan') return Number.NaN
  return sign === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}
