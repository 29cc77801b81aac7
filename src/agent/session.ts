/** One session with a server: it authenticates, keeps alive with heartbeats, and answers the server's requests. */
import { randomBytes } from 'node:crypto'
import type { Duplex } from 'node:stream'
import { setTimeout as pause } from 'node:timers/promises'
import { answer, call, type Message, readMessage } from '../link/wire/agent-rpc.ts'
import { answerPings, Heartbeat } from '../link/wire/heartbeat.ts'
import {
  type AuthAnswer,
  type AuthRequest,
  type Begin,
  buildAuth,
  buildBegin,
  parseAuthAnswer,
  parseBeginAnswer,
} from '../link/wire/messages/auth.ts'
import { type BindAnswer, type BindMessage, buildBind, parseBindAnswer } from '../link/wire/messages/bind.ts'
import { parseNodes, parseStopTunnel, parseUpdate, type StopTunnel } from '../link/wire/messages/command-messages.ts'
import { buildAnswer, readErrorText } from '../link/wire/messages/error-text.ts'
import {
  buildLabelRequest,
  buildUnbind,
  type LabelMessage,
  parseLabelAnswer,
} from '../link/wire/messages/tunnel-messages.ts'
import { Mux } from '../link/wire/mux.ts'
import { agreeWindow, serverTraits } from '../link/wire/mux-peer.ts'
import { type ProxyHeader, readProxyHeader } from '../link/wire/proxy-header.ts'
import { type StreamType, streamTypes, typeHead } from '../link/wire/stream-types.ts'
import { socketTransport } from '../link/wire/transport.ts'
import { WireError } from '../link/wire/wire-error.ts'
import type { WireStream } from '../link/wire/wire-stream.ts'
import { type Command, type Commands, runCommand } from './agent-commands.ts'
import { AgentFault, lostSession } from './agent-fault.ts'
import type { ServerAddress } from './server-address.ts'

/** How long closing a tunnel may take, in milliseconds. */
const FAREWELL_MS = 1000

/**
 * How long a bind may take, in milliseconds: it may wait for a name to be freed and for listeners to open. A session may
 * take as long to begin: after a node's death many begin at the same time, and each that gave up would come back.
 */
const BIND_TIMEOUT_MS = 20_000

/**
 * How long a node may take to answer a ping when a session is to begin there, in milliseconds. The node may have died
 * unnoticed, or may have thousands of other agents to answer.
 */
const BEGIN_PROBE_MS = 8000

/** How often a connection that is being left checks whether its last visitor is gone, in milliseconds. */
const IDLE_LOOK_MS = 50

export interface SessionParts {
  /** A TLS connection; the session owns it from here on. */
  readonly socket: Duplex
  /** The server at the other end. */
  readonly server: ServerAddress
  readonly auth: AuthRequest
  readonly commands: Commands
  /** A visitor connected; the header has been read, the rest has not. */
  readonly onVisitor: (visitor: SessionVisitor) => void
  readonly onStopTunnel: (stop: StopTunnel) => void
  /** The server is about to close this connection, and asks the agent to open another before. */
  readonly onMove: () => void
  /** The server sent the addresses at which its other nodes accept agents. */
  readonly onNodes: (addresses: readonly string[]) => void
}

/** A connection of a visitor. */
export interface SessionVisitor {
  readonly stream: WireStream
  readonly header: ProxyHeader
  /** Must be called when the visitor was served or refused. */
  readonly done: () => void
}

export class Session {
  readonly #parts: SessionParts
  readonly #mux: Mux
  readonly #heartbeat: Heartbeat
  readonly #ended = Promise.withResolvers<AgentFault>()
  readonly #transportClosed: Promise<void>
  #answer: AuthAnswer | undefined
  /** Visitors that came before the owner of the session was ready for them, or before their tunnel was recorded. */
  #early: SessionVisitor[] = []
  #mayPassOn = false
  #binding = 0
  #visitors = 0
  #isEnded = false
  #isAskedToMove = false
  #isNodeLeaving = false
  /** Heartbeats that the server opened, which stay open. */
  #heartbeats = 0

  /** Connects and authenticates; rejects with an `AgentFault`, after closing the connection. */
  static async start(parts: SessionParts): Promise<Session> {
    const session = new Session(parts)
    try {
      await session.#authenticate()
      return session
    } catch (fault) {
      await session.close()
      throw fault
    }
  }

