/** For tests: a minimal agent over a real TLS connection, which does what it is told and records what arrives. */
import type { Socket } from 'node:net'
import { connect } from 'node:tls'
import { Secret } from '../../../lib/secrets/secret.ts'
import { answer, call, type Message, readMessage } from '../../../link/wire/agent-rpc.ts'
import { answerPings, Heartbeat } from '../../../link/wire/heartbeat.ts'
import {
  type AuthAnswer,
  type AuthRequest,
  type BeginAnswer,
  buildAuth,
  buildBegin,
  parseAuthAnswer,
  parseBeginAnswer,
} from '../../../link/wire/messages/auth.ts'
import { type BindAnswer, type BindMessage, buildBind, parseBindAnswer } from '../../../link/wire/messages/bind.ts'
import { parseNodes } from '../../../link/wire/messages/command-messages.ts'
import { readErrorText } from '../../../link/wire/messages/error-text.ts'
import {
  buildLabelRequest,
  buildUnbind,
  type LabelMessage,
  parseLabelAnswer,
} from '../../../link/wire/messages/tunnel-messages.ts'
import { Mux } from '../../../link/wire/mux.ts'
import { type StreamType, streamTypes, typeHead } from '../../../link/wire/stream-types.ts'
import { socketTransport } from '../../../link/wire/transport.ts'
import { WireError } from '../../../link/wire/wire-error.ts'
import type { WireStream } from '../../../link/wire/wire-stream.ts'

export const TOKEN = 'authtoken_of_the_test_0123456789abcdef'

export interface AgentOptions {
  /** The port of the server on loopback, or an open connection to it. */
  readonly port: number | Socket
  /** Whether it sends and answers heartbeats; an agent that does neither seems dead. */
  readonly isAlive?: boolean
  /** Whether it sends heartbeats of its own. */
  readonly isTalkative?: boolean
}

/** The result of a call: the answer, or the number of the error. */
export type Outcome<T> = T | { readonly ngrok: number; readonly message: string }

export class TestAgent {
  readonly mux: Mux
  /** Resolves when the connection is over. */
  readonly closed: Promise<WireError | undefined>
  /** Streams for visitors, in the order in which they came; their heads are unread. */
  readonly visitors: WireStream[] = []
  /** Messages of the server that need no answer, such as that a tunnel is over. */
  readonly received: Message[] = []
  /** How often it was asked to move. */
  moves = 0
  /** The lists of addresses of other nodes that it was sent. */
  readonly nodes: (readonly string[])[] = []
  /** How it answers a command; undefined for no answer at all. */
  onCommand: (type: number) => Message | undefined = () => ({ Error: '' })
  readonly #isAlive: boolean

  constructor({ port, isAlive = true, isTalkative = isAlive }: AgentOptions) {
    this.#isAlive = isAlive
    const { promise, resolve } = Promise.withResolvers<WireError | undefined>()
    this.closed = promise
    // The certificates of tests have long expired.
    const to = typeof port === 'number' ? { port, host: '127.0.0.1' } : { socket: port }
    const socket = connect({ ...to, rejectUnauthorized: false })
    this.mux = new Mux({
      role: 'agent',
      transport: socketTransport(socket),
      onStream: (stream, type) => this.#serve(stream, type),
      onClosed: resolve,
    })
    if (isTalkative) new Heartbeat(this.mux, { intervalMs: 20, toleranceMs: 10_000, onDead: () => this.mux.close() })
  }

  async call(type: StreamType, message: Message): Promise<Message> {
    const result = await call(this.mux, type, message, { timeoutMs: 5000 })
    if (result instanceof WireError) throw result
    return result
  }

  async authenticate(overrides: Partial<AuthRequest> = {}): Promise<Outcome<AuthAnswer>> {
    const result = parseAuthAnswer(await this.call(streamTypes.auth, buildAuth({ ...authRequest, ...overrides })))
    return outcome(result, ({ answer }) => answer)
  }

