/** A listener that is open before its server is ready: connections wait meanwhile, and are not refused. */
import { type AddressInfo, createServer, type Server, type ServerOpts, type Socket } from 'node:net'

/** How many connections the system may queue for one listener; its own limit may be lower. */
export const BACKLOG = 4096

/** A host and a port to open, or a socket that another process opened for us: its descriptor, or Node's handle. */
export type EarlyAddress =
  | { readonly host: string; readonly port: number; readonly reusePort?: boolean }
  | { readonly fd: number }
  | { readonly handle: ServerHandle }

/** A bound TCP socket as Node passes it between processes; opaque to us. */
export type ServerHandle = object

export interface EarlyOptions {
  /** Node's options for accepted sockets, the same as those of the server that takes over. */
  readonly sockets: ServerOpts
  /** Whether there is room for one more connection; it is closed otherwise. */
  readonly admits: (socket: Socket) => boolean
}

/** How many connections may wait at one listener. Further ones are closed, as a system does when its queue is full. */
const MAX_WAITING = 1024

/** The server takes over the listener with all waiting connections. */
export class EarlyListener {
  readonly address: AddressInfo
  readonly #options: EarlyOptions
  /** The listening server, or the handle that listens once a server takes over. */
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

  /** Rejects with the system's error when the place cannot be opened. */
  static async open(at: EarlyAddress, options: EarlyOptions): Promise<EarlyListener> {
    const waiting = new Set<Socket>()
    const server = createServer(options.sockets, (socket) => keepWaiting(socket, waiting, options))
    await listenAt(server, at)
    const address = server.address()
    if (typeof address === 'object' && address !== null) return new EarlyListener(server, waiting, address, options)
    server.close()
    throw Object.assign(new Error('not a TCP socket'), { code: 'ENOTSUP' })
  }

  /**
   * A listener whose socket listens only when a server takes it over; until then other processes serve the socket, or none.
   */
  static later(handle: ServerHandle, address: AddressInfo, options: EarlyOptions): EarlyListener {
    return new EarlyListener(handle, new Set(), address, options)
  }

  /** Passes all connections to `server` from now on, those that wait first. Calls `listening` before any of them. */
  handTo(server: Server, listening: () => void): void {
    this.#takenBy = server
    // Both servers share the handle; ours is never closed, since that would close the handle for both.
    server.listen(this.#own, BACKLOG, () => {
      listening()
      // A turn later, so that code which waited for `listening` runs first.
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
   * Listens on another socket too, and serves its connections like the others. Resolves with a function that ends that;
   * rejects with the system's error.
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

  /** Stops listening on other sockets. The server that took over closes its own. */
  endOthers(): void {
    for (const server of this.#lent) server.close()
    this.#lent.clear()
  }

  /** Closes the listener and all waiting connections; does nothing once a server has taken over. */
  close(): void {
    if (this.#takenBy) return
    this.endOthers()
    if ('close' in this.#own && typeof this.#own.close === 'function') this.#own.close()
    for (const socket of this.#waiting) socket.destroy()
  }
}

function keepWaiting(socket: Socket, waiting: Set<Socket>, { admits }: EarlyOptions): void {
  // A visitor may give up while it waits; without a listener the error would end the process.
  socket.on('error', ignore)
  if (waiting.size >= MAX_WAITING || !admits(socket)) {
    socket.destroy()
    return
  }
  waiting.add(socket)
  socket.once('close', () => waiting.delete(socket))
}

function listenAt(server: Server, at: EarlyAddress): Promise<void> {
  return untilListening(server, ignore, (listening) => {
    if ('fd' in at) server.listen(at, BACKLOG, listening)
    else if ('handle' in at) server.listen(at.handle, BACKLOG, listening)
    else server.listen({ ...at, backlog: BACKLOG }, listening)
  })
}

/** Calls `listen`; resolves when it calls back, or rejects with the system's error. `failed` gets later errors. */
export async function untilListening(
  server: Server,
  failed: (error: NodeJS.ErrnoException) => void,
  listen: (listening: () => void) => void,
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    listen(() => {
      server.off('error', reject)
      // An error such as too many open files need not affect the next connection.
      server.on('error', failed)
      resolve()
    })
  })
}

function ignore(): void {}
