/** Reads a map that a person wrote, key by key: notes each problem with its path, and refuses unknown keys. */

import { Secret } from '../../lib/secrets/secret.ts'
import { nearest } from '../../lib/text/nearest.ts'

export interface Problem {
  /** From the top: `['tunnels', 'web', 'addr']`. */
  readonly path: readonly string[]
  /** Continues after the name: "must be …". Never quotes a value, which may be a secret. */
  readonly fault: string
}

/** The most entries of a list or map. */
const MAX_ENTRIES = 1000

/** The longest text of one value, in characters; files are read from disk and have their own limit. */
const MAX_TEXT = 256 * 1024

export class OptionReader {
  readonly path: readonly string[]
  readonly #values: Readonly<Record<string, unknown>>
  readonly #problems: Problem[]
  readonly #read = new Set<string>()

  constructor(values: Readonly<Record<string, unknown>>, problems: Problem[], path: readonly string[] = []) {
    this.#values = values
    this.#problems = problems
    this.path = path
  }

  has(key: string): boolean {
    return this.#get(key) !== undefined
  }

  /** The value as it was written, for callers that choose by its type how to read it. */
  given(key: string): unknown {
    return this.#get(key)
  }

  keys(): string[] {
    return Object.keys(this.#values)
  }

  text(key: string): string | undefined {
    const value = this.#get(key)
    if (value === undefined) return undefined
    if (typeof value === 'string' && value.length <= MAX_TEXT) return value
    const isNumber = typeof value === 'number' || typeof value === 'boolean'
    return this.fault(key, isNumber ? 'must be text: put it in quotes' : 'must be text')
  }

  /** Text that must not be empty. */
  word(key: string): string | undefined {
    const value = this.text(key)
    return value === '' ? this.fault(key, 'must not be empty') : value
  }

  secret(key: string): Secret | undefined {
    const value = this.word(key)
    return value === undefined ? undefined : new Secret(value)
  }

  /** Text or a number, as text. */
  textOrNumber(key: string): string | undefined {
    const value = this.#get(key)
    return typeof value === 'number' ? String(value) : this.text(key)
  }

  flag(key: string): boolean | undefined {
    const value = this.#get(key)
    if (value === undefined || typeof value === 'boolean') return value
    return this.fault(key, 'must be `true` or `false`')
  }

  number(key: string, { from, to }: { from: number; to: number }): number | undefined {
    const value = this.#get(key)
    if (value === undefined) return undefined
    if (typeof value === 'number' && value >= from && value <= to) return value
    return this.fault(key, `must be a number from ${from} to ${to}`)
  }

  choice<const T extends string | number>(key: string, choices: readonly T[]): T | undefined {
    const value = this.#get(key)
    if (value === undefined) return undefined
    const found = choices.find((each) => each === value || String(each) === value)
    return found ?? this.fault(key, `must be one of ${choices.map((each) => `\`${each}\``).join(', ')}`)
  }

  /** A list of texts; a single text counts as a list of one. */
  texts(key: string): readonly string[] | undefined {
    const value = this.#get(key)
    if (value === undefined) return undefined
    const list: unknown[] = Array.isArray(value) ? value : [value]
    if (list.length <= MAX_ENTRIES && list.every(isWord)) return list
    return this.fault(key, `must be a list of at most ${MAX_ENTRIES} texts`)
  }

  /** Names and values: a map of texts, or a list of texts with `mark` between name and value. */
  pairs(key: string, mark: '=' | ':'): readonly (readonly [name: string, value: string])[] | undefined {
    const value = this.#get(key)
    if (value === undefined) return undefined
    const entries = isMap(value) ? Object.entries(value) : this.texts(key)?.map((each) => splitAt(each, mark))
    if (entries === undefined) return undefined
    const pairs: [string, string][] = []
    for (const [name, each] of entries) {
      const text = typeof each === 'number' ? String(each) : each
      if (typeof text !== 'string' || name.trim() === '') return this.fault(key, pairsWanted(mark))
      pairs.push([name.trim(), text.trim()])
    }
    return pairs.length <= MAX_ENTRIES ? pairs : this.fault(key, pairsWanted(mark))
  }

  /** Milliseconds, from a number with a unit. */
  duration(key: string, { from, to }: { from: number; to: number }): number | undefined {
    const value = this.textOrNumber(key)
    if (value === undefined) return undefined
    const [, digits = '', unit = ''] = /^(\d{1,9})(ms|s|m|h)$/.exec(value) ?? []
    const ms = Number(digits) * (units[unit] ?? Number.NaN)
    if (ms >= from && ms <= to) return ms
    return this.fault(key, `must be a duration such as \`10s\`, from ${from / 1000}s to ${to / 1000}s`)
  }

  /** The result of `parse`; the message of an error it throws continues after the name. */
  parsed<T>(key: string, parse: (text: string) => T): T | undefined {
    const value = this.textOrNumber(key)
    return value === undefined ? undefined : this.#made(key, () => parse(value))
  }

  /** The same; if the value is a map, its JSON. */
  parsedOrJson(key: string, parse: (text: string) => string): string | undefined {
    const value = this.#get(key)
    if (!isMap(value)) return this.parsed(key, parse)
    return this.#made(key, () => jsonOf(value))
  }

  map(key: string): OptionReader | undefined {
    const value = this.#get(key)
    if (value === undefined) return undefined
    if (!isMap(value) || Object.keys(value).length > MAX_ENTRIES) return this.fault(key, 'must be a map')
    return new OptionReader(value, this.#problems, [...this.path, key])
  }

  /** Notes what is wrong with a key. */
  fault(key: string, fault: string): undefined {
    this.#problems.push({ path: key === '' ? this.path : [...this.path, key], fault })
    return undefined
  }

  /** Refuses all keys that were not read; call it last. */
  finish(): void {
    const known = [...this.#read]
    for (const key of Object.keys(this.#values)) {
      if (this.#read.has(key)) continue
      const meant = nearest(key, known)
      this.fault(key, meant ? `is not a known key; did you mean \`${meant}\`?` : 'is not a known key')
    }
  }

  #made<T>(key: string, make: () => T): T | undefined {
    try {
      return make()
    } catch (error) {
      return this.fault(key, error instanceof Error ? error.message : String(error))
    }
  }

  /** A key without a value counts as absent. */
  #get(key: string): unknown {
    this.#read.add(key)
    const value = Object.hasOwn(this.#values, key) ? this.#values[key] : undefined
    return value === null ? undefined : value
  }
}

export function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function jsonOf(value: object): string {
  let json: string
  try {
    json = JSON.stringify(value)
  } catch (cause) {
    throw new Error('cannot be written as JSON', { cause })
  }
  if (json.length > MAX_TEXT) throw new Error(`must not be longer than ${MAX_TEXT} characters`)
  return json
}

function isWord(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

function splitAt(text: string, mark: string): [string, string | undefined] {
  const at = text.indexOf(mark)
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)]
}

function pairsWanted(mark: '=' | ':'): string {
  return `must be a map of texts, or a list of texts such as \`name${mark}value\``
}
