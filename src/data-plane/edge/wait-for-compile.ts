/** Connections to an edge that is still being compiled wait a moment, with every byte still in the socket. */
import type { Socket } from 'node:net'

/** How many may wait; more are refused. */
const MAX_HELD = 1024
/** How long one waits, in milliseconds; longer than patterns may take to compile. */
const HOLD_MS = 5000

export class CompileWait {
  readonly #sockets = new Set<Socket>()
  readonly #limits: { readonly maxHeld: number; readonly holdMs: number }

  constructor({ maxHeld = MAX_HELD, holdMs = HOLD_MS } = {}) {
    this.#limits = { maxHeld, holdMs }
  }

  /** Calls `letIn` when `ready` resolves, unless the visitor has left; false when too many wait already. */
  hold(socket: Socket, ready: Promise<void>, letIn: () => void): boolean {
    const { maxHeld, holdMs } = this.#limits
    if (this.#sockets.size >= maxHeld) return false
    this.#sockets.add(socket)
    const leave = (): void => {
      this.#sockets.delete(socket)
      clearTimeout(overdue)
      socket.off('close', leave).off('error', ignore)
    }
    const overdue = setTimeout(() => socket.destroy(), holdMs)
    socket.on('close', leave).on('error', ignore)
    const comeIn = (): void => {
      if (!this.#sockets.has(socket)) return
      leave()
      letIn()
    }
    // If compiling failed, `letIn` refuses the connection.
    ready.then(comeIn, () => socket.destroy())
    return true
  }

  /** Closes all that wait. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

function ignore(): void {}
