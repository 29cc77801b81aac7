/**
 * A listener that is open before there is anybody to serve its connections: who connects meanwhile waits, and is not
 * refused. Whoever serves them takes the listener over, with all who wait.
 */
import { type AddressInfo, createServer, type Server, type ServerOpts, type Socket } from 'node:net'
import { BACKLOG } from './backlog.ts'

/** A host and a port to open, or a socket that another process opened for us: its descriptor, or what Node made of it. */
export type EarlyPlace =
  | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
  | { readonly fd: number }
  | { readonly handle: ServerHandle }

/** A bound TCP socket as Node passes it between processes; only Node looks inside. */
export type ServerHandle = object

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
  readonly #options: EarlyOptions
  /** What listens, or is to listen once somebody takes it over. */
  readonly #own: Server | ServerHandle
  readonly #waiting: Set<Socket>
  readonly #lent = new Set<Server>()
  #takenBy: Server | undefined

  private constructor(own: Server | ServerHandle, waiting: Set<Socket>, address: AddressInfo, options: EarlyOptions) {
    this.#own = own
    this.#waiting = waiting
    this.address = address
    this.#options = options
  }

  /** Rejects with the error of the system when the place cannot be had. */
  static async open(place: EarlyPlace, options: EarlyOptions): Promise<EarlyListener> {
    const waiting = new Set<Socket>()
    const server = createServer(options.sockets, (socket) => keepWaiting(socket, waiting, options))
    await listenAt(server, place)
    const address = server.address()
    if (typeof address === 'object' && address !== null) return new EarlyListener(server, waiting, address, options)
    server.close()
    throw Object.assign(new Error('not a TCP socket'), { code: 'ENOTSUP' })
  }

  /** A socket that listens only when somebody takes it over: until then others serve it, or nobody shall. */
  static later(handle: ServerHandle, address: AddressInfo, options: EarlyOptions): EarlyListener {
    return new EarlyListener(handle, new Set(), address, options)
  }

  /** From here on connections come to `server`, first of all those who wait. Calls `listening` before any of them. */
  handTo(server: Server, listening: () => void): void {
    this.#takenBy = server
    // The two share what listens; the one of this class is never closed, since that would close it for both.
    server.listen(this.#own, BACKLOG, () => {
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

  /**
   * Listens on another socket too: who connects there is served like everybody else. Gives what ends that. Rejects with
   * the error of the system.
   */
  async alsoAt(handle: ServerHandle): Promise<() => void> {
    const server: Server = createServer(this.#options.sockets, (socket) => {
      const serving = this.#takenBy
      if (serving?.listening) serving.emit('connection', socket)
      else if (serving) socket.destroy()
      else keepWaiting(socket, this.#waiting, this.#options)
    })
    await listenAt(server, { handle })
    this.#lent.add(server)
    return () => {
      if (this.#lent.delete(server)) server.close()
    }
  }

  /** Listens on its own socket alone. Whoever took it over closes that. */
  endOthers(): void {
    for (const server of this.#lent) server.close()
    this.#lent.clear()
  }

  /** Sends away who waits; nothing once somebody has taken it over. */
  close(): void {
    if (this.#takenBy) return
    this.endOthers()
    if ('close' in this.#own && typeof this.#own.close === 'function') this.#own.close()
    for (const socket of this.#waiting) socket.destroy()
  }
}

function keepWaiting(socket: Socket, waiting: Set<Socket>, { admits }: EarlyOptions): void {
  // Who gives up while it waits is nobody's loss; without a listener it would be fatal.
  socket.on('error', ignore)
  if (waiting.size >= MAX_WAITING || !admits(socket)) {
    socket.destroy()
    return
  }
  waiting.add(socket)
  socket.once('close', () => waiting.delete(socket))
}

async function listenAt(server: Server, place: EarlyPlace): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const listening = (): void => {
      server.off('error', reject)
      // Such as too many open files: the next connection may fare better.
      server.on('error', ignore)
      resolve()
    }
    if ('fd' in place) server.listen(place, BACKLOG, listening)
    else if ('handle' in place) server.listen(place.handle, BACKLOG, listening)
    else server.listen({ ...place, backlog: BACKLOG }, listening)
  })
}

function ignore(): void {}
