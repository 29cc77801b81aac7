/**
 * Ends connections that nobody ends by themselves, each between two of its messages where that is possible: so their
 * clients lose a connection, which they open anew, and no answer.
 */

/** A connection of a visitor, or a stream for one, by what it has carried so far. */
export interface Movable {
  /** Bytes from the visitor, and to the visitor. */
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly destroyed: boolean
  destroy(): unknown
}

/** How often to look, in milliseconds. */
const LOOK_MS = 10

/**
 * Looks for which nothing may have moved: after the last bytes went to the visitor, the same when time runs out, and for
 * those that were quiet from the first look, of which nobody knows whether they wait for an answer.
 */
const QUIET_LOOKS = { answered: 4, late: 1, unknown: 50 }

/** How long a connection that carries something all the time is waited for, in milliseconds. */
export const LATE_MS = 2000

interface Watched {
  readonly connection: Movable
  read: number
  written: number
  /** Whether the last to say something was the visitor, who may wait for an answer; undefined when nobody did yet. */
  isAsked: boolean | undefined
  quietLooks: number
}

/** Resolves when all are closed, or after `lateMs`; then those that are left are the caller's to cut. */
export async function cutAtRest(connections: Iterable<Movable>, lateMs = LATE_MS): Promise<void> {
  const begun = performance.now()
  let left: Watched[] = [...connections].map((connection) => {
    const { bytesRead: read, bytesWritten: written } = connection
    return { connection, read, written, isAsked: undefined, quietLooks: 0 }
  })
  for (;;) {
    const spent = performance.now() - begun
    if (left.length === 0 || spent >= lateMs) return
    await turn(LOOK_MS)
    left = left.filter((each) => !isOver(each, spent > lateMs / 2))
  }
}

/** Resolves after some time, and after what has arrived by then was read: timers run before that. */
function turn(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(() => setImmediate(resolve), ms))
}

function isOver(each: Watched, isLate: boolean): boolean {
  const { connection, isAsked } = each
  if (connection.destroyed) return true
  const { bytesRead, bytesWritten } = connection
  if (bytesRead === each.read && bytesWritten === each.written) {
    each.quietLooks++
    const enough = isAsked === undefined ? 'unknown' : isLate ? 'late' : 'answered'
    if (isAsked === true || each.quietLooks < QUIET_LOOKS[enough]) return false
    connection.destroy()
    return true
  }
  each.isAsked = bytesWritten === each.written
  each.read = bytesRead
  each.written = bytesWritten
  each.quietLooks = 0
  return false
}
