/** Reads JSON from outside strictly: UTF-8, no duplicate keys, no `__proto__`, no NUL, bounded depth and width. */
import { othersTurn } from '../threads/others-turn.ts'

/** JSON that we refuse; the message can be shown to the sender. */
export class BadJson extends Error {
  override readonly name = 'BadJson'
}

interface JsonBounds {
  readonly maxDepth: number
  /** Values and keys in all. Reading time grows with their number: 1 MiB of brackets takes 0.2 s. */
  readonly maxValues: number
}

/**
 * The most values and keys in a document from outside: later code visits each of them several times in one turn. The
 * largest known document, an ACL of 1000 rules, has 1,003.
 */
export const MAX_JSON_VALUES = 5000

/**
 * Parses `bytes` as one JSON value (RFC 8259); throws `BadJson`.
 *
 * Written by hand, in one pass: `JSON.parse` accepts duplicate keys and `__proto__`, has no limit on depth, and blocks the
 * event loop until it is done.
 */
export function parseJson(bytes: Uint8Array, bounds: JsonBounds): unknown {
  const source = new Source(decode(bytes), bounds)
  while (!source.isWhole) source.step()
  return source.value
}

/** The same without blocking the event loop: reading a large body pauses for other work. */
export async function readJson(bytes: Uint8Array, bounds: JsonBounds): Promise<unknown> {
  const breath = othersTurn()
  const source = new Source(decode(bytes), bounds)
  while (!source.isWhole) {
    source.step()
    const pause = breath()
    if (pause) await pause
  }
  return source.value
}

// Keeps a byte order mark in the text, so that `decode` can refuse it.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string {
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw new BadJson('the body is not well-formed UTF-8')
  }
  if (text.startsWith('\ufeff')) throw new BadJson('the body begins with a byte order mark; leave it out')
  return text
}

/** A list or an object that is not closed yet. */
type Open =
  | { readonly list: unknown[]; readonly object?: undefined; readonly end: ']' }
  | { readonly object: Record<string, unknown>; readonly end: '}'; key: string }

/** A string that takes more than one step to read. */
interface Unfinished {
  /** Where it begins. */
  readonly start: number
  /** Its text so far. */
  text: string
}

/** Matches a string up to its end or its first escape, faster than a loop would. */
const plain = /[\x20\x21\x23-\x5b\x5d-\uffff]*/y
const blank = /[ \n\r\t]*/y
const number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y

/**
 * The text and the position in it. `JSON.parse` would keep the last of two equal keys, read any depth, and quote the
 * text, which may contain a secret, in its errors. This reads every character once, so time is linear even for a
 * hostile body. Open lists and objects are in a list, not on the call stack, so that reading can pause after any step.
 */
class Source {
  readonly #text: string
  readonly #maxDepth: number
  readonly #maxValues: number
  #values = 0
  #at = 0
  /** Open lists and objects, the innermost last. */
  readonly #open: Open[] = []
  #isKeyNext = false
  #unfinished: Unfinished | undefined
  #isWhole = false
  #value: unknown

  constructor(text: string, { maxDepth, maxValues }: JsonBounds) {
    this.#text = text
    this.#maxDepth = maxDepth
    this.#maxValues = maxValues
    if (this.#next() === undefined) throw new BadJson('the body is not JSON: it is blank')
  }

  get isWhole(): boolean {
    return this.#isWhole
  }

  /** The value of the text, once `isWhole`. */
  get value(): unknown {
    return this.#value
  }

  /** Reads one more value, key or bracket, or a piece of a long string. */
  step(): void {
    if (this.#unfinished) this.#string(this.#unfinished)
    else this.#begin()
  }

  #begin(): void {
    this.#count()
    const mark = this.#next()
    if (mark === '"') this.#string({ start: this.#at++, text: '' })
    else if (mark === undefined || this.#isKeyNext) throw this.#unexpected()
    else if (mark === '{') this.#enter({ object: {}, end: '}', key: '' })
    else if (mark === '[') this.#enter({ list: [], end: ']' })
    else this.#found(this.#scalar(mark))
  }

  #scalar(mark: string): unknown {
    switch (mark) {
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      default:
        return this.#numeral()
    }
  }

  #count(): void {
    if (++this.#values > this.#maxValues) {
      throw new BadJson(`the body has over ${this.#maxValues} values and keys; split it`)
    }
  }

