/**
 * Finds visitors that have left while they are not read from.
 *
 * Nobody reads from a visitor that sends faster than its service takes it, and of a socket that it does not read Node
 * tells nothing, not even that the other end has reset it: the request, and the connection to the service, would stay
 * until their idle time has passed. The system knows, so its table of connections is looked at every few seconds, while
 * there are such visitors. What it cannot know either is the end of a visitor whose own system could not send all bytes
 * before it. Where the system shows no table the idle time is all there is.
 */
import type { Socket } from 'node:net'
import { type Aged, AgeList } from '../lib/limits/age-list.ts'
import { readTcpTable, type TcpTable, tcpKey, tcpStates } from '../lib/net/tcp-table.ts'

/** Time between two checks, in milliseconds. */
const LOOK_MS = 2000

/** Checks in a row that find a visitor paused before the table is read: most pauses are short. */
const PAUSED_LOOKS = 2

/** Checks in a row that miss a connection before it counts as reset: the table changes while it is read. */
const MISSING_LOOKS = 2

interface Watched extends Aged<Watched> {
  readonly socket: Socket
  /** Whether the visitor may end its own side and go on to read. */
  readonly mayHalfClose: () => boolean
  /** Whether it is paused, as far as can be told. */
  readonly isPaused: () => boolean
  pausedLooks: number
  missingLooks: number
}

export interface DepartedVisitorsOptions {
  readonly everyMs?: number
  readonly readTable?: (family: 4 | 6) => Promise<TcpTable | undefined>
}

export class DepartedVisitors {
  readonly #everyMs: number
  readonly #readTable: (family: 4 | 6) => Promise<TcpTable | undefined>
  readonly #watched = new AgeList<Watched>()
  #timer: NodeJS.Timeout | undefined
  #isLooking = false

  constructor({ everyMs = LOOK_MS, readTable = readTcpTable }: DepartedVisitorsOptions = {}) {
    this.#everyMs = everyMs
    this.#readTable = readTable
  }

  /** Destroys `socket` when its visitor has left while it is paused. Call what it gives back when the connection is over. */
  watch(
    socket: Socket,
    { mayHalfClose, isPaused = () => socket.isPaused() }: Pick<Watched, 'mayHalfClose'> & Partial<Watched>,
  ): () => void {
    const looks = { pausedLooks: 0, missingLooks: 0 }
    const watched: Watched = { socket, mayHalfClose, isPaused, ...looks, older: undefined, newer: undefined }
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
    if (this.#isLooking) return
    this.#isLooking = true
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
      this.#isLooking = false
    }
  }

  /** Visitors that were paused for several checks. */
  #stalled(): Watched[] {
    const stalled: Watched[] = []
    for (const watched of this.#watched) {
      watched.pausedLooks = watched.isPaused() && !watched.socket.destroyed ? watched.pausedLooks + 1 : 0
      if (watched.pausedLooks >= PAUSED_LOOKS) stalled.push(watched)
      else watched.missingLooks = 0
    }
    return stalled
  }
}

function judge(watched: Watched, state: number | undefined): void {
  const { socket, mayHalfClose, isPaused } = watched
  watched.missingLooks = state === undefined ? watched.missingLooks + 1 : 0
  // It may have been resumed while the table was read.
  if (!isPaused()) return
  const isReset = watched.missingLooks >= MISSING_LOOKS
  if (isReset || (state === tcpStates.closeWait && !mayHalfClose())) socket.destroy()
}
