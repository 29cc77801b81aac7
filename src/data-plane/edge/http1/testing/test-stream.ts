/** For tests: one end of a connection in memory; the test is the other end, and the socket in between. */
import type { ByteSink, ByteStream } from '../../../../lib/bytes/byte-stream.ts'

export class TestStream implements ByteStream {
  /** Every write as it came. */
  readonly writes: Buffer[] = []
  /** Whether `write` says that there is room. */
  hasRoom = true
  isEnded = false
  isReset = false
  isPaused = false
  pauses = 0
  #sink: ByteSink | undefined
  readonly #waiting: Buffer[] = []
  #isPeerDone = false
  #isEndEmitted = false
  #isDelivering = false
  #close: { error: Error | undefined } | undefined

  /** All that was written, as characters. */
  get sent(): string {
    return Buffer.concat(this.writes).toString('latin1')
  }

  /** Bytes that the other end sent and that were not taken. */
  get unread(): number {
    return this.#waiting.reduce((sum, chunk) => sum + chunk.length, 0)
  }

  /** What was written since the last call. */
  take(): string {
    const { sent } = this
    this.writes.length = 0
    return sent
  }

  /** The other end sends bytes. */
  feed(bytes: string | Buffer): void {
    this.#waiting.push(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
    this.#deliver()
  }

  /** The other end sends no more. */
  feedEnd(): void {
    this.#isPeerDone = true
    this.#deliver()
  }

  /** The connection is lost. */
  lose(error: Error = new Error('lost')): void {
    this.#finish(error)
  }

  /** There is room again. */
  giveRoom(): void {
    this.hasRoom = true
    this.#sink?.drain()
  }

  write(chunk: Buffer): boolean {
    if (this.#close || this.isEnded) return false
    this.writes.push(chunk)
    return this.hasRoom
  }

  end(): void {
    this.isEnded = true
    this.#closeWhenBothEnded()
  }

  reset(): void {
    if (this.#close) return
    this.isReset = true
    this.#finish(new Error('reset'))
  }

  attach(sink: ByteSink): void {
    this.#sink = sink
    if (this.#close) sink.closed(this.#close.error)
    else this.resume()
  }

  pause(): void {
    this.isPaused = true
    this.pauses++
  }

  resume(): void {
    this.isPaused = false
    this.#deliver()
  }

  #deliver(): void {
    if (this.#isDelivering || !this.#sink) return
    this.#isDelivering = true
    while (!this.isPaused && !this.#close) {
      const chunk = this.#waiting.shift()
      if (chunk === undefined) break
      this.#give(this.#sink, chunk)
    }
    this.#isDelivering = false
    if (this.isPaused || this.#close || !this.#isPeerDone || this.#isEndEmitted || this.#waiting.length > 0) return
    this.#isEndEmitted = true
    this.#sink.end()
    this.#closeWhenBothEnded()
  }

  /** Lends the chunk as a socket does: the memory is overwritten right after. */
  #give(sink: ByteSink, chunk: Buffer): void {
    if (!sink.lent) {
      sink.data(chunk)
      return
    }
    const memory = Buffer.from(new Uint8Array(chunk).buffer)
    sink.lent(memory)
    memory.fill('~')
  }

  #finish(error: Error | undefined): void {
    if (this.#close) return
    this.#close = { error }
    this.#sink?.closed(error)
  }

  #closeWhenBothEnded(): void {
    if (this.#isEndEmitted && this.isEnded) this.#finish(undefined)
  }
}
