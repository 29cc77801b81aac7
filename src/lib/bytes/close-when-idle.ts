/**
 * Ends connections that would stay open, each between two of its messages where possible: so their clients lose a
 * connection, which they open again, but no answer.
 */

/** A connection of a visitor, or a stream for one, by what it has carried so far. */
export interface Movable {
  /** Bytes from the visitor, and to the visitor. */
  readonly bytesRead: number
  readonly bytesWritten: number
  readonly destroyed: boolean
  destroy(): unknown
}

/** Pause between two checks, in milliseconds; shorter in the second half, for connections that hardly rest. */
const CHECK_MS = 10
const LATE_CHECK_MS = 1

/**
 * For how many checks a connection must be quiet after the last bytes went to the visitor. A connection that was quiet from
 * the start may be waiting for an answer, and must be quiet for longer.
 */
const QUIET_CHECKS = { answered: 4, unknown: 50 }

/** How long to wait for connections that are always busy, in milliseconds. */
export const LATE_MS = 2000

interface Watched {
  readonly connection: Movable
  read: number
  written: number
  /**
   * Who sent last: the visitor, who may wait for an answer; the service, in answer to that; or the service unasked.
   * Undefined when nothing was sent yet.
   */
  last: 'asked' | 'answered' | 'unasked' | undefined
  quietChecks: number
}

/** Resolves when all are closed, or after `lateMs`; the caller must then cut the others. */
export async function closeWhenIdle(connections: Iterable<Movable>, lateMs = LATE_MS): Promise<void> {
  const begun = performance.now()
  let left: Watched[] = [...connections].map((connection) => {
    const { bytesRead: read, bytesWritten: written } = connection
    return { connection, read, written, last: undefined, quietChecks: 0 }
  })
  for (;;) {
    const spent = performance.now() - begun
    if (left.length === 0 || spent >= lateMs) return
    const isLate = spent > lateMs / 2
    await pause(isLate ? LATE_CHECK_MS : CHECK_MS)
    left = left.filter((each) => !isOver(each, isLate))
  }
}

/** Resolves after `ms`, once everything received by then has been read: timers run before sockets are read. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(() => setImmediate(resolve), ms))
}

function isOver(each: Watched, isLate: boolean): boolean {
  const { connection } = each
  if (connection.destroyed) return true
  const { bytesRead, bytesWritten } = connection
  if (bytesRead === each.read && bytesWritten === each.written) each.quietChecks++
  else {
    if (bytesWritten === each.written) each.last = 'asked'
    else each.last = bytesRead !== each.read || each.last === 'asked' ? 'answered' : 'unasked'
    each.read = bytesRead
    each.written = bytesWritten
    each.quietChecks = 0
  }
  if (!isAtRest(each, isLate)) return false
  connection.destroy()
  return true
}

function isAtRest({ last, quietChecks }: Watched, isLate: boolean): boolean {
  if (last === undefined) return quietChecks >= QUIET_CHECKS.unknown
  // A visitor that asks again as soon as it has an answer rests no longer than this.
  if (last === 'answered' && isLate) return true
  return last !== 'asked' && quietChecks >= QUIET_CHECKS.answered
}
