/**
 * How many connections of one tunnel may wait at its agent for the application to take them. Agents in Rust keep 64,
 * and one more stops all other tunnels of the session too; so those that are too many wait here, and not for long.
 */
import type { WireStream } from '../wire/wire-stream.ts'

/** Connections that may wait at the agent. */
const MAX_UNTAKEN = 60

/** How long a connection waits here, in milliseconds; an application that takes none in this time does not listen. */
const WAIT_MS = 1000

/** How often it is looked whether the application has taken some, in milliseconds; only while one waits. */
const LOOK_MS = 2

/** Connections that wait here. */
const MAX_WAITING = 1000

interface Untaken {
  readonly stream: WireStream
  readonly headBytes: number
}

interface Waiter {
  readonly until: number
  readonly resolve: (hasRoom: boolean) => void
}

export class UntakenConnections {
  readonly #now: () => number
  #untaken: Untaken[] = []
  #waiters: Waiter[] = []
  #isLooking = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether one more may be opened now. */
  hasRoom(): boolean {
    if (this.#untaken.length < MAX_UNTAKEN) return this.#waiters.length === 0
    this.#forgetTaken()
    return this.#waiters.length === 0 && this.#untaken.length < MAX_UNTAKEN
  }

  /** Resolves when it is its turn; with false when the application takes none. */
  wait(): Promise<boolean> {
    if (this.#waiters.length >= MAX_WAITING) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#waiters.push({ until: this.#now() + WAIT_MS, resolve })
      this.#lookLater()
    })
  }

  /** One more was opened, with a head of so many bytes. */
  add(stream: WireStream, headBytes: number): void {
    this.#untaken.push({ stream, headBytes })
  }

  #lookLater(): void {
    if (this.#isLooking) return
    this.#isLooking = true
    setTimeout(() => this.#look(), LOOK_MS)
  }

  #look(): void {
    this.#isLooking = false
    this.#forgetTaken()
    const now = this.#now()
    let room = MAX_UNTAKEN - this.#untaken.length
    this.#waiters = this.#waiters.filter(({ until, resolve }) => {
      const hasRoom = room > 0
      if (!hasRoom && now < until) return true
      if (hasRoom) room--
      resolve(hasRoom)
      return false
    })
    if (this.#waiters.length > 0) this.#lookLater()
  }

  /** The agent reads the head on its own; whatever goes beyond is the doing of its application. */
  #forgetTaken(): void {
    this.#untaken = this.#untaken.filter(({ stream, headBytes }) => {
      return !stream.isClosed && !stream.isHeard && !stream.isEndReceived && stream.credited <= headBytes
    })
  }
}
