/** A TCP proxy that can be shut, reopened and silenced at the same port, as if the server behind it came and went. */
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { portToKeep } from './free-port.ts'

export interface TcpGate {
  readonly port: number
  /** How many connections have reached the target so far. */
  readonly reached: number
  /** Resets every connection and refuses new ones. */
  shut(): Promise<void>
  /** Does nothing when it is open. */
  open(): Promise<void>
  /** From now on, new connections go to another port. */
  lead(target: number): void
  /** Holds back every byte and end, or only those of answers. New connections are still accepted, and held back too. */
  hush(which?: 'all' | 'answers'): void
  /** Passes on what was held back. */
  speak(): void
}

/** Opens a gate on loopback in front of a port. */
export async function openGate(first: number): Promise<TcpGate> {
  let target = first
  const sockets = new Set<Socket>()
  const kept: (() => void)[] = []
  let hushed: 'all' | 'answers' | null = null
  let reached = 0
  let server: Server | undefined
  const port = await portToKeep()

  const pass = (isAnswer: boolean, action: () => void) => {
    if (hushed === 'all' || (hushed === 'answers' && isAnswer)) kept.push(action)
    else action()
  }
  const carry = (from: Socket, to: Socket, isAnswer: boolean) => {
    sockets.add(from)
    from.on('error', () => {})
    from.on('data', (chunk) => pass(isAnswer, () => to.write(chunk)))
    from.on('end', () => pass(isAnswer, () => to.end()))
    from.on('close', () => {
      sockets.delete(from)
      pass(isAnswer, () => to.destroy())
    })
  }
  const gate: TcpGate = {
    port,
    get reached() {
      return reached
    },
    async open() {
      if (server?.listening) return
      // Half open, since the gate itself must not answer an end that is held back.
      server = createServer({ allowHalfOpen: true }, (near) => {
        const far = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
        far.once('connect', () => reached++)
        carry(near, far, false)
        carry(far, near, true)
      }).listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    lead(port) {
      target = port
    },
    async shut() {
      const closed = new Promise((resolve) => server?.close(resolve))
      for (const socket of sockets) {
        // Resetting a socket that is ending would leave a request in Node that never finishes, and spins at exit.
        if (socket.writableEnded) socket.destroy()
        else socket.resetAndDestroy()
      }
      await closed
    },
    hush(which = 'all') {
      hushed = which
    },
    speak() {
      hushed = null
      for (const action of kept.splice(0)) action()
    },
  }
  await gate.open()
  return gate
}