  #enter(open: Open): void {
    if (this.#open.length >= this.#maxDepth) {
      throw new BadJson(`the body is nested deeper than ${this.#maxDepth} levels`)
    }
    this.#put(open.object ?? open.list)
    this.#at++
    if (this.#skip(open.end)) {
      this.#follow()
    } else {
      this.#open.push(open)
      this.#isKeyNext = open.object !== undefined
    }
  }

  #found(value: unknown): void {
    this.#put(value)
    this.#follow()
  }

  #put(value: unknown): void {
    const into = this.#open.at(-1)
    if (!into) this.#value = value
    else if (into.object) into.object[into.key] = value
    else into.list.push(value)
  }

  /** Reads what follows a value: any closing brackets, then a comma or the end. */
  #follow(): void {
    for (let open = this.#open.at(-1); open; open = this.#open.at(-1)) {
      if (this.#skip(',')) {
        this.#isKeyNext = open.object !== undefined
        return
      }
      if (!this.#skip(open.end)) throw this.#unexpected()
      this.#open.pop()
    }
    if (this.#next() !== undefined) throw this.#unexpected()
    this.#isWhole = true
  }

  #key(key: string): void {
    const into = this.#open.at(-1)
    if (!into?.object) throw this.#unexpected()
    if (key === '__proto__') throw new BadJson('the key `__proto__` is not allowed')
    if (Object.hasOwn(into.object, key)) {
      throw new BadJson(`the key ${JSON.stringify(key.slice(0, 100))} appears twice in one object`)
    }
    if (!this.#skip(':')) throw this.#unexpected()
    into.key = key
    this.#isKeyNext = false
  }

  /** Reads a string from the current position to its end, or one piece of it when it has many escapes. */
  #string(string: Unfinished): void {
    // A local, because the loop below reads it for every character.
    const text = this.#text
    const from = this.#at
    const enough = from + PIECE
    plain.lastIndex = from
    plain.test(text)
    let at = plain.lastIndex
    const isPlain = text.charCodeAt(at) !== BACKSLASH
    /** The last character of an escape, which must not be cut. */
    let escaped = at
    for (; ; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE || (at >= enough && at > escaped)) break
      if (code === BACKSLASH) {
        escaped = at + (text.charCodeAt(at + 1) === LETTER_U ? 5 : 1)
        at++
      } else if (!(code >= SPACE)) {
        this.#at = at
        throw this.#unexpected()
      }
    }
    this.#at = at
    const piece = text.slice(from, at)
    string.text += isPlain ? piece : this.#unescaped(piece, string.start)
    this.#unfinished = text.charCodeAt(at) === QUOTE ? undefined : string
    if (this.#unfinished) return
    this.#at++
    if (!string.text.isWellFormed()) throw new BadJson('a string in the body is not well-formed Unicode')
    if (this.#isKeyNext) this.#key(string.text)
    else this.#found(string.text)
  }

  /** Resolves escapes and refuses NUL, which can only be an escape: plain control characters are refused before. */
  #unescaped(piece: string, start: number): string {
    let string: string
    try {
      string = JSON.parse(`"${piece}"`)
    } catch {
      throw new BadJson(`the body is not JSON: bad escape in the string at ${lineAndColumn(this.#text, start)}`)
    }
    if (string.includes('\0')) throw new BadJson('a string in the body contains a NUL character')
    return string
  }

  #numeral(): number {
    number.lastIndex = this.#at
    const [numeral] = number.exec(this.#text) ?? []
    if (numeral === undefined) throw this.#unexpected()
    const value = Number(numeral)
    if (!Number.isFinite(value)) throw new BadJson(`the number at ${lineAndColumn(this.#text, this.#at)} is too large`)
    this.#at += numeral.length
    return value
  }

  #word<T>(word: string, value: T): T {
    if (!this.#text.startsWith(word, this.#at)) throw this.#unexpected()
    this.#at += word.length
    return value
  }

  /** The next character that is not white space; undefined at the end. */
  #next(): string | undefined {
    const char = this.#text[this.#at]
    if (char !== ' ' && char !== '\n' && char !== '\r' && char !== '\t') return char
    blank.lastIndex = this.#at
    blank.test(this.#text)
    this.#at = blank.lastIndex
    return this.#text[this.#at]
  }

  #skip(mark: string): boolean {
    if (this.#next() !== mark) return false
    this.#at++
    return true
  }

  #unexpected(): BadJson {
    if (this.#at >= this.#text.length) return new BadJson('the body is not JSON: it ends too early')
    return new BadJson(`the body is not JSON: unexpected character at ${lineAndColumn(this.#text, this.#at)}`)
  }
}

/** How much of a string with escapes one step reads, in characters: a fraction of a millisecond. */
const PIECE = 16 * 1024

const NEWLINE = 0x0a
const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const LETTER_U = 0x75

/** Beyond this many characters no line number is given: it would be of little use, and counting lines takes long. */
const MAX_COUNTED = 64 * 1024

function lineAndColumn(text: string, at: number): string {
  if (at > MAX_COUNTED) return `character ${at + 1}`
  let line = 1
  let start = 0
  for (let i = 0; i < at; i++) {
    if (text.charCodeAt(i) !== NEWLINE) continue
    line++
    start = i + 1
  }
  return `line ${line}, column ${at - start + 1}`
}