  private constructor(parts: SessionParts) {
    const { socket, auth } = parts
    this.#parts = parts
    this.#transportClosed = new Promise((resolve) => socket.once('close', () => resolve()))
    this.#mux = new Mux({
      role: 'agent',
      transport: socketTransport(socket),
      onStream: (stream, type) => this.#accept(stream, type),
      onClosed: (error) => this.#over(lostSession(error)),
    })
    this.#heartbeat = new Heartbeat(this.#mux, {
      intervalMs: auth.heartbeatIntervalMs,
      toleranceMs: auth.heartbeatToleranceMs,
      onDead: (error) => this.lose(error),
    })
  }

  get server(): ServerAddress {
    return this.#parts.server
  }

  /** Resolves with the reason when the session ends. */
  get ended(): Promise<AgentFault> {
    return this.#ended.promise
  }

  /** The server's answer to the authentication. */
  get welcome(): AuthAnswer {
    if (!this.#answer) throw new Error('the session is not authenticated')
    return this.#answer
  }

  get roundTripMs(): number | undefined {
    return this.#mux.roundTripMs
  }

  async bind(request: BindMessage): Promise<BindAnswer> {
    return this.#bind(streamTypes.bind, buildBind(request), parseBindAnswer)
  }

  /** Resolves with the id that the tunnel's visitors carry. */
  async label(request: LabelMessage): Promise<string> {
    return this.#bind(streamTypes.startTunnelWithLabel, buildLabelRequest(request), (message) => {
      const parsed = parseLabelAnswer(message)
      return parsed instanceof WireError ? parsed : { error: parsed.error, answer: parsed.id }
    })
  }

  /** Never rejects: a tunnel ends with its session anyway. */
  async unbind(id: string): Promise<void> {
    await call(this.#mux, streamTypes.unbind, buildUnbind(id), { timeoutMs: FAREWELL_MS })
  }

  /** Turns a standby into a session; when this resolves, it is one or has ended. */
  async begin(request: Begin): Promise<void> {
    this.probe(BEGIN_PROBE_MS)
    const answered = await call(this.#mux, streamTypes.begin, buildBegin(request), { timeoutMs: BIND_TIMEOUT_MS })
    const parsed = answered instanceof WireError ? answered : parseBeginAnswer(answered)
    if (parsed instanceof WireError) this.lose(parsed)
    else if (parsed.error === '') this.#answer = { ...this.welcome, ...parsed.answer }
    else {
      this.#over(refusal(parsed.error))
      this.#mux.close()
    }
  }

  /** Passes on visitors that came too early; to be called once the session and the tunnel of a bind are recorded. */
  release(): void {
    this.#mayPassOn = true
    const early = this.#early
    this.#early = []
    for (const visitor of early) this.#parts.onVisitor(visitor)
  }

  /** Whether a bind is in progress, whose tunnel id is not known yet. */
  get isBinding(): boolean {
    return this.#binding > 0
  }

  /** Keeps a visitor until `release`. */
  hold(visitor: SessionVisitor): void {
    this.#early.push(visitor)
  }

  get isEnded(): boolean {
    return this.#isEnded
  }

  /** The server is about to close this connection. */
  get isAskedToMove(): boolean {
    return this.#isAskedToMove
  }

  /** Whether the server closes this connection because its whole node stops. */
  get isNodeLeaving(): boolean {
    return this.#isNodeLeaving
  }

  /** Whether a visitor is connected. One whose stream is closed is gone, though its handler may not have noticed. */
  get #isServing(): boolean {
    return this.#visitors > 0 && this.#mux.accepted > this.#heartbeats
  }

  /** Another connection has taken over: closes this one after its last visitor. */
  async leave(): Promise<void> {
    // Streams that the server opened before the takeover may be on their way; they arrive before the answer to this ping.
    await new Promise<void>((resolve) => this.#ping(resolve))
    while (!this.#isEnded && this.#isServing) await pause(IDLE_LOOK_MS)
    await this.close()
  }

  /** Sends a ping outside the regular heartbeat; the session ends if no answer comes in time. */
  probe(timeoutMs: number): void {
    const dead = new WireError('dead_peer', 'peer', `no answer to a ping within ${timeoutMs} ms`)
    const timer = setTimeout(() => this.lose(dead), timeoutMs)
    this.#ping(() => clearTimeout(timer))
  }

  /** Calls `done` when the server has answered a ping, or when the session is over. */
  #ping(done: () => void): void {
    const stream = this.#mux.open(typeHead(streamTypes.heartbeat))
    if (stream instanceof WireError) {
      done()
      return
    }
    stream.attach({ data: () => stream.close(), end() {}, drain() {}, closed: () => done() })
    stream.write(randomBytes(4))
  }

  /** Gives up a dead connection. */
  lose(error: WireError): void {
    this.#over(lostSession(error))
    this.#mux.close('no_error')
    this.#parts.socket.destroy()
  }

  /** Ends the session with a GOAWAY; resolves when the connection is closed. */
  async close(): Promise<void> {
    this.#over(new AgentFault('closed', 'the agent was closed'))
    this.#mux.close()
    await this.#transportClosed
  }

  async #authenticate(): Promise<void> {
    const message = await call(this.#mux, streamTypes.auth, buildAuth(this.#parts.auth))
    const parsed = message instanceof WireError ? message : parseAuthAnswer(message)
    if (parsed instanceof WireError) throw authFault(parsed)
    if (parsed.error !== '') throw refusal(parsed.error)
    this.#answer = parsed.answer
    this.#mux.adapt(serverTraits({ agreedWindow: agreeWindow(parsed.answer.windowBytes) }))
  }

  async #bind<T>(
    type: StreamType,
    message: Message,
    parse: (message: Message) => { error: string; answer: T } | WireError,
  ): Promise<T> {
    this.#binding++
    try {
      const answered = await call(this.#mux, type, message, { timeoutMs: BIND_TIMEOUT_MS })
      const parsed = answered instanceof WireError ? answered : parse(answered)
      if (parsed instanceof WireError) throw lostSession(parsed)
      if (parsed.error !== '') throw refusal(parsed.error)
      return parsed.answer
    } finally {
      this.#binding--
      // Only after the caller has recorded the id of its tunnel.
      setImmediate(() => this.release())
    }
  }

  #accept(stream: WireStream, type: number): void {
    if (type === streamTypes.heartbeat) {
      this.#heartbeats++
      answerPings(stream)
    }
    // These may come together with the answer to the authentication.
    else if (type === streamTypes.move) this.#receive(stream, parseNodes, (nodes) => this.#askedToMove(nodes))
    else if (type === streamTypes.nodes) this.#receive(stream, parseNodes, this.#parts.onNodes)
    // Before authentication a server may only ping; over a leg, visitors may come with the answer.
    else if (!this.#answer && !(type === streamTypes.proxy && this.#parts.auth.leg > 0)) stream.reset('stream_refused')
    else if (type === streamTypes.proxy) this.#acceptVisitor(stream)
    else if (type === streamTypes.restart) this.#acceptCommand(stream, 'restart')
    else if (type === streamTypes.stop) this.#acceptCommand(stream, 'stop')
    else if (type === streamTypes.update) this.#acceptCommand(stream, 'update')
    else if (type === streamTypes.stopTunnel) this.#receive(stream, parseStopTunnel, this.#parts.onStopTunnel)
    else stream.reset('stream_refused')
  }

  #acceptVisitor(stream: WireStream): void {
    this.#visitors++
    const done = (): void => void this.#visitors--
    readProxyHeader(stream, (header) => {
      if (header instanceof WireError) {
        stream.reset('protocol_error')
        done()
      } else if (this.#mayPassOn) this.#parts.onVisitor({ stream, header, done })
      else this.hold({ stream, header, done })
    })
  }

  #acceptCommand(stream: WireStream, name: Command): void {
    readMessage(stream, (message) => {
      if (message instanceof WireError) return stream.reset('protocol_error')
      const update = name === 'update' ? parseUpdate(message) : undefined
      if (update instanceof WireError) return answer(stream, buildAnswer(update.message))
      void runCommand(this.#parts.commands, name, update).then(({ error = '', afterwards }) => {
        answer(stream, buildAnswer(error))
        // The answer goes first, since acting on a command may end this process.
        if (afterwards) stream.attach({ data() {}, end() {}, drain() {}, closed: () => afterwards() })
      })
    })
  }

  /** Takes a message that needs no answer; one that cannot be parsed is ignored. */
  #receive<T>(stream: WireStream, parse: (message: Message) => T | WireError, take: (said: T) => void): void {
    readMessage(stream, (message) => {
      stream.close()
      const said = message instanceof WireError ? message : parse(message)
      if (!(said instanceof WireError)) take(said)
    })
  }

  #askedToMove(nodes: readonly string[]): void {
    this.#isAskedToMove = true
    if (nodes.length > 0) {
      this.#isNodeLeaving = true
      this.#parts.onNodes(nodes)
    }
    this.#parts.onMove()
  }

  #over(fault: AgentFault): void {
    this.#isEnded = true
    this.#heartbeat.stop()
    this.#ended.resolve(fault)
    for (const { stream, done } of this.#early.splice(0)) {
      stream.reset()
      done()
    }
  }
}

function refusal(text: string): AgentFault {
  const { message, code } = readErrorText(text)
  return new AgentFault('refused', message || text, { serverCode: code })
}

function authFault(error: WireError): AgentFault {
  if (error.code === 'message_invalid' || error.code === 'protocol_error') {
    return new AgentFault('refused', 'there is no Postern server at this address', { cause: error })
  }
  return lostSession(error)
}
