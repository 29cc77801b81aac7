/** Connections to an edge that is still being found or compiled wait a moment, with every byte still in the socket. */
import type { Socket } from 'node:net'
import { SharedSlots } from '../../lib/limits/shared-slots.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'
import { shared } from '../../model/shared.ts'

/** How long one waits, in milliseconds; longer than patterns may take to compile. */
const HOLD_MS = 5000

export class CompileWait {
  readonly #slots: SharedSlots<Socket>
  readonly #holdMs: number

  constructor({ maxHeld = shared.heldConnections.most, holdMs = HOLD_MS } = {}) {
    this.#slots = new SharedSlots(maxHeld)
    this.#holdMs = holdMs
  }

  /** Calls `letIn` when `ready` resolves, unless the visitor, from `ip`, has left or had to make room for another. */
  hold(socket: Socket, ip: string, ready: Promise<void>, letIn: () => void): void {
    this.#slots.take(socket, clientKeyOf(ip))?.destroy()
    const leave = (): void => {
      this.#slots.leave(socket)
      clearTimeout(overdue)
      socket.off('close', leave).off('error', ignore)
    }
    const overdue = setTimeout(() => socket.destroy(), this.#holdMs)
    socket.on('close', leave).on('error', ignore)
    const comeIn = (): void => {
      if (!this.#slots.has(socket)) return
      leave()
      letIn()
    }
    // If compiling failed, `letIn` refuses the connection.
    ready.then(comeIn, () => socket.destroy())
  }

  /** Closes all that wait. */
  cut(): void {
    for (const socket of this.#slots.holders) socket.destroy()
  }
}

function ignore(): void {}
