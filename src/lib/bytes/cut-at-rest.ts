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

/** How often to look, in milliseconds; and when half the time is over, for those that hardly rest. */
const LOOK_MS = 10
const LATE_LOOK_MS = 1

/**
 * Looks for which nothing may have moved: after the last bytes went to the visitor, and for those that were quiet from
 * the first look, of which nobody knows whether they wait for an answer.
 */
const QUIET_LOOKS = { answered: 4, unknown: 50 }

/** How long a connection that carries something all the time is waited for, in milliseconds. */
export const LATE_MS = 2000

interface Watched {
  readonly connection: Movable
  read: number
  written: number
  /**
   * Who was the last to say something: the visitor, who may wait for an answer; the service, in answer to that; or the
   * service by itself. Undefined when nobody did yet.
   */
  last: 'asked' | 'answered' | 'told' | undefined
  quietLooks: number
}

/** Resolves when all are closed, or after `lateMs`; then those that are left are the caller's to cut. */
export async function cutAtRest(connections: Iterable<Movable>, lateMs = LATE_MS): Promise<void> {
  const begun = performance.now()
  let left: Watched[] = [...connections].map((connection) => {
    const { bytesRead: read, bytesWritten: written } = connection
    return { connection, read, written, last: undefined, quietLooks: 0 }
  })
  for (;;) {
    const spent = performance.now() - begun
    if (left.length === 0 || spent >= lateMs) return
    const isLate = spent > lateMs / 2
    await turn(isLate ? LATE_LOOK_MS : LOOK_MS)
    left = left.filter((each) => !isOver(each, isLate))
  }
}

/** Resolves after some time, and after what has arrived by then was read: timers run before that. */
function turn(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(() => setImmediate(resolve), ms))
}

function isOver(each: Watched, isLate: boolean): boolean {
  const { connection } = each
  if (connection.destroyed) return true
  const { bytesRead, bytesWritten } = connection
  if (bytesRead === each.read && bytesWritten === each.written) each.quietLooks++
  else {
    if (bytesWritten === each.written) each.last = 'asked'
    else each.last = bytesRead !== each.read || each.last === 'asked' ? 'answered' : 'told'
    each.read = bytesRead
    each.written = bytesWritten
    each.quietLooks = 0
  }
  if (!isAtRest(each, isLate)) return false
  connection.destroy()
  return true
}

function isAtRest({ last, quietLooks }: Watched, isLate: boolean): boolean {
  if (last === undefined) return quietLooks >= QUIET_LOOKS.unknown
  // Who asks again as soon as there is an answer rests for no longer than this.
  if (last === 'answered' && isLate) return true
  return last !== 'asked' && quietLooks >= QUIET_LOOKS.answered
}
