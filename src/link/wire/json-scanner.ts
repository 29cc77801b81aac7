/** Finds the end of a JSON object while its bytes arrive: senders do not mark the end of messages. */
import { MESSAGE_DEPTH } from './wire-bounds.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_LIST = 0x5b
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

export class JsonScanner {
  #depth = 0
  #inString = false
  #isEscaped = false

  /** How many bytes of `chunk` belong to the object: all of them while it is open; `'bad'` when it is not an object. */
  scan(chunk: Buffer): { readonly bytes: number; readonly isWhole: boolean } | 'bad' {
    for (let i = 0; i < chunk.length; i++) {
      const byte = chunk[i] ?? 0
      if (this.#inString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (byte === BACKSLASH) this.#isEscaped = true
        else if (byte === QUOTE) this.#inString = false
      } else if (byte === QUOTE) {
        if (this.#depth === 0) return 'bad'
        this.#inString = true
      } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
        if (this.#depth === 0 && byte === OPEN_LIST) return 'bad'
        if (++this.#depth > MESSAGE_DEPTH) return 'bad'
      } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
        if (--this.#depth < 0) return 'bad'
        if (this.#depth === 0) return { bytes: i + 1, isWhole: true }
      } else if (this.#depth === 0 && !isSpace(byte)) return 'bad'
    }
    return { bytes: chunk.length, isWhole: false }
  }
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
