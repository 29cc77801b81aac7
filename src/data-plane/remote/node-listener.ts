/** The listener where other nodes reach the tunnels of this node, at any of its planes, since the planes share one port. */
import type { AddressInfo, Socket } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { type ListenOn, listenOn, listenText } from '../../lib/net/listen-on.ts'
import { agentSockets } from '../../lib/net/socket-options.ts'
import { type AddressHolder, readAsked } from '../../link/planes/ask-node.ts'
import { LEAVE_TYPE, RELAY_TYPE } from '../../link/planes/dial-header.ts'
import { LinkKeepalive } from '../../link/planes/link-keepalive.ts'
import { CALL_TYPE, NodeCalls, PLANE_CALL_TYPE } from '../../link/planes/node-calls.ts'
import { type NodeIdentity, type NodePlane, verifiedPeer } from '../../link/planes/node-identity.ts'
import { TunnelsReached } from '../../link/planes/reached-tunnels.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import type { Mux } from '../../link/wire/mux.ts'
import { streamTypes, typeHead } from '../../link/wire/stream-types.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { pathOf } from '../tunnel/acceptor.ts'
import { RelayedDials, type RelayedDialsOptions } from './relayed-dials.ts'

/** `dial` reaches tunnels of this node only: what comes through here is relayed to no other. */
export interface NodeListenerOptions extends RelayedDialsOptions {
  readonly identity: Pick<NodeIdentity, 'listenerTls'>
  /** Takes the stream of a call from another node. */
  readonly answer: (stream: WireStream, from: NodePlane) => void
  /** Which of these places a tunnel of this node still has. */
  readonly serves: (holders: readonly AddressHolder[]) => readonly boolean[]
  /** Instead of the limits below, for tests. */
  readonly handshakeMs?: number
  readonly maxHandshakes?: number
  readonly idleMs?: number
  /** See `LinkKeepalive`, for tests. */
  readonly lookMs?: number
}

/** How long a connection may take to prove that it comes from a node, in milliseconds. */
const HANDSHAKE_MS = 3000

/** Most connections at once that have not proved yet that they come from a node; the oldest makes room for another. */
const MAX_HANDSHAKES = 256

/** Most connections of nodes at once: each plane of each other node has one, and a few more that are ending. */
const MAX_LINKS = 4096

/** How long a connection may be idle, in milliseconds: longer than at the other end, which opens the streams. */
const IDLE_MS = 11 * 60_000

interface Handshake {
  readonly socket: Socket
  readonly timer: NodeJS.Timeout
}

export class NodeListener {
  readonly #options: NodeListenerOptions
  /** The streams that other nodes open here for visitors. */
  readonly dials: RelayedDials
  readonly #answersHere: NodeCalls
  readonly #server: Server
  readonly #handshakes = new Map<string, Handshake>()
  readonly #sessions = new Map<Mux, TunnelsReached>()
  readonly #refused: MinuteLog<{ readonly peer: string | undefined; readonly reason: string }>
  readonly #dead: MinuteLog<{ readonly node: string; readonly plane: string }>
  #closed: Promise<void> | undefined

