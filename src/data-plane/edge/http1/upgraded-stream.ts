/** A connection after its last head: raw bytes, starting with those that arrived with the head. */
import { type ByteSink, type ByteStream, keepBytes, writeLent } from '../../../lib/bytes/byte-stream.ts'

interface Handover {
  /** Bytes that arrived already. */
  readonly rest: Buffer | undefined
  /** Whether the other end has ended its side. */
  readonly isEnded: boolean
  /** Called exactly once, when both directions are closed. */
  readonly onClosed?: () => void
}

export class UpgradedStream implements ByteStream {
  readonly #stream: ByteStream
  #held: Buffer[] = []
  #sink: ByteSink | undefined
  #isFlowing = false
  #isDelivering = false
  #isEnded: boolean
  #isEndEmitted = false
  #isDrainDue = false
  #close: { readonly error: Error | undefined } | undefined

  constructor(stream: ByteStream, { rest, isEnded, onClosed }: Handover) {
    this.#stream = stream
    this.#isEnded = isEnded
    if (rest) this.#held.push(rest)
    stream.attach({
      data: (chunk) => this.#data(chunk),
      lent: (chunk) => this.#lent(chunk),
      end: () => {
        this.#isEnded = true
        this.#deliver()
      },
      drain: () => {
        if (this.#sink) this.#sink.drain()
        else this.#isDrainDue = true
      },
      closed: (error) => {
        this.#close = { error }
        this.#deliver()
        onClosed?.()
      },
    })
  }

  write(chunk: Buffer): boolean {
    return this.#stream.write(chunk)
  }

  writeLent(chunk: Buffer): boolean {
    return writeLent(this.#stream, chunk)
  }

  end(): void {
    this.#stream.end()
  }

  reset(): void {
    this.#stream.reset()
  }

  attach(sink: ByteSink): void {
    this.#sink = sink
    if (this.#isDrainDue) {
      this.#isDrainDue = false
      sink.drain()
    }
    this.resume()
  }

  pause(): void {
    this.#isFlowing = false
    this.#stream.pause()
  }

  resume(): void {
    this.#isFlowing = true
    this.#deliver()
    if (this.#isFlowing && !this.#close) this.#stream.resume()
  }

  get #isOpen(): boolean {
    return this.#isFlowing && !this.#isDelivering && this.#held.length === 0
  }

  #lent(chunk: Buffer): void {
    if (this.#isOpen && this.#sink?.lent) this.#sink.lent(chunk)
    else this.#data(keepBytes(chunk))
  }

  #data(chunk: Buffer): void {
    if (this.#isOpen && this.#sink) this.#sink.data(chunk)
    else {
      // There is no sink yet, or it has not read everything: the stream keeps what follows.
      this.#held.push(chunk)
      this.#stream.pause()
    }
  }

  #deliver(): void {
    const sink = this.#sink
    if (!sink || this.#isDelivering) return
    this.#isDelivering = true
    try {
      while (this.#isFlowing && !this.#close?.error) {
        const chunk = this.#held.shift()
        if (chunk === undefined) break
        sink.data(chunk)
      }
    } finally {
      this.#isDelivering = false
    }
    this.#tellEnd(sink)
  }

  #tellEnd(sink: ByteSink): void {
    const isDry = this.#held.length === 0 && this.#isFlowing
    if (isDry && this.#isEnded && !this.#isEndEmitted && !this.#close?.error) {
      this.#isEndEmitted = true
      sink.end()
    }
    // Without an error nothing is missing, so buffered bytes are delivered first.
    if (!this.#close || (!isDry && !this.#close.error)) return
    this.#held = []
    this.#sink = undefined
    sink.closed(this.#close.error)
  }
}
