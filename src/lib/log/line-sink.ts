/** Writes lines out of the process in bounded memory, without ever making the caller wait. */

/** The destination of lines: a file or a pipe. */
export interface LinePort {
  readonly isTTY: boolean
  /** Writes `text` without blocking the event loop, and calls back once: with the error and the text left unwritten. */
  write(text: string, done: (error?: Error | null, unwritten?: string) => void): void
  /** Writes what it can synchronously, for at most `limitMs`, because the process is about to end. */
  writeLast(text: string, limitMs: number): void
}

interface LineSinkOptions {
  readonly port: LinePort
  /** Makes the line that reports `lost` dropped ones. */
  readonly notice: (lost: number) => string
  /** Called with each error, before the next try. */
  readonly onError?: (error: Error) => void
  readonly maxWaiting?: number
  readonly retryMs?: number
}

/** How much may wait for a slow reader, in bytes of UTF-8. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024

/** How much is passed to the system at once, in characters: the capacity of a pipe. */
const CHUNK_CHARACTERS = 64 * 1024

/** How long after a failed write the next one is tried, in milliseconds. */
const RETRY_MS = 1000

/** How long the process waits at its end for a slow reader, in milliseconds. */
const LAST_LIMIT_MS = 200

/**
 * Lines for a slow reader queue up to a limit, and further lines are dropped. When nothing can be written, as on a full disk
 * or a pipe without a reader, lines are dropped at once. Dropped lines are counted, and a notice reports their number as
 * soon as it can be written.
 */
export class LineSink {
  readonly #port: LinePort
  readonly #options: LineSinkOptions
  readonly #maxWaiting: number
  #queue: string[] = []
  /** Bytes queued or being written. */
  #waiting = 0
  #isWriting = false
  /** Set when the queue is full, until it is half empty: otherwise lines would enter one by one, each with a notice. */
  #isFull = false
  #isBroken = false
  /** Whether the last write stopped in the middle of a line. */
  #isMidLine = false
  #lost = 0
  /** Lost lines that no notice has reported yet. */
  #unreported = 0
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

  /** Bytes queued or being written. */
  get waiting(): number {
    return this.#waiting
  }

  /** Writes whole lines; never blocks and never throws. */
  write(lines: string): void {
    const bytes = Buffer.byteLength(lines)
    if (this.#isBroken || !this.#hasRoom(bytes)) {
      this.#lose(lines)
      return
    }
    if (this.#unreported > 0) this.#reportLoss()
    this.#add(lines, bytes)
    if (!this.#isWriting) this.#writeNext()
  }

  /** Resolves when everything is written, or after `limitMs`. */
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

  /** Writes what is waiting before the process ends. */
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
    this.#unreported += count
  }

  #reportLoss(): void {
    const line = this.#options.notice(this.#unreported)
    this.#unreported = 0
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
      else if (this.#unreported > 0) {
        this.#reportLoss()
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

  /** Writing the notice about lost lines also shows whether lines can be written again. */
  #retry(): void {
    const reported = this.#unreported
    const text = (this.#isMidLine ? '\n' : '') + this.#options.notice(reported)
    this.#isWriting = true
    this.#port.write(text, (error, unwritten = text) => {
      this.#isWriting = false
      if (error) {
        this.#noteEnd(text, unwritten)
        this.#retryLater()
      } else {
        this.#isBroken = false
        this.#isMidLine = false
        this.#unreported -= reported
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
