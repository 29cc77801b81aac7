/** Logs events that outsiders can cause thousands of times a second: a few lines a minute, then how many more there were. */

const MINUTE_MS = 60_000

/** Kinds counted separately in one minute; all further ones share one count. */
const MAX_KINDS = 1000

/** Characters of a kind's name that are compared. */
const KIND_CHARACTERS = 256

const OTHERS = 'others'

export interface MinuteLogOptions {
  /** Lines of one kind that are written at once in each minute. */
  readonly lines?: number
}

/** The events of one kind since its minute began. */
interface Minute<Fields> {
  written: number
  /** The last event that was held back, and how many were. */
  last: Fields | undefined
  heldBack: number
  timer: NodeJS.Timeout
}

export class MinuteLog<Fields> {
  readonly #write: (fields: Fields, count: number) => void
  readonly #lines: number
  readonly #minutes = new Map<string, Minute<Fields>>()

  /** `write` gets the fields of the last event, and how many events there were since the previous line of that kind. */
  constructor(write: (fields: Fields, count: number) => void, { lines = 1 }: MinuteLogOptions = {}) {
    this.#write = write
    this.#lines = lines
  }

  note(fields: Fields, kind = ''): void {
    const minute = this.#minuteOf(kind.slice(0, KIND_CHARACTERS))
    if (minute.written < this.#lines) {
      minute.written++
      this.#write(fields, 1)
    } else {
      minute.last = fields
      minute.heldBack++
    }
  }

  /** Writes the events that were held back, without waiting for their minute to end. */
  close(): void {
    for (const minute of this.#minutes.values()) {
      clearTimeout(minute.timer)
      this.#writeHeldBack(minute)
    }
    this.#minutes.clear()
  }

  #minuteOf(name: string): Minute<Fields> {
    const kind = this.#minutes.has(name) || this.#minutes.size < MAX_KINDS ? name : OTHERS
    let minute = this.#minutes.get(kind)
    if (!minute) {
      const timer = setTimeout(() => this.#over(kind), MINUTE_MS).unref()
      minute = { written: 0, last: undefined, heldBack: 0, timer }
      this.#minutes.set(kind, minute)
    }
    return minute
  }

  /** Ends a minute of this kind: if events were held back, the next minute begins with a line about them. */
  #over(kind: string): void {
    const minute = this.#minutes.get(kind)
    if (!minute || minute.heldBack === 0) this.#minutes.delete(kind)
    else {
      minute.timer = setTimeout(() => this.#over(kind), MINUTE_MS).unref()
      minute.written = 1
      this.#writeHeldBack(minute)
    }
  }

  #writeHeldBack(minute: Minute<Fields>): void {
    const { last, heldBack } = minute
    minute.last = undefined
    minute.heldBack = 0
    if (last !== undefined) this.#write(last, heldBack)
  }
}
