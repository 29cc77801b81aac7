/** Writes the body of a message as its head announced it, or cuts the message short. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { BodyWriter } from '../../requests/http-exchange.ts'
import { lastChunk } from './head-writer.ts'
import type { Http1Outbox } from './response-outbox.ts'

/**
 * A length in bytes, chunks, or `none`: then writes are dropped, since the message has no body. `close`: it ends with the
 * connection.
 */
export type Framing = number | 'chunked' | 'close' | 'none'

export interface EncoderOwner {
  /** Bytes went out. */
  bodyMoved(): void
  /** The message is complete. */
  bodySent(): void
  /** The message is cut short; the other end must not take it for complete. */
  bodyCut(reason: 'aborted' | 'wrong_length'): void
}

export class BodyEncoder implements BodyWriter {
  onDrain: (() => void) | undefined
  readonly #out: Http1Outbox
  readonly #owner: EncoderOwner
  readonly #framing: Framing
  #left: number
  #isWaiting = false
  #isOver = false

  constructor(framing: Framing, out: Http1Outbox, owner: EncoderOwner) {
    this.#framing = framing
    this.#left = typeof framing === 'number' ? framing : 0
    this.#out = out
    this.#owner = owner
  }

  write(chunk: Buffer): boolean {
    // Never asks to wait: a reader that forwards its input must reach the end.
    if (this.#isOver || this.#framing === 'none' || chunk.length === 0) return true
    if (this.#framing === 'chunked') this.#out.text(`${chunk.length.toString(16)}\r\n`)
    else if (this.#framing !== 'close') {
      this.#left -= chunk.length
      if (this.#left < 0) {
        this.#cut('wrong_length')
        return true
      }
    }
    let hasRoom = this.#out.write(chunk)
    if (this.#framing === 'chunked') {
      this.#out.text('\r\n')
      hasRoom = !this.#out.isBlocked
    }
    this.#owner.bodyMoved()
    this.#isWaiting = !hasRoom
    return hasRoom
  }

  end(trailers?: HeaderList): void {
    if (this.#isOver) return
    if (this.#left > 0) {
      this.#cut('wrong_length')
      return
    }
    this.#isOver = true
    if (this.#framing === 'chunked') this.#out.text(lastChunk(trailers))
    this.#out.messageEnds()
    this.#owner.bodySent()
  }

  abort(): void {
    if (!this.#isOver) this.#cut('aborted')
  }

  /** The connection is closed; further writes are dropped. */
  close(): void {
    this.#isOver = true
  }

  /** The connection has room again. */
  drained(): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.onDrain?.()
  }

  #cut(reason: 'aborted' | 'wrong_length'): void {
    this.#isOver = true
    this.#owner.bodyCut(reason)
  }
}
