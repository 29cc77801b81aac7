/** Logs what may happen thousands of times a second: the first at once, the rest by one line a minute with their number. */

const MINUTE_MS = 60_000

export class MinuteLog<Fields> {
  readonly #write: (fields: Fields, count: number) => void
  readonly #everyMs: number
  #timer: NodeJS.Timeout | undefined
  #last: Fields | undefined
  #count = 0

  /** `write` gets the fields of the last event, and how many there were since the line before. */
  constructor(write: (fields: Fields, count: number) => void, { everyMs = MINUTE_MS } = {}) {
    this.#write = write
    this.#everyMs = everyMs
  }

  note(fields: Fields): void {
    this.#last = fields
    this.#count++
    if (this.#timer === undefined) this.#tell()
  }

  /** Writes what is still to be told, and waits for nothing. */
  close(): void {
    clearTimeout(this.#timer)
    this.#tell()
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tell(): void {
    this.#timer = undefined
    const [fields, count] = [this.#last, this.#count]
    if (fields === undefined) return
    this.#last = undefined
    this.#count = 0
    this.#timer = setTimeout(() => this.#tell(), this.#everyMs).unref()
    this.#write(fields, count)
  }
}
