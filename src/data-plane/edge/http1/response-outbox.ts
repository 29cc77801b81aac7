/**
 * Outgoing bytes of a connection: small pieces are collected and sent in one write, at the latest at the end of the
 * turn.
 */
import { type ByteStream, keepBytes, memoryFor, writeLent } from '../../../lib/bytes/byte-stream.ts'
import { atEndOfTurn } from '../../../lib/bytes/end-of-turn.ts'
import { firstBytesOf } from '../../../lib/bytes/first-bytes-of.ts'
import { GATHER_BYTES } from './bounds.ts'

/** Scratch memory for pieces that are sent at once: the stream copies them before the next write. */
const scratch = Buffer.allocUnsafeSlow(GATHER_BYTES)
const firstOfScratch = firstBytesOf(scratch)

export class Http1Outbox {
  /** Total bytes taken so far. */
  bytes = 0
  /** Whether the stream asked to wait. */
  isBlocked = false
  readonly #stream: ByteStream
  readonly #isPrompt: boolean
  readonly #flush = (): void => {
    this.#isScheduled = false
    this.flush()
  }
  #memory: Buffer | undefined
  #gathered = 0
  #isScheduled = false

  /** `isPrompt`: complete messages and large pieces are sent at once; otherwise they may wait a moment for more. */
  constructor(stream: ByteStream, { isPrompt = false }: { isPrompt?: boolean } = {}) {
    this.#stream = stream
    this.#isPrompt = isPrompt
  }

  /** Adds characters up to U+00FF, one byte each; this many bytes are known to follow. */
  text(text: string, following = 0): void {
    this.bytes += text.length
    this.#gathered += this.#room(text.length, following).write(text, this.#gathered, 'latin1')
  }

  /** The same, and sends it with what was collected before. */
  send(text: string): void {
    if (this.#gathered > 0 || text.length > scratch.length) {
      this.text(text)
      this.flush()
      return
    }
    this.bytes += text.length
    scratch.write(text, 0, 'latin1')
    this.#note(writeLent(this.#stream, firstOfScratch(text.length)))
  }

  /** Adds lent bytes; false asks to wait until the stream drains. */
  write(chunk: Buffer): boolean {
    this.bytes += chunk.length
    if (chunk.length <= GATHER_BYTES) this.#gathered += chunk.copy(this.#room(chunk.length, 0), this.#gathered)
    else {
      this.flush()
      this.#note(this.#isPrompt ? this.#stream.write(keepBytes(chunk)) : writeLent(this.#stream, chunk))
    }
    return !this.isBlocked
  }

  /** The message is complete; what follows is another one, and may take long to come. */
  messageEnds(): void {
    if (this.#isPrompt) this.flush()
  }

  /** Sends what was collected. */
  flush(): void {
    const memory = this.#memory
    if (memory === undefined) return
    const length = this.#gathered
    this.clear()
    this.#note(this.#stream.write(memory.length === length ? memory : memory.subarray(0, length)))
  }

  /** The stream has room again. */
  drained(): void {
    this.isBlocked = false
  }

  /** Drops what was collected. */
  clear(): void {
    this.#memory = undefined
    this.#gathered = 0
  }

  /** Memory with room for this many bytes after those collected; all of it is sent at the end of the turn. */
  #room(bytes: number, following: number): Buffer {
    if (this.#gathered + bytes > GATHER_BYTES) this.flush()
    if (!this.#isScheduled) {
      this.#isScheduled = true
      if (this.#isPrompt) queueMicrotask(this.#flush)
      else atEndOfTurn(this.#flush)
    }
    const memory = this.#memory
    const needed = this.#gathered + bytes
    if (memory !== undefined && needed <= memory.length) return memory
    // Exactly enough at first, since more may not come soon; doubled once it was too small.
    const size = memory === undefined ? needed + following : 2 * needed
    const grown = memoryFor(Math.max(needed, Math.min(size, GATHER_BYTES)))
    memory?.copy(grown, 0, 0, this.#gathered)
    this.#memory = grown
    return grown
  }

  #note(hasRoom: boolean): void {
    if (!hasRoom) this.isBlocked = true
  }
}
