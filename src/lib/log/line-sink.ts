/**
 * Lines on their way out of the process: nobody waits for them, and a bounded number of bytes waits.
 *
 * A reader that is slow makes lines wait, up to a bound; what comes beyond it is dropped. Where nothing can be written,
 * on a full disk or a pipe without reader, lines are dropped at once. Lines that were dropped are counted, and a line
 * says how many once it can be written.
 */

/** Where lines go: a file or a pipe. */
export interface LinePort {
  readonly isTTY: boolean
  /** Writes `text` without holding the event loop, and calls back once: with the error and what it did not write. */
  write(text: string, done: (error?: Error | null, unwritten?: string) => void): void
  /** Writes what it can at once, for at most `limitMs`: the process ends now. */
  writeLast(text: string, limitMs: number): void
}

export interface LineSinkOptions {
  readonly port: LinePort
  /** The line that tells of `lost` dropped ones. */
  readonly notice: (lost: number) => string
  /** Called with each error, before it is tried again. */
  readonly onError?: (error: Error) => void
  readonly maxWaiting?: number
  readonly retryMs?: number
}

/** How much may wait for a slow reader, in bytes of UTF-8. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024

/** How much is handed to the system at once, in characters: what a pipe holds. */
const CHUNK_CHARACTERS = 64 * 1024

/** How often it is tried whether lines can be written again, in milliseconds. */
const RETRY_MS = 1000

/** How long the end of the process waits for a reader that does not read, in milliseconds. */
const LAST_LIMIT_MS = 200

export class LineSink {
  readonly #port: LinePort
  readonly #options: LineSinkOptions
  readonly #maxWaiting: number
  #queue: string[] = []
  /** In bytes, with what is being written. */
  #waiting = 0
  #isWriting = false
  /** Since the queue was full, until half of it is gone: otherwise each line out would let one in, with a notice before it. */
  #isFull = false
  #isBroken = false
  /** Whether the last thing written was a part of a line. */
  #isMidLine = false
  #lost = 0
  #untold = 0
  #onIdle: (() => void)[] = []

  constructor(options: LineSinkOptions) {
    this.#options = options
    this.#port = options.port
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING_BYTES
  }

  get isTTY(): boolean {
    return this.#port.isTTY
  }

  /** Lines dropped since the start. */
  get lost(): number {
    return this.#lost
  }

  /** How much waits, in bytes. */
  get waiting(): number {
    return this.#waiting
  }

  /** Takes whole lines; never waits and never throws. */
  write(lines: string): void {
    const bytes = Buffer.byteLength(lines)
    if (this.#isBroken || !this.#hasRoom(bytes)) {
      this.#lose(lines)
      return
    }
    if (this.#untold > 0) this.#tellLoss()
    this.#add(lines, bytes)
    if (!this.#isWriting) this.#writeNext()
  }

  /** Resolves when nothing waits, or after `limitMs`. */
  flush(limitMs: number): Promise<void> {
    if (!this.#isWriting) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limitMs)
      this.#onIdle.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  /** Writes what waits before the process ends. */
  finish(): void {
    const rest = this.#queue.join('')
    this.#queue = []
    if (rest !== '') this.#port.writeLast(rest, LAST_LIMIT_MS)
  }

  #hasRoom(bytes: number): boolean {
    const allowed = this.#isFull ? this.#maxWaiting / 2 : this.#maxWaiting
    this.#isFull = this.#waiting + bytes > allowed
    return !this.#isFull
  }

  #add(lines: string, bytes: number): void {
    this.#queue.push(lines)
    this.#waiting += bytes
  }

  #lose(lines: string): void {
    const count = linesIn(lines)
    this.#lost += count
    this.#untold += count
  }

  #tellLoss(): void {
    const line = this.#options.notice(this.#untold)
    this.#untold = 0
    this.#add(line, Buffer.byteLength(line))
  }

  #writeNext(): void {
    const chunk = this.#takeChunk()
    const bytes = Buffer.byteLength(chunk)
    this.#isWriting = true
    this.#port.write(chunk, (error, unwritten = chunk) => {
      this.#isWriting = false
      this.#waiting -= bytes
      if (error) this.#broke(error, chunk, unwritten)
      else if (this.#queue.length > 0) this.#writeNext()
      else if (this.#untold > 0) {
        this.#tellLoss()
        this.#writeNext()
      }
      if (!this.#isWriting) this.#idle()
    })
  }

  #takeChunk(): string {
    let characters = 0
    let count = 0
    for (const lines of this.#queue) {
      if (count > 0 && characters + lines.length > CHUNK_CHARACTERS) break
      characters += lines.length
      count++
    }
    return this.#queue.splice(0, count).join('')
  }

  #broke(error: Error, chunk: string, unwritten: string): void {
    this.#noteEnd(chunk, unwritten)
    this.#lose(unwritten)
    for (const lines of this.#queue) this.#lose(lines)
    this.#queue = []
    this.#waiting = 0
    this.#isFull = false
    this.#isBroken = true
    this.#retryLater()
    this.#options.onError?.(error)
  }

  #retryLater(): void {
    setTimeout(() => this.#retry(), this.#options.retryMs ?? RETRY_MS).unref()
  }

  /** The line that tells of the lost ones is also what finds out whether any can be written. */
  #retry(): void {
    const told = this.#untold
    const text = (this.#isMidLine ? '\n' : '') + this.#options.notice(told)
    this.#isWriting = true
    this.#port.write(text, (error, unwritten = text) => {
      this.#isWriting = false
      if (error) {
        this.#noteEnd(text, unwritten)
        this.#retryLater()
      } else {
        this.#isBroken = false
        this.#isMidLine = false
        this.#untold -= told
      }
      this.#idle()
    })
  }

  #noteEnd(text: string, unwritten: string): void {
    const end = text.length - unwritten.length
    if (end > 0) this.#isMidLine = text[end - 1] !== '\n'
  }

  #idle(): void {
    for (const run of this.#onIdle.splice(0)) run()
  }
}

function linesIn(text: string): number {
  let count = 0
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++
  return count
}