  constructor(options: NodeListenerOptions) {
    const { identity, log } = options
    this.#options = options
    this.dials = new RelayedDials(options)
    this.#answersHere = new NodeCalls({
      answer: async (_, value) => {
        const holders = readAsked(value)
        if (!holders) throw new Error('unknown question')
        return options.serves(holders)
      },
      log,
    })
    this.#refused = new MinuteLog((fields, count) =>
      log.warn({ ...fields, count }, 'refused a connection to the listener for nodes'),
    )
    this.#dead = new MinuteLog((fields, count) =>
      log.warn({ ...fields, count }, 'another node stopped answering; its link was closed'),
    )
    this.#server = createServer({ ...identity.listenerTls, ...agentSockets })
    this.#server.on('connection', (socket) => this.#accept(socket))
    this.#server.on('secureConnection', (socket) => this.#verify(socket))
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      // Port scans and health checks close without a word.
      if (error.code !== 'ECONNRESET') this.#note(socket, `no handshake: ${error.code ?? error.message}`)
      socket.destroy()
    })
  }

  /** Connections of other nodes. */
  get links(): number {
    return this.#sessions.size
  }

  listen(on: ListenOn): Promise<AddressInfo> {
    return listenOn(this.#server, on, (err) => {
      this.#options.log.error({ err, listener: listenText(on) }, 'cannot accept connections from other nodes')
    })
  }

  /**
   * Accepts no more connections, and asks other nodes to open no more streams here. Streams that they still open are served:
   * the request may not have reached them yet, and a tunnel may be here until its agent has moved.
   */
  stop(): void {
    if (this.#closed) return
    this.#closed = new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
    for (const { socket } of [...this.#handshakes.values()]) socket.destroy()
    for (const session of this.#sessions.keys()) {
      const stream = session.open(typeHead(LEAVE_TYPE))
      if (!(stream instanceof WireError)) stream.close()
    }
  }

  /** A tunnel that other nodes may have reached here is gone, or has moved within this node. */
  tunnelEnded(tunnelId: string): void {
    for (const reached of this.#sessions.values()) reached.ended(tunnelId)
  }

  /** Closes all that is still open. */
  async close(): Promise<void> {
    this.stop()
    for (const session of [...this.#sessions.keys()]) session.close()
    this.dials.close()
    this.#answersHere.close()
    this.#refused.close()
    this.#dead.close()
    await this.#closed
  }

  #accept(socket: Socket): void {
    const { handshakeMs = HANDSHAKE_MS, maxHandshakes = MAX_HANDSHAKES } = this.#options
    const [oldest] = this.#handshakes.values()
    if (oldest && this.#handshakes.size >= maxHandshakes) {
      this.#note(oldest.socket, 'too many handshakes at once')
      oldest.socket.destroy()
    }
    const path = pathOf(socket)
    const timer = setTimeout(() => {
      this.#note(socket, 'the handshake took too long')
      socket.destroy()
    }, handshakeMs).unref()
    this.#handshakes.set(path, { socket, timer })
    socket.once('close', () => this.#handshakeEnded(path))
  }

  #handshakeEnded(path: string): void {
    clearTimeout(this.#handshakes.get(path)?.timer)
    this.#handshakes.delete(path)
  }

  #verify(socket: TLSSocket): void {
    this.#handshakeEnded(pathOf(socket))
    const peer = verifiedPeer(socket)
    if (peer instanceof Error) this.#refuse(socket, peer.message)
    else if (this.#closed || this.#sessions.size >= MAX_LINKS) this.#refuse(socket, 'too many connections')
    else this.#serve(socket, peer)
  }

  #serve(socket: TLSSocket, from: NodePlane): void {
    const { idleMs = IDLE_MS, lookMs, log } = this.#options
    const fields = { node: from.nodeId, plane: from.planeId }
    const session = relaySession(socket, {
      opens: false,
      isFar: true,
      onStream: (stream, type) => {
        if (type === streamTypes.heartbeat) pulse.answer(stream)
        else this.#onStream(stream, type, from, reached)
      },
      onClosed: (err) => {
        pulse.stop()
        this.#sessions.delete(session)
        log.debug({ ...fields, err }, 'link of another node closed')
      },
    })
    const pulse = new LinkKeepalive(session, {
      idleMs,
      lookMs,
      onIdle: () => session.close(),
      onDead: () => {
        this.#dead.note(fields, from.nodeId)
        session.close('remote_gone_away')
      },
    })
    const reached = new TunnelsReached(session, { log })
    this.#sessions.set(session, reached)
    log.debug(fields, 'link of another node opened')
  }

  #onStream(stream: WireStream, type: number, from: NodePlane, reached: TunnelsReached): void {
    if (type === RELAY_TYPE) this.dials.accept(stream, reached)
    else if (type === CALL_TYPE) this.#options.answer(stream, from)
    else if (type === PLANE_CALL_TYPE) this.#answersHere.accept(stream, from)
    else this.dials.refuse(stream, 'unknown stream type')
  }

  #refuse(socket: Socket, reason: string): void {
    this.#note(socket, reason)
    socket.destroy()
  }

  #note(socket: Socket, reason: string): void {
    this.#refused.note({ peer: socket.remoteAddress, reason }, reason)
  }
}
