/** Lets visitors wait until the edges are known, so that nobody hears that a name is not there which was only not read yet. */
import type { Socket } from 'node:net'
import type { MeetVisitor } from '../lib/net/trusted-hop.ts'

/** How many may wait. Beyond it connections are closed, as a system does whose own queue is full. */
const MAX_WAITING = 4096

export interface Held {
  readonly meet: MeetVisitor
  /** The edges are known: those who wait come in, and nobody waits from here on. */
  letIn(): void
  /** They never will be: those who wait are sent away. */
  sendAway(): void
}

/** Visitors who come before `letIn` are met only then, with every byte still in their sockets. */
export function holdVisitors(meet: MeetVisitor, { maxWaiting = MAX_WAITING } = {}): Held {
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
