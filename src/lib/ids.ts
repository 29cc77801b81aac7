/** Ids that sort by creation: a prefix and 27 base62 characters, strictly increasing within a process. */
import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'
import { drawBytes } from './secrets/draw-bytes.ts'

/** In byte order, so that ids compare as text as they do as numbers. */
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 160 bits need 27 base62 digits. */
export const ID_BYTES = 20
export const ID_LENGTH = 27

const COUNTER_MAX = 0xffff

export class IdSource {
  readonly #now: Clock
  readonly #random: (bytes: number) => Uint8Array
  #millis = 0
  #counter = 0

  constructor({ now, random = drawBytes }: { now: Clock; random?: (bytes: number) => Uint8Array }) {
    this.#now = now
    this.#random = random
  }

  /** The next id: 48 bits of time, a 16-bit counter within the millisecond, 96 random bits. */
  next(prefix: string): string {
    const now = this.#now()
    if (now > this.#millis) {
      this.#millis = now
      this.#counter = 0
    } else if (this.#counter < COUNTER_MAX) {
      // The same millisecond, or the clock was set back: continue from the last id.
      this.#counter++
    } else {
      this.#millis++
      this.#counter = 0
    }
    const bytes = Buffer.alloc(ID_BYTES)
    bytes.writeUIntBE(this.#millis, 0, 6)
    bytes.writeUInt16BE(this.#counter, 6)
    bytes.set(this.#random(12), 8)
    return prefix + idText(bytes)
  }
}

/** 160 random bits as 27 base62 characters, for tokens. */
export function randomText(): string {
  return idText(randomBytes(ID_BYTES))
}

/** Whether `text` is `prefix` followed by exactly the characters of an id. */
export function isId(text: string, prefix: string): boolean {
  if (!text.startsWith(prefix) || text.length !== prefix.length + ID_LENGTH) return false
  return /^[0-9A-Za-z]+$/.test(text.slice(prefix.length))
}

/** 20 bytes as the characters of an id, which sort like the bytes. */
export function idText(bytes: Buffer): string {
  let rest = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  for (let i = 0; i < ID_LENGTH; i++) {
    text = ALPHABET.charAt(Number(rest % 62n)) + text
    rest /= 62n
  }
  return text
}

/** The bytes that `idText` encoded; undefined when `text` is not its result. */
export function idBytes(text: string): Buffer | undefined {
  if (!isId(text, '')) return undefined
  let all = 0n
  for (const character of text) all = all * 62n + BigInt(ALPHABET.indexOf(character))
  const hex = all.toString(16).padStart(2 * ID_BYTES, '0')
  return hex.length > 2 * ID_BYTES ? undefined : Buffer.from(hex, 'hex')
}
