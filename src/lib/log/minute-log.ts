/** Logs what anybody may bring about thousands of times a second: so many lines a minute, and then how many more there were. */

const MINUTE_MS = 60_000

/** Kinds that are told apart in one minute; those beyond count as one. */
const MAX_KINDS = 1000

/** What of the name of a kind counts, in characters. */
const KIND_CHARACTERS = 256

const OTHERS = 'others'

export interface MinuteLogOptions {
  /** Lines of one kind that are written at once, in a minute. */
  readonly lines?: number
}

/** What of one kind there was since its minute began. */
interface Minute<Fields> {
  written: number
  /** The last of those that were not written, and how many they are. */
  last: Fields | undefined
  keptBack: number
  timer: NodeJS.Timeout
}

export class MinuteLog<Fields> {
  readonly #write: (fields: Fields, count: number) => void
  readonly #lines: number
  readonly #minutes = new Map<string, Minute<Fields>>()

  /** `write` gets the fields of the last event, and how many there were since the line of that kind before. */
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
      minute.keptBack++
    }
  }

  /** Writes what is still to be told, and waits for nothing. */
  close(): void {
    for (const minute of this.#minutes.values()) {
      clearTimeout(minute.timer)
      this.#tell(minute)
    }
    this.#minutes.clear()
  }

  #minuteOf(name: string): Minute<Fields> {
    const kind = this.#minutes.has(name) || this.#minutes.size < MAX_KINDS ? name : OTHERS
    let minute = this.#minutes.get(kind)
    if (!minute) {
      const timer = setTimeout(() => this.#over(kind), MINUTE_MS).unref()
      minute = { written: 0, last: undefined, keptBack: 0, timer }
      this.#minutes.set(kind, minute)
    }
    return minute
  }

  /** A minute of this kind is over: the next one begins with what was kept back, if there was something. */
  #over(kind: string): void {
    const minute = this.#minutes.get(kind)
    if (!minute || minute.keptBack === 0) this.#minutes.delete(kind)
    else {
      minute.timer = setTimeout(() => this.#over(kind), MINUTE_MS).unref()
      minute.written = 1
      this.#tell(minute)
    }
  }

  #tell(minute: Minute<Fields>): void {
    const { last, keptBack } = minute
    minute.last = undefined
    minute.keptBack = 0
    if (last !== undefined) this.#write(last, keptBack)
  }
}
