/** Reports when an HTTP/2 session is idle, and closes a finished one whose peer does not. */
import type { Duplex } from 'node:stream'
import type { Deadline, Expiring, Sweep } from '../deadlines.ts'

/** Checks per idle time: the time is accurate to an eighth. */
const CHECKS = 8

/** Checks of a finished session before its connection is closed by force. */
const LAST_CHECKS = 2

interface IdleWatchOptions {
  readonly session: { readonly destroyed: boolean }
  /** The socket below the session. */
  readonly connection: Duplex
  /** Bytes moved in either direction. */
  readonly moved: () => number
  readonly sweep: Sweep
  /** Milliseconds. */
  readonly idleMs: number
  /** Called when nothing moved for this long, and again after each further period. */
  readonly onIdle: () => void
}

/**
 * Node has a timer for idle sessions, but clears it only after it has marked the session as destroyed, when clearing does
 * nothing. A finished session would stay in memory, with all that it holds, until the timer runs out. For finished sessions Node
 * has no timer: it waits forever for a peer that neither reads our last bytes nor closes.
 */
export class IdleWatch implements Expiring {
  readonly #options: IdleWatchOptions
  readonly #deadline: Deadline
  #seen = 0
  #quietChecks = 0
  #lastChecks = 0

  constructor(options: IdleWatchOptions) {
    this.#options = options
    this.#deadline = options.sweep.add(this)
    this.#lookLater()
  }

  /** Stops the watch; call it when the connection is closed. */
  stop(): void {
    this.#options.sweep.remove(this.#deadline)
  }

  expired(): void {
    const { session, connection, moved, onIdle } = this.#options
    if (session.destroyed && ++this.#lastChecks === LAST_CHECKS) {
      connection.destroy()
      return
    }
    const now = moved()
    this.#quietChecks = now === this.#seen ? this.#quietChecks + 1 : 0
    this.#seen = now
    this.#lookLater()
    if (this.#quietChecks < CHECKS || session.destroyed) return
    this.#quietChecks = 0
    onIdle()
  }

  #lookLater(): void {
    const { sweep, idleMs } = this.#options
    this.#deadline.at = sweep.after(idleMs / CHECKS)
  }
}
