/** Reports when an HTTP/2 session is idle, and closes a finished one whose peer does not. */
import type { Http2Session } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { Sweep } from '../deadlines.ts'

/** Checks per idle time: the time is accurate to an eighth. */
const CHECKS = 8

/** Checks of a finished session before its connection is closed by force. */
const LAST_CHECKS = 2

interface IdleWatchOptions {
  readonly session: Http2Session
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
export function watchIdle({ session, connection, moved, sweep, idleMs, onIdle }: IdleWatchOptions): void {
  let seen = 0
  let quietChecks = 0
  let lastChecks = 0
  const lookLater = (): void => {
    deadline.at = sweep.after(idleMs / CHECKS)
  }
  const expired = (): void => {
    if (session.destroyed && ++lastChecks === LAST_CHECKS) {
      connection.destroy()
      return
    }
    const now = moved()
    quietChecks = now === seen ? quietChecks + 1 : 0
    seen = now
    lookLater()
    if (quietChecks < CHECKS || session.destroyed) return
    quietChecks = 0
    onIdle()
  }
  const deadline = sweep.add({ expired })
  lookLater()
  session.once('close', () => sweep.remove(deadline))
}
