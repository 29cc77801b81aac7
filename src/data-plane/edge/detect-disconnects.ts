/** Finds visitors that have left while nothing is read from them. */
import type { Socket } from 'node:net'
import { type Aged, AgeList } from '../../lib/limits/age-list.ts'
import { readTcpTable, type TcpTable, tcpKey, tcpStates } from '../../lib/net/tcp-table.ts'

/** Time between two checks, in milliseconds. */
const CHECK_MS = 2000

/** Checks in a row that find a visitor paused before the table is read: most pauses are short. */
const PAUSED_CHECKS = 2

/** Checks in a row that miss a connection before it counts as reset: the table changes while it is read. */
const MISSING_CHECKS = 2

interface Watched extends Aged<Watched> {
  readonly socket: Socket
  /** Whether the visitor may end its own side and keep reading. */
  readonly mayHalfClose: () => boolean
  /** Whether it is paused, as far as is known. */
  readonly isPaused: () => boolean
  /** Called when it was paused for several checks. */
  readonly onStalled: (() => void) | undefined
  pausedChecks: number
  missingChecks: number
}

interface DepartedVisitorsOptions {
  readonly everyMs?: number
  readonly readTable?: (family: 4 | 6) => Promise<TcpTable | undefined>
}

/**
 * A visitor that sends faster than its service receives is not read from, and Node reports nothing about a socket that it does
 * not read, not even a reset. The request, and the connection to the service, would stay until the idle timeout. The system
 * knows, so its table of connections is checked every few seconds while there are such visitors.
 *
 * Not even the system sees the end of a connection while the visitor's own system still has bytes to send before that end. So a
 * little of them is read (`onStalled`); beyond that, and where the system has no such table, only the idle timeout remains.
 */
export class DisconnectWatch {
  readonly #everyMs: number
  readonly #readTable: (family: 4 | 6) => Promise<TcpTable | undefined>
  readonly #watched = new AgeList<Watched>()
  #timer: NodeJS.Timeout | undefined
  #isChecking = false

  constructor({ everyMs = CHECK_MS, readTable = readTcpTable }: DepartedVisitorsOptions = {}) {
    this.#everyMs = everyMs
    this.#readTable = readTable
  }

  /** Destroys `socket` when its visitor has left while it is paused. Call the result when the connection is over. */
  watch(
    socket: Socket,
    { mayHalfClose, isPaused = () => socket.isPaused(), onStalled }: Pick<Watched, 'mayHalfClose'> & Partial<Watched>,
  ): () => void {
    const checks = { pausedChecks: 0, missingChecks: 0 }
    const watched: Watched = {
      socket,
      mayHalfClose,
      isPaused,
      onStalled,
      ...checks,
      older: undefined,
      newer: undefined,
    }
    this.#watched.add(watched)
    this.#timer ??= setInterval(() => void this.#look(), this.#everyMs).unref()
    return () => {
      this.#watched.delete(watched)
      if (this.#watched.size === 0) this.close()
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  async #look(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    try {
      const stalled = this.#stalled().map((watched) => ({ watched, at: tcpKey(watched.socket) }))
      // The system no longer has a remote address for a connection that was reset.
      for (const { watched, at } of stalled) if (!at) judge(watched, undefined)
      for (const family of [4, 6] as const) {
        const ofFamily = stalled.filter(({ at }) => at?.family === family)
        const table = ofFamily.length > 0 ? await this.#readTable(family) : undefined
        if (table) for (const { watched, at } of ofFamily) judge(watched, table.get(at?.key ?? ''))
      }
    } finally {
      this.#isChecking = false
    }
  }

  /** Visitors that were paused for several checks. */
  #stalled(): Watched[] {
    const stalled: Watched[] = []
    for (const watched of this.#watched) {
      watched.pausedChecks = watched.isPaused() && !watched.socket.destroyed ? watched.pausedChecks + 1 : 0
      if (watched.pausedChecks === PAUSED_CHECKS) watched.onStalled?.()
      if (watched.pausedChecks >= PAUSED_CHECKS) stalled.push(watched)
      else watched.missingChecks = 0
    }
    return stalled
  }
}

function judge(watched: Watched, state: number | undefined): void {
  const { socket, mayHalfClose, isPaused } = watched
  watched.missingChecks = state === undefined ? watched.missingChecks + 1 : 0
  // The socket may have been resumed while the table was read.
  if (!isPaused()) return
  const isReset = watched.missingChecks >= MISSING_CHECKS
  if (isReset || (state === tcpStates.closeWait && !mayHalfClose())) socket.destroy()
}
