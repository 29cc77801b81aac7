/** Limits how many connections of one tunnel wait at its agent for the application to accept them. */
import type { WireStream } from '../../link/wire/wire-stream.ts'

/**
 * Most connections that wait at the agent; the rest wait here, briefly. Agents in Rust queue 64, and one more blocks all other
 * tunnels of the session.
 */
const MAX_UNTAKEN = 60

/**
 * How long a connection waits here, in milliseconds; an application that accepts none in this time counts as not listening.
 */
const WAIT_MS = 1000

/** How often to check whether the application has accepted some, in milliseconds; only while one waits. */
const LOOK_MS = 2

/** Most connections that wait here. */
const MAX_WAITING = 1000

export class AgentBacklog {
  readonly #now: () => number
  #untaken: { readonly stream: WireStream; readonly headBytes: number }[] = []
  #waiters: { readonly until: number; readonly resolve: (hasRoom: boolean) => void }[] = []
  #isLooking = false

  constructor(now: () => number) {
    this.#now = now
  }

  /** Whether another connection may be opened now. */
  hasRoom(): boolean {
    if (this.#untaken.length < MAX_UNTAKEN) return this.#waiters.length === 0
    this.#forgetTaken()
    return this.#waiters.length === 0 && this.#untaken.length < MAX_UNTAKEN
  }

  /** Resolves with true when there is room, with false when the application accepts none. */
  wait(): Promise<boolean> {
    if (this.#waiters.length >= MAX_WAITING) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#waiters.push({ until: this.#now() + WAIT_MS, resolve })
      this.#lookLater()
    })
  }

  /** Counts a connection that was opened, with a head of this many bytes. */
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

  /** The agent reads the head itself; bytes read beyond it show that the application has accepted the connection. */
  #forgetTaken(): void {
    this.#untaken = this.#untaken.filter(({ stream, headBytes }) => {
      return !stream.isClosed && !stream.isHeard && !stream.isEndReceived && stream.credited <= headBytes
    })
  }
}
