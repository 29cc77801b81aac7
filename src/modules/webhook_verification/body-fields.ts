/** Finds a few fields in a large body without reading the rest. */
import { othersTurn } from '../../lib/threads/others-turn.ts'
import type { Meter } from '../policy/engine/policy-traffic.ts'

/** The most bytes of a field that is read. Times, tokens and signatures are far shorter. */
const MAX_FIELD_BYTES = 4096

/** The most bytes of a field's name, with its quotes and escapes. */
const MAX_NAME_BYTES = 128

/** How many bytes are read before other work may run: a few milliseconds at worst, with many malformed names. */
const PIECE_BYTES = 4096

/** How many bytes are read for one step of a meter. */
const SCANNED_BYTES_A_STEP = 16

/** The most fields of a form. Real ones have some dozens. */
export const MAX_FORM_FIELDS = 1000

/**
 * The fields in `names` of the object that `body` is; the last of two with the same name counts, as with `JSON.parse`. A
 * field that is too long or not JSON has no value. Other fields are skipped unchecked.
 *
 * The sender has proved nothing yet, and `JSON.parse` of 10 MiB would hold the event loop for a second.
 */
export async function jsonFields(
  body: Buffer,
  names: readonly string[],
  meter?: Meter,
): Promise<ReadonlyMap<string, unknown>> {
  meter?.charge(body.length / SCANNED_BYTES_A_STEP)
  const breath = othersTurn()
  const scan = new FieldScan(body, names)
  while (scan.step()) {
    const pause = breath()
    if (pause) await pause
  }
  return scan.found
}

/** The first value of `name` in a form; undefined when it is absent, too long, or after very many other fields. */
export function formField(body: Buffer, name: string): string | undefined {
  const prefix = `${name}=`
  for (let at = 0, fields = 0; at < body.length && fields < MAX_FORM_FIELDS; fields++) {
    const next = body.indexOf('&', at)
    const end = next === -1 ? body.length : next
    if (body[at] === prefix.charCodeAt(0) && end - at <= MAX_FIELD_BYTES) {
      const pair = body.toString('latin1', at, end)
      if (pair.startsWith(prefix)) return new URLSearchParams(pair).get(name) ?? undefined
    }
    at = end + 1
  }
  return undefined
}

/** Walks over the text of an object, byte by byte, and keeps those of its fields that are wanted. */
class FieldScan {
  readonly found = new Map<string, unknown>()
  readonly #body: Buffer
  readonly #names: readonly string[]
  #at = 0
  #depth = 0
  #isInString = false
  /** Whether there are escapes in the last string. */
  #hasEscapes = false
  /** Where the last string at depth 1 began and ended: the name of a field, until a colon follows. */
  #textFrom = 0
  #textTo = 0
  #name: string | undefined
  #valueFrom = 0

  constructor(body: Buffer, names: readonly string[]) {
    this.#body = body
    this.#names = names
  }

  /** Reads one more piece; false when there is nothing left to read. */
  step(): boolean {
    const end = Math.min(this.#at + PIECE_BYTES, this.#body.length)
    for (; this.#at < end; this.#at++) {
      const byte = this.#body[this.#at] ?? 0
      if (this.#isInString) this.#inString(byte)
      else if (!this.#outside(byte)) return false
    }
    return this.#at < this.#body.length
  }

  #inString(byte: number): void {
    // An escaped byte cannot end the string.
    if (byte === BACKSLASH) {
      this.#at++
      this.#hasEscapes = true
    }
    if (byte !== QUOTE) return
    this.#isInString = false
    if (this.#depth === 1) this.#textTo = this.#at + 1
  }

  /** False when no more fields can follow. */
  #outside(byte: number): boolean {
    if (byte === QUOTE) {
      this.#isInString = true
      this.#hasEscapes = false
      if (this.#depth === 1) this.#textFrom = this.#at
    } else if (byte === BRACE || byte === BRACKET) {
      this.#depth++
      return this.#depth > 1 || byte === BRACE
    } else if (byte === BRACE_END || byte === BRACKET_END) {
      if (this.#depth === 1) this.#endField()
      this.#depth--
    } else if (this.#depth === 1 && byte === COLON) {
      this.#name = this.#wantedName()
      this.#valueFrom = this.#at + 1
    } else if (this.#depth === 1 && byte === COMMA) {
      this.#endField()
    }
    // Only white space may come before the object.
    return this.#depth > 0 || byte <= SPACE
  }

  #wantedName(): string | undefined {
    const [from, to] = [this.#textFrom, this.#textTo]
    if (to - from > MAX_NAME_BYTES) return undefined
    // A name is read only when it can be one of them: a body may have a million others.
    if (!this.#hasEscapes && !this.#names.some((name) => name.length === to - from - 2)) return undefined
    const name = parseJson(this.#body.toString('utf8', from, to))
    return typeof name === 'string' && this.#names.includes(name) ? name : undefined
  }

  #endField(): void {
    const name = this.#name
    this.#name = undefined
    if (name === undefined) return
    const isShort = this.#at - this.#valueFrom <= MAX_FIELD_BYTES
    this.found.set(name, isShort ? parseJson(this.#body.toString('utf8', this.#valueFrom, this.#at)) : undefined)
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BRACKET = 0x5b
const BACKSLASH = 0x5c
const BRACKET_END = 0x5d
const BRACE = 0x7b
const BRACE_END = 0x7d
