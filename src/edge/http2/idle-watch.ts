/**
 * Tells when nothing moves on a session of HTTP/2, and closes one whose peer does not.
 *
 * Node has a timer for the first, but clears it only after it has marked the session as destroyed, when clearing does
 * nothing: a session that is over would stay in memory, with all that it holds, until the timer runs out. For the second
 * it has none: it waits without end for a peer that neither reads our last bytes nor closes.
 */
import type { Duplex } from 'node:stream'
import type { Deadline, Expiring, Sweep } from '../sweep.ts'

/** Checks per idle time: the time is accurate to an eighth. */
const LOOKS = 8

/** Checks of a finished session before its connection is closed by force. */
const LAST_LOOKS = 2

export interface IdleWatchOptions {
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

export class IdleWatch implements Expiring {
  readonly #options: IdleWatchOptions
  readonly #deadline: Deadline
  #seen = 0
  #quietLooks = 0
  #lastLooks = 0

  constructor(options: IdleWatchOptions) {
    this.#options = options
    this.#deadline = options.sweep.add(this)
    this.#lookLater()
  }

  /** The connection is closed. */
  stop(): void {
    this.#options.sweep.remove(this.#deadline)
  }

  expired(): void {
    const { session, connection, moved, onIdle } = this.#options
    if (session.destroyed && ++this.#lastLooks === LAST_LOOKS) {
      connection.destroy()
      return
    }
    const now = moved()
    this.#quietLooks = now === this.#seen ? this.#quietLooks + 1 : 0
    this.#seen = now
    this.#lookLater()
    if (this.#quietLooks < LOOKS || session.destroyed) return
    this.#quietLooks = 0
    onIdle()
  }

  #lookLater(): void {
    const { sweep, idleMs } = this.#options
    this.#deadline.at = sweep.after(idleMs / LOOKS)
  }
}