  /** Begins a session on a standby. */
  async begin({ isMoving = false } = {}): Promise<Outcome<BeginAnswer>> {
    const result = parseBeginAnswer(await this.call(streamTypes.begin, buildBegin({ isMoving })))
    return outcome(result, ({ answer }) => answer)
  }

  /** Resolves when the server has read all that was sent before, and has answered. */
  async pinged(): Promise<void> {
    const stream = this.mux.open(typeHead(streamTypes.heartbeat))
    if (stream instanceof WireError) throw stream
    const { promise, resolve } = Promise.withResolvers<void>()
    stream.attach({ data: () => stream.close(), end() {}, drain() {}, closed: () => resolve() })
    stream.write(Buffer.alloc(4))
    await promise
  }

  async bind(overrides: Partial<BindMessage> = {}): Promise<Outcome<BindAnswer>> {
    const result = parseBindAnswer(await this.call(streamTypes.bind, buildBind({ ...bindRequest, ...overrides })))
    return outcome(result, ({ answer }) => answer)
  }

  async startLabels(
    labels: Readonly<Record<string, string>>,
    more: Partial<LabelMessage> = {},
  ): Promise<Outcome<string>> {
    const request = { labels, forwardsTo: 'localhost:80', forwardsProto: '', metadata: '', ...more }
    const result = parseLabelAnswer(await this.call(streamTypes.startTunnelWithLabel, buildLabelRequest(request)))
    return outcome(result, ({ id }) => id)
  }

  unbind(id: string): Promise<Message> {
    return this.call(streamTypes.unbind, buildUnbind(id))
  }

  /** Ends the connection in order. */
  async leave(): Promise<void> {
    this.mux.close()
    await this.closed
  }

  #serve(stream: WireStream, type: number): void {
    if (type === streamTypes.heartbeat) {
      if (this.#isAlive) answerPings(stream)
    } else if (type === streamTypes.proxy) this.visitors.push(stream)
    else {
      readMessage(stream, (message) => {
        if (message instanceof WireError) return
        const isNotice = type === streamTypes.stopTunnel || type === streamTypes.move || type === streamTypes.nodes
        const nodes = parseNodes(message)
        if (!(nodes instanceof WireError) && nodes.length > 0) this.nodes.push(nodes)
        if (type === streamTypes.move) this.moves++
        else if (isNotice) this.received.push(message)
        const reply = isNotice ? undefined : this.onCommand(type)
        if (reply) answer(stream, reply)
      })
    }
  }
}

function outcome<R extends { readonly error: string }, T>(result: R | WireError, pick: (result: R) => T): Outcome<T> {
  if (result instanceof WireError) throw result
  if (result.error === '') return pick(result)
  const { message, code } = readErrorText(result.error)
  return { ngrok: Number(code.replace('ERR_NGROK_', '')), message }
}

const authRequest: AuthRequest = {
  versions: ['3', '2'],
  clientId: '',
  authtoken: new Secret(TOKEN),
  cookie: new Secret(''),
  os: 'linux',
  arch: 'amd64',
  version: '1.2.3',
  clientType: 'test',
  userAgent: 'test/1.2.3',
  hostname: '',
  metadata: '',
  heartbeatIntervalMs: 10_000,
  heartbeatToleranceMs: 15_000,
  updateUnsupported: '',
  stopUnsupported: '',
  restartUnsupported: '',
  leg: 0,
  windowBytes: 0,
  canMove: false,
  knowsNodes: false,
  isMoving: false,
  notAt: '',
}

export const bindRequest: BindMessage = {
  id: '',
  proto: 'https',
  forwardsTo: 'localhost:80',
  forwardsProto: '',
  opts: {},
  token: new Secret(''),
  metadata: '',
  bindings: [],
  poolingEnabled: false,
  name: '',
  description: '',
}
