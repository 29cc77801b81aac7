/** Reads JSON from outside strictly, in one pass: UTF-8, no duplicate keys, no `__proto__`, no NUL, bounded depth and width. */

/** JSON that we do not take; the message can be shown to whoever sent it. */
export class BadJson extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'BadJson'
  }
}

export interface JsonBounds {
  readonly maxDepth: number
  /** Values and keys in all. Time goes with their number: 1 MiB of nothing but brackets takes 0.2 s. */
  readonly maxValues: number
}

/** What a document from outside may hold, in values and keys: the largest that we know of, an ACL of 1000 rules, has 1,003. */
export const MAX_JSON_VALUES = 10_000

/** Parses `bytes` as one JSON value (RFC 8259); throws `BadJson`. */
export function parseJson(bytes: Uint8Array, bounds: JsonBounds): unknown {
  const text = decode(bytes)
  if (text.startsWith('\ufeff')) throw new BadJson('the body begins with a byte order mark; leave it out')
  return new Source(text, bounds).whole()
}

// A BOM must be seen, not dropped: the bytes are JSON or they are not.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new BadJson('the body is not well-formed UTF-8')
  }
}

/**
 * Text and how far it is read. `JSON.parse` would keep the last of two equal keys, read any depth, and quote the text
 * in its errors, which may hold a secret. Every character is looked at once, so time is linear in a hostile body too.
 */
class Source {
  readonly #text: string
  readonly #maxDepth: number
  readonly #maxValues: number
  #values = 0
  /** What a string holds up to its end or its first escape: found faster than by a loop. */
  readonly #plain = /[\x20\x21\x23-\x5b\x5d-\uffff]*/y
  readonly #blank = /[ \n\r\t]*/y
  readonly #number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
  #at = 0

  constructor(text: string, { maxDepth, maxValues }: JsonBounds) {
    this.#text = text
    this.#maxDepth = maxDepth
    this.#maxValues = maxValues
  }

  whole(): unknown {
    if (this.#next() === undefined) throw new BadJson('the body is not JSON: it is blank')
    const value = this.#value(0)
    if (this.#next() !== undefined) throw this.#unexpected()
    return value
  }

  #value(depth: number): unknown {
    this.#count()
    switch (this.#next()) {
      case '{':
        return this.#object(this.#deeper(depth))
      case '[':
        return this.#list(this.#deeper(depth))
      case '"':
        return this.#string()
      case 't':
        return this.#word('true', true)
      case 'f':
        return this.#word('false', false)
      case 'n':
        return this.#word('null', null)
      case undefined:
        throw this.#unexpected()
      default:
        return this.#numeral()
    }
  }

  #count(): void {
    if (++this.#values > this.#maxValues) {
      throw new BadJson(`the body has over ${this.#maxValues} values and keys; split it`)
    }
  }

  #deeper(depth: number): number {
    if (depth >= this.#maxDepth) throw new BadJson(`the body is nested deeper than ${this.#maxDepth} levels`)
    return depth + 1
  }

  #object(depth: number): Record<string, unknown> {
    const object: Record<string, unknown> = {}
    this.#at++
    if (this.#skip('}')) return object
    do {
      if (this.#next() !== '"') throw this.#unexpected()
      this.#count()
      const key = this.#string()
      if (key === '__proto__') throw new BadJson('the key `__proto__` is not allowed')
      if (Object.hasOwn(object, key)) {
        throw new BadJson(`the key ${JSON.stringify(key.slice(0, 100))} stands twice in one object`)
      }
      if (!this.#skip(':')) throw this.#unexpected()
      object[key] = this.#value(depth)
    } while (this.#skip(','))
    if (!this.#skip('}')) throw this.#unexpected()
    return object
  }

  #list(depth: number): unknown[] {
    const list: unknown[] = []
    this.#at++
    if (this.#skip(']')) return list
    do list.push(this.#value(depth))
    while (this.#skip(','))
    if (!this.#skip(']')) throw this.#unexpected()
    return list
  }

  #string(): string {
    const start = this.#at
    let isEscaped = false
    // Held here, since the loop reads little else.
    const text = this.#text
    this.#plain.lastIndex = start + 1
    this.#plain.test(text)
    let at = this.#plain.lastIndex
    for (; ; at++) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) break
      if (code === BACKSLASH) {
        isEscaped = true
        at++
      } else if (!(code >= SPACE)) {
        this.#at = at
        throw this.#unexpected()
      }
    }
    this.#at = at + 1
    if (!isEscaped) return this.#text.slice(start + 1, this.#at - 1)
    return this.#unescaped(start)
  }

  /** Only escapes can spell what well-formed UTF-8 and the rule on control characters keep out. */
  #unescaped(start: number): string {
    let string: string
    try {
      string = JSON.parse(this.#text.slice(start, this.#at))
    } catch {
      throw new BadJson(`the body is not JSON: bad escape in the string at ${place(this.#text, start)}`)
    }
    if (string.includes('\0')) throw new BadJson('a string in the body contains a NUL character')
    if (!string.isWellFormed()) throw new BadJson('a string in the body is not well-formed Unicode')
    return string
  }

  #numeral(): number {
    this.#number.lastIndex = this.#at
    const [numeral] = this.#number.exec(this.#text) ?? []
    if (numeral === undefined) throw this.#unexpected()
    const number = Number(numeral)
    if (!Number.isFinite(number)) throw new BadJson(`the number at ${place(this.#text, this.#at)} is too large`)
    this.#at += numeral.length
    return number
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
    this.#blank.lastIndex = this.#at
    this.#blank.test(this.#text)
    this.#at = this.#blank.lastIndex
    return this.#text[this.#at]
  }

  #skip(mark: string): boolean {
    if (this.#next() !== mark) return false
    this.#at++
    return true
  }

  #unexpected(): BadJson {
    if (this.#at >= this.#text.length) return new BadJson('the body is not JSON: it ends too early')
    return new BadJson(`the body is not JSON: unexpected character at ${place(this.#text, this.#at)}`)
  }
}

const NEWLINE = 0x0a
const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** Further on, nobody looks for a line by its number, and counting them takes long. */
const MAX_COUNTED = 64 * 1024

function place(text: string, at: number): string {
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
