/** Links between the data planes of one node, each over the other's Unix socket. */
import { connect, createServer, type Server, type Socket } from 'node:net'
import type { Logger } from '../../lib/log/create-log.ts'
import { CallLink } from '../../link/calls/call-link.ts'
import { socketChannel } from '../../link/calls/plane-channel.ts'
import type { Neighbours } from './worker-peers.ts'

interface PeerLinksOptions {
  readonly self: string
  /** The path of the socket on which a plane listens for the others. */
  readonly pathOf: (planeId: string) => string
  readonly log: Logger
}

/** The one call between planes; `name` selects the handler. */
type PeerCalls = {
  call(asked: { readonly name: string; readonly argument: unknown; readonly from: string }): unknown
}

type OutgoingLink = CallLink<PeerCalls, Record<never, never>>

/** How long another plane may take to answer, in milliseconds: a visitor may be waiting. */
const ANSWER_MS = 1000

export class PeerLinks implements Neighbours {
  readonly self: string
  readonly #options: PeerLinksOptions
  readonly #handlers = new Map<string, (argument: unknown, from: string) => unknown>()
  readonly #heard: (() => void)[] = []
  readonly #links = new Map<string, OutgoingLink>()
  readonly #sockets = new Set<Socket>()
  #others: readonly string[] = []
  #server: Server | undefined

  constructor(options: PeerLinksOptions) {
    this.self = options.self
    this.#options = options
  }

  /** Answers others from now on. */
  async listen(): Promise<void> {
    const { log, pathOf } = this.#options
    const calls: PeerCalls = {
      call: ({ name, argument, from }) => {
        const handler = this.#handlers.get(name)
        if (!handler)
          throw new Error(`the other data plane does not know the call ${name}; it runs another version of Postern`)
        return handler(argument, from)
      },
    }
    const server = createServer((socket) => {
      this.#hold(socket)
      new CallLink<Record<never, never>, PeerCalls>(socketChannel(socket), calls, { log })
    })
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(pathOf(this.self), resolve)
    })
  }

  /** Sets the other planes. */
  use(others: readonly string[]): void {
    this.#others = others
    for (const [id, link] of this.#links) if (!others.includes(id)) link.close()
    for (const heard of this.#heard) heard()
  }

  others(): readonly string[] {
    return this.#others
  }

  whenChanged(heard: () => void): void {
    this.#heard.push(heard)
  }

  ask(planeId: string, name: string, argument: unknown): Promise<unknown> {
    return this.#linkTo(planeId).ask('call', { name, argument, from: this.self }, { withinMs: ANSWER_MS })
  }

  tell(planeId: string, name: string, argument: unknown): void {
    this.#linkTo(planeId).tell('call', { name, argument, from: this.self })
  }

  serve(name: string, handler: (argument: unknown, from: string) => unknown): void {
    this.#handlers.set(name, handler)
  }

  close(): void {
    this.#server?.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #linkTo(planeId: string): OutgoingLink {
    const known = this.#links.get(planeId)
    if (known) return known
    const { pathOf, log } = this.#options
    const socket = connect({ path: pathOf(planeId) })
    this.#hold(socket)
    // Calls made before the socket is connected wait for it.
    const link: OutgoingLink = new CallLink(socketChannel(socket), {}, { log })
    this.#links.set(planeId, link)
    void link.closed.then(() => {
      if (this.#links.get(planeId) === link) this.#links.delete(planeId)
    })
    return link
  }

  #hold(socket: Socket): void {
    this.#sockets.add(socket)
    socket.unref()
    socket.once('close', () => this.#sockets.delete(socket))
  }
}
