/**
 * Holds visitors until the edges are loaded, so that no visitor is told that a name does not exist just because it is
 * not loaded yet.
 */
import type { Socket } from 'node:net'
import type { MeetVisitor } from '../../lib/net/trusted-hop.ts'

/** How many may wait. More are closed, as the system does when its own queue is full. */
const MAX_WAITING = 4096

export interface Held {
  readonly meet: MeetVisitor
  /** Lets waiting visitors in, and holds no more; call it when the edges are loaded. */
  letIn(): void
  /** Closes waiting visitors; call it when the server stops before the edges are loaded. */
  sendAway(): void
}

/** Visitors that come before `letIn` are met only then, with every byte still in the socket. */
export function waitForLoad(meet: MeetVisitor, { maxWaiting = MAX_WAITING } = {}): Held {
  const waiting = new Map<Socket, () => void>()
  let isOpen = false
  return {
    meet(socket, peer, done) {
      if (isOpen) return meet(socket, peer, done)
      if (waiting.size >= maxWaiting) {
        socket.destroy()
        return
      }
      waiting.set(socket, () => meet(socket, peer, done))
      socket.once('close', () => waiting.delete(socket))
    },
    letIn() {
      isOpen = true
      const all = [...waiting.values()]
      waiting.clear()
      for (const come of all) come()
    },
    sendAway() {
      for (const socket of waiting.keys()) socket.destroy()
    },
  }
}
