/** Connections to an edge that is still being compiled wait a moment, with every byte still in the socket. */
import type { Socket } from 'node:net'
import { Shares } from '../../lib/limits/shares.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'
import { shared } from '../../model/shared.ts'

/** How long one waits, in milliseconds; longer than patterns may take to compile. */
const HOLD_MS = 5000

/** Whose connection it is: the edge, empty while that is being looked up, and the visitor's address. */
interface From {
  readonly edgeId: string
  readonly ip: string
}

interface Waiting {
  readonly source: string
  /** No longer waits. */
  readonly leave: () => void
  readonly socket: Socket
}

export class CompileWait {
  /** By edge; the oldest first. */
  readonly #waiting = new Map<string, Set<Waiting>>()
  readonly #shares: Shares
  readonly #holdMs: number

  constructor({ maxHeld = shared.compileWaits.most, holdMs = HOLD_MS } = {}) {
    this.#shares = new Shares(maxHeld)
    this.#holdMs = holdMs
  }

  /** Calls `letIn` when `ready` resolves, unless the visitor has left; false when too many of its own wait already. */
  hold(socket: Socket, ready: Promise<void>, letIn: () => void, { edgeId, ip }: From): boolean {
    const source = clientKeyOf(ip)
    const giver = this.#shares.giver(edgeId)
    if (giver !== undefined && !this.#sendAway(giver, giver === edgeId ? source : undefined)) return false
    const leave = (): void => {
      if (!this.#remove(edgeId, waiting)) return
      clearTimeout(overdue)
      socket.off('close', leave).off('error', ignore)
    }
    const waiting: Waiting = { source, leave, socket }
    this.#add(edgeId, waiting)
    const overdue = setTimeout(() => socket.destroy(), this.#holdMs)
    socket.on('close', leave).on('error', ignore)
    const comeIn = (): void => {
      if (!this.#waiting.get(edgeId)?.has(waiting)) return
      leave()
      letIn()
    }
    // If compiling failed, `letIn` refuses the connection.
    ready.then(comeIn, () => socket.destroy())
    return true
  }

  /** Closes all that wait. */
  cut(): void {
    for (const all of this.#waiting.values()) for (const { socket } of all) socket.destroy()
  }

  /** Closes the oldest of the source that has most at an edge; false when `newcomer`, one of them, has as many. */
  #sendAway(edgeId: string, newcomer: string | undefined): boolean {
    const bySource = Map.groupBy(this.#waiting.get(edgeId) ?? [], ({ source }) => source)
    const [largest = []] = [...bySource.values()].sort((a, b) => b.length - a.length)
    const [oldest] = largest
    if (!oldest || (newcomer !== undefined && (bySource.get(newcomer)?.length ?? 0) + 1 >= largest.length)) return false
    oldest.leave()
    oldest.socket.on('error', ignore).destroy()
    return true
  }

  #add(edgeId: string, waiting: Waiting): void {
    const all = this.#waiting.get(edgeId)
    if (all) all.add(waiting)
    else this.#waiting.set(edgeId, new Set([waiting]))
    this.#shares.add(edgeId, 1)
  }

  /** False when it does not wait. */
  #remove(edgeId: string, waiting: Waiting): boolean {
    const all = this.#waiting.get(edgeId)
    if (!all?.delete(waiting)) return false
    if (all.size === 0) this.#waiting.delete(edgeId)
    this.#shares.add(edgeId, -1)
    return true
  }
}

function ignore(): void {}
