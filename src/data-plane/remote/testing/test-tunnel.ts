/** For tests: the stream of a tunnel, with a service behind it that sends and receives what the test wants. */
import type { ByteSink, ByteStream } from '../../../lib/bytes/byte-stream.ts'

export class TestTunnel implements ByteStream {
  readonly heard: Buffer[] = []
  isEndHeard = false
  /** Whether it was reset, by the other side or by the service. */
  isReset = false
  /** Whether the service has stopped reading. */
  isStuck = false
  isPaused = false
  #sink: ByteSink | undefined
  #isEndSaid = false
  #isClosed = false
  /** What the service sends while nobody reads. */
  readonly #waiting: (Buffer | 'end')[] = []

  get bytes(): Buffer {
    return Buffer.concat(this.heard)
  }

  say(chunk: Buffer): void {
    this.#waiting.push(chunk)
    this.#deliver()
  }

  sayEnd(): void {
    this.#waiting.push('end')
    this.#deliver()
  }

  write(chunk: Buffer): boolean {
    this.heard.push(Buffer.from(chunk))
    return !this.isStuck
  }

  writeLent(chunk: Buffer): boolean {
    return this.write(chunk)
  }

  unstick(): void {
    this.isStuck = false
    this.#sink?.drain()
  }

  end(): void {
    this.isEndHeard = true
    this.#closeIfDone()
  }

  reset(): void {
    this.isReset = true
    this.#close(new Error('the tunnel was reset'))
  }

  attach(sink: ByteSink): void {
    this.#sink = sink
    if (this.#isClosed) sink.closed(new Error('the tunnel was reset'))
    else this.resume()
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    this.#deliver()
  }

  #deliver(): void {
    while (this.#sink && !this.isPaused && !this.#isClosed) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      if (next === 'end') {
        this.#isEndSaid = true
        this.#sink.end()
        this.#closeIfDone()
      } else this.#lend(next)
    }
  }

  /** Overwrites lent bytes afterwards, so that a reader that keeps them is found out. */
  #lend(chunk: Buffer): void {
    const lent = Buffer.from(chunk)
    if (this.#sink?.lent) this.#sink.lent(lent)
    else this.#sink?.data(Buffer.from(chunk))
    lent.fill(0xdb)
  }

  #closeIfDone(): void {
    if (this.isEndHeard && this.#isEndSaid) this.#close(undefined)
  }

  #close(error: Error | undefined): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sink?.closed(error)
  }
}
