/** The ports of TCP edges and endpoints: opened and closed at run time, each held by its owners. */
import type { Server, Socket } from 'node:net'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import type { Peer } from '../../modules/phases.ts'
import { ListenFault, openListener, type VisitorListening } from './open-listener.ts'

export interface TcpPortsOptions extends VisitorListening {
  readonly holders: RemotePortHolders
}

/** The socket is half-open and unread. An error thrown here ends that connection and no other. */
export type OnPortConnection = (socket: Socket, port: number, peer: Peer) => void

/** Where to listen for a port. */
export interface RemotePortHolders {
  /** Returns the error of the system when the port is unavailable. */
  open(port: number): ListenOn | Promise<ListenOn | NodeJS.ErrnoException>
  /** Call it when the port is closed. */
  close(port: number): void
}

interface OpenPort {
  /** Empty when the port is to be closed, which may be while it is still opening. */
  readonly owners: Set<string>
  /** Undefined when it listens. */
  readonly outcome: Promise<ListenFault | undefined>
  server: Server | undefined
}

export class PublicTcpPorts {
  readonly #options: TcpPortsOptions
  readonly #ports = new Map<number, OpenPort>()
  #onConnection: OnPortConnection = (socket) => socket.destroy()
  #isClosed = false

  constructor(options: TcpPortsOptions) {
    this.#options = options
  }

  /** Hands connections to `onConnection` from now on. */
  whenConnected(onConnection: OnPortConnection): void {
    this.#onConnection = onConnection
  }

  /** How many ports are open or opening. */
  get size(): number {
    return this.#ports.size
  }

  /**
   * Undefined when the port listens; otherwise why it does not, and then `owner` does not hold it. Opening twice does nothing
   * more.
   */
  async open(port: number, owner: string): Promise<ListenFault | undefined> {
    // Edges may still change while the server stops, but no more visitors may come in.
    if (this.#isClosed) return undefined
    const entry = this.#ports.get(port) ?? this.#listen(port)
    entry.owners.add(owner)
    return entry.outcome
  }

  /** The last owner closes the port at once; its connections stay open. */
  close(port: number, owner: string): void {
    const entry = this.#ports.get(port)
    if (entry?.owners.delete(owner)) this.#closeUnowned(port, entry)
  }

  /** Closes all ports; connections stay open. */
  closeAll(): void {
    this.#isClosed = true
    for (const [port, entry] of this.#ports) {
      entry.owners.clear()
      this.#closeUnowned(port, entry)
    }
  }

  #listen(port: number): OpenPort {
    const outcome = this.#openPort(port).then((server) => {
      if (server instanceof ListenFault) {
        this.#ports.delete(port)
        return server
      }
      entry.server = server
      this.#closeUnowned(port, entry)
      return undefined
    })
    const entry: OpenPort = { owners: new Set(), outcome, server: undefined }
    this.#ports.set(port, entry)
    return entry
  }

  /** A port that is still opening is closed once it is open, unless it has an owner by then. */
  #closeUnowned(port: number, { owners, server }: OpenPort): void {
    if (owners.size > 0 || !server) return
    this.#ports.delete(port)
    server.close()
    this.#options.holders.close(port)
  }

  async #openPort(port: number): Promise<Server | ListenFault> {
    const { holders } = this.#options
    const on = await holders.open(port)
    if (on instanceof Error) return new ListenFault(`port ${port}`, on)
    const server = await openListener({
      ...this.#options,
      on,
      onConnection: (socket, peer) => this.#onConnection(socket, port, peer),
    })
    if (server instanceof ListenFault) holders.close(port)
    return server
  }
}
