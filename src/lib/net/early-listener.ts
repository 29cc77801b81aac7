/**
 * A listener that is open before there is anybody to serve its connections: who connects meanwhile waits, and is not
 * refused. Whoever serves them takes the listener over, with all who wait.
 */
import { type AddressInfo, createServer, type Server, type ServerOpts, type Socket } from 'node:net'
import { BACKLOG } from './backlog.ts'

/** A host and a port to open, or the descriptor of a socket that another process opened for us. */
export type EarlyPlace = { readonly host: string; readonly port: number } | { readonly fd: number }

export interface EarlyOptions {
  /** What Node is to do with each socket; as whoever takes over would have it. */
  readonly sockets: ServerOpts
  /** Whether there is room for one more; it is closed otherwise. */
  readonly admits: (socket: Socket) => boolean
}

/** How many may wait at one listener. Beyond it they are closed, as a system does whose own queue is full. */
const MAX_WAITING = 1024

export class EarlyListener {
  readonly address: AddressInfo
  readonly #server: Server
  readonly #waiting: Set<Socket>
  #isTaken = false

  private constructor(server: Server, waiting: Set<Socket>, address: AddressInfo) {
    this.#server = server
    this.#waiting = waiting
    this.address = address
  }

  /** Rejects with the error of the system when the place cannot be had. */
  static async open(place: EarlyPlace, { sockets, admits }: EarlyOptions): Promise<EarlyListener> {
    const waiting = new Set<Socket>()
    const server = createServer(sockets, (socket) => {
      // Who gives up while it waits is nobody's loss; without a listener it would be fatal.
      socket.on('error', ignore)
      if (waiting.size >= MAX_WAITING || !admits(socket)) {
        socket.destroy()
        return
      }
      waiting.add(socket)
      socket.once('close', () => waiting.delete(socket))
    })
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      const listening = (): void => {
        server.off('error', reject)
        // Such as too many open files: the next connection may fare better.
        server.on('error', ignore)
        resolve()
      }
      if ('fd' in place) server.listen(place, BACKLOG, listening)
      else server.listen({ ...place, backlog: BACKLOG }, listening)
    })
    const address = server.address()
    if (typeof address === 'object' && address !== null) return new EarlyListener(server, waiting, address)
    server.close()
    throw Object.assign(new Error('not a TCP socket'), { code: 'ENOTSUP' })
  }

  /** From here on connections come to `server`, first of all those who wait. Calls `listening` before any of them. */
  handTo(server: Server, listening: () => void): void {
    this.#isTaken = true
    // The two share what listens; the one of this class is never closed, since that would close it for both.
    server.listen(this.#server, BACKLOG, () => {
      listening()
      // A turn later, when whoever waited for `listening` has gone on.
      setImmediate(() => {
        for (const socket of this.#waiting) {
          if (server.listening) server.emit('connection', socket)
          else socket.destroy()
        }
        this.#waiting.clear()
      })
    })
  }

  /** Sends away who waits; nothing once somebody has taken it over. */
  close(): void {
    if (this.#isTaken) return
    this.#server.close()
    for (const socket of this.#waiting) socket.destroy()
  }
}

function ignore(): void {}
