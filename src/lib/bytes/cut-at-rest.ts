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

/** Looks for which nothing may have moved, after the last bytes went to the visitor. */
const QUIET_LOOKS = 4

/** How long a connection that carries something all the time is waited for, in milliseconds. */
export const LATE_MS = 1000

interface Watched {
  readonly connection: Movable
  read: number
  written: number
  /** Whether the last to say something was the visitor, who may wait for an answer. */
  isAsked: boolean
  quietLooks: number
}

/** Resolves when all are closed, or after `lateMs`; then those that are left are the caller's to cut. */
export async function cutAtRest(connections: Iterable<Movable>, lateMs = LATE_MS): Promise<void> {
  const until = performance.now() + lateMs
  let left: Watched[] = [...connections].map((connection) => {
    const { bytesRead: read, bytesWritten: written } = connection
    return { connection, read, written, isAsked: false, quietLooks: 0 }
  })
  while (left.length > 0 && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
    left = left.filter((each) => !isOver(each))
  }
}

function isOver(each: Watched): boolean {
  const { connection } = each
  if (connection.destroyed) return true
  const { bytesRead, bytesWritten } = connection
  if (bytesRead === each.read && bytesWritten === each.written) {
    each.quietLooks++
    if (each.isAsked || each.quietLooks < QUIET_LOOKS) return false
    connection.destroy()
    return true
  }
  each.isAsked = bytesWritten === each.written
  each.read = bytesRead
  each.written = bytesWritten
  each.quietLooks = 0
  return false
}
