/** The listener shared by HTTPS and TLS edges: accepts, reads the hello, and hands the connection on. */
import type { AddressInfo, Server, Socket } from 'node:net'
import { type Aged, AgeList } from '../../lib/limits/age-list.ts'
import type { ListenOn } from '../../lib/net/listen-on.ts'
import type { Peer } from '../../modules/phases.ts'
import type { ClientHello } from './client-hello.ts'
import type { OpenVisit } from './idle-visitors.ts'
import { ListenFault, openListener, type VisitorListening } from './open-listener.ts'
import { type ClientHelloFault, readClientHello, turnAway } from './read-client-hello.ts'

/** A connection whose hello was read, with every byte still in the socket. */
export interface Greeted {
  /** Paused; it must be taken over before the call returns. */
  readonly socket: Socket
  /** Its name is never empty. */
  readonly hello: ClientHello
  readonly peer: Peer
}

export interface PublicListenerOptions extends VisitorListening {
  /** An error thrown here closes that connection and no other. */
  readonly onConnection: (greeted: Greeted) => void
  /** Called when a connection is turned away. */
  readonly onFault?: (fault: ClientHelloFault | 'crowded', peer: Peer) => void
  readonly maxPending?: number
  readonly helloTimeoutMs?: number
}

/**
 * How many connections may wait for a complete hello. Over that, the oldest is closed, not the newest: an honest hello takes one
 * trip through the network, so the oldest visitors never meant to send one.
 */
const MAX_PENDING = 4096

interface Waiting extends Aged<Waiting> {
  readonly socket: Socket
  readonly peer: Peer
}

export class PublicListener {
  readonly #options: PublicListenerOptions
  /** Connections without a complete hello. */
  readonly #pending = new AgeList<Waiting>()
  /** Connections that are being refused. */
  readonly #leaving = new Set<Socket>()
  #server: Server | undefined
  #onEmpty: (() => void) | undefined

  constructor(options: PublicListenerOptions) {
    this.#options = options
  }

  /** How many connections are neither handed on nor closed. */
  get pending(): number {
    return this.#pending.size + this.#leaving.size
  }

  /** Resolves with the address it listens on, or with the fault. */
  async listen(on: ListenOn): Promise<AddressInfo | ListenFault> {
    const server = await openListener({
      ...this.#options,
      on,
      onConnection: (socket, peer) => this.#accept(socket, peer),
    })
    if (server instanceof ListenFault) return server
    this.#server = server
    // A listener on a host and port has an address of this form.
    return server.address() as AddressInfo
  }

  /**
   * Accepts no more connections; resolves when the last hello has arrived or timed out. Connections handed on stay
   * open.
   */
  async close(): Promise<void> {
    this.#server?.close()
    this.#server = undefined
    if (this.pending === 0) return
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve
    })
  }

  /** Connections that have not sent their hello. */
  *visits(): Generator<OpenVisit> {
    const { now = Date.now } = this.#options
    for (const waiting of this.#pending) {
      const { socket, peer } = waiting
      const isOpen = (): boolean => this.#pending.has(waiting) && !socket.destroyed
      const idleMs = (): number | undefined => (isOpen() ? now() - peer.startedAt : undefined)
      yield { ip: peer.ip, idleMs, close: () => socket.destroy() }
    }
  }

  /** Closes connections that have not sent their hello. */
  sendAway(): void {
    for (const { socket } of [...this.#pending]) socket.destroy()
    for (const socket of this.#leaving) socket.destroy()
  }

  #accept(socket: Socket, peer: Peer): void {
    const { maxPending = MAX_PENDING, helloTimeoutMs: timeoutMs } = this.#options
    if (this.pending >= maxPending) this.#makeRoom()
    const waiting: Waiting = { socket, peer, older: undefined, newer: undefined }
    this.#pending.add(waiting)
    readClientHello(socket, (result) => this.#greeted(waiting, result), timeoutMs === undefined ? {} : { timeoutMs })
  }

  #greeted(waiting: Waiting, result: ClientHello | ClientHelloFault): void {
    // The connection is missing if it had to make room for another.
    if (!this.#pending.delete(waiting)) return
    const { socket, peer } = waiting
    if (typeof result === 'string') {
      this.#leave(socket)
      turnAway(socket, result)
      this.#logRefusal(result, peer)
      return
    }
    this.#checkEmpty()
    try {
      this.#options.onConnection({ socket, hello: result, peer })
    } catch (err) {
      this.#options.log.error({ err, peer: peer.ip, name: result.serverName }, 'connection handler failed')
      socket.destroy()
    }
  }

  /** Counted until it is closed; otherwise lingering would be a way around the limit. */
  #leave(socket: Socket): void {
    this.#leaving.add(socket)
    const left = (): void => {
      this.#leaving.delete(socket)
      this.#checkEmpty()
    }
    if (socket.closed) left()
    else socket.once('close', left)
  }

  #makeRoom(): void {
    for (const socket of this.#leaving) {
      this.#leaving.delete(socket)
      socket.destroy()
      return
    }
    const { oldest } = this.#pending
    if (!oldest) return
    this.#pending.delete(oldest)
    oldest.socket.destroy()
    this.#logRefusal('crowded', oldest.peer)
  }

  #checkEmpty(): void {
    if (this.pending === 0) this.#onEmpty?.()
  }

  #logRefusal(fault: ClientHelloFault | 'crowded', peer: Peer): void {
    this.#options.log.debug({ peer: peer.ip, reason: fault }, 'connection refused before TLS')
    this.#options.onFault?.(fault, peer)
  }
}
