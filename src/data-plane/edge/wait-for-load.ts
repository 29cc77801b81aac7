/**
 * Holds visitors until the edges are loaded, so that no visitor is told that a name does not exist just because it is
 * not loaded yet.
 */
import type { Socket } from 'node:net'
import { SharedSlots } from '../../lib/limits/shared-slots.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'
import type { MeetVisitor } from '../../lib/net/trusted-hop.ts'
import { shared } from '../../model/shared.ts'

export interface Held {
  readonly meet: MeetVisitor
  /** Lets waiting visitors in, and holds no more; call it when the edges are loaded. */
  letIn(): void
  /** Closes waiting visitors; call it when the server stops before the edges are loaded. */
  sendAway(): void
}

/** Visitors that come before `letIn` wait for it once they are met, with every byte of their own still in the socket. */
export function waitForLoad(meet: MeetVisitor, maxWaiting: number = shared.earlyConnections.most): Held {
  const slots = new SharedSlots<{ readonly socket: Socket; readonly comeIn: () => void }>(maxWaiting)
  let isOpen = false
  return {
    meet(socket, peer, done) {
      meet(socket, peer, (visitor) => {
        if (isOpen || !visitor) return done(visitor)
        const waiting = { socket, comeIn: () => done(visitor) }
        slots.take(waiting, clientKeyOf(visitor.ip))?.socket.destroy()
        socket.once('close', () => slots.leave(waiting))
      })
    },
    letIn() {
      isOpen = true
      const all = slots.holders
      for (const waiting of all) slots.leave(waiting)
      for (const { comeIn } of all) comeIn()
    },
    sendAway() {
      for (const { socket } of slots.holders) socket.destroy()
    },
  }
}
