/** What goes out on a connection: small pieces are gathered and leave in one write at the end of the turn, at the latest. */
import type { ByteStream } from '../../lib/byte-stream.ts'
import { GATHER_BYTES } from './bounds.ts'

export class Outbox {
  /** All bytes that were ever put in. */
  bytes = 0
  readonly #stream: ByteStream
  readonly #flush = (): void => {
    this.#isScheduled = false
    this.flush()
  }
  #parts: (string | Buffer)[] = []
  #gathered = 0
  #isScheduled = false
  #isBlocked = false

  constructor(stream: ByteStream) {
    this.#stream = stream
  }

  /** Whether the stream asked to wait. */
  get isBlocked(): boolean {
    return this.#isBlocked
  }

  /** Adds characters up to U+00FF, each a byte. */
  text(text: string): void {
    this.bytes += text.length
    this.#add(text, text.length)
  }

  /** The same, and sends it with what was gathered before. */
  send(text: string): void {
    this.bytes += text.length
    this.#parts.push(text)
    this.#gathered += text.length
    this.flush()
  }

  /** False asks to wait until the stream drains. */
  write(chunk: Buffer): boolean {
    this.bytes += chunk.length
    if (chunk.length <= GATHER_BYTES) this.#add(chunk, chunk.length)
    else {
      this.flush()
      this.#write(chunk)
    }
    return !this.#isBlocked
  }

  /** Sends what was gathered. */
  flush(): void {
    const parts = this.#parts
    const [first] = parts
    if (first === undefined) return
    this.#parts = []
    const length = this.#gathered
    this.#gathered = 0
    if (parts.length === 1) this.#write(typeof first === 'string' ? Buffer.from(first, 'latin1') : first)
    else this.#write(join(parts, length))
  }

  /** The stream has room again. */
  drained(): void {
    this.#isBlocked = false
  }

  /** Drops what was gathered. */
  clear(): void {
    this.#parts = []
    this.#gathered = 0
  }

  #add(part: string | Buffer, length: number): void {
    if (this.#gathered + length > GATHER_BYTES) this.flush()
    this.#parts.push(part)
    this.#gathered += length
    if (this.#isScheduled) return
    this.#isScheduled = true
    queueMicrotask(this.#flush)
  }

  #write(bytes: Buffer): void {
    if (!this.#stream.write(bytes)) this.#isBlocked = true
  }
}

function join(parts: readonly (string | Buffer)[], length: number): Buffer {
  const joined = Buffer.allocUnsafe(length)
  let at = 0
  for (const part of parts) at += typeof part === 'string' ? joined.write(part, at, 'latin1') : part.copy(joined, at)
  return joined
}
