/** For tests: a server for agents that accepts everything it is not told to refuse. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createServer, type Server, type TLSSocket } from 'node:tls'
import { ByteDuplex } from '../../lib/bytes/byte-duplex.ts'
import { Secret } from '../../lib/secrets/secret.ts'
import { answer, call, type Message, readMessage, tell } from '../../link/wire/agent-rpc.ts'
import { answerPings } from '../../link/wire/heartbeat.ts'
import {
  type AuthRequest,
  type Begin,
  buildAuthAnswer,
  buildAuthRefusal,
  buildBeginAnswer,
  parseAuth,
  parseBegin,
} from '../../link/wire/messages/auth.ts'
import { type BindMessage, buildBindAnswer, parseBind } from '../../link/wire/messages/bind.ts'
import { echoOptions, requestedName } from '../../link/wire/messages/bind-options.ts'
import { buildNodes, moveMessage } from '../../link/wire/messages/command-messages.ts'
import { buildAnswer } from '../../link/wire/messages/error-text.ts'
import {
  buildLabelAnswer,
  type LabelMessage,
  parseLabelRequest,
  parseUnbind,
} from '../../link/wire/messages/tunnel-messages.ts'
import { Mux } from '../../link/wire/mux.ts'
import { agreeWindow, peerTraits } from '../../link/wire/mux-peer.ts'
import { buildProxyHead, type ProxyHeader } from '../../link/wire/proxy-header.ts'
import { type StreamType, streamTypes } from '../../link/wire/stream-types.ts'
import { socketTransport } from '../../link/wire/transport.ts'
import { WireError } from '../../link/wire/wire-error.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'

export interface TestServerSession {
  readonly auth: AuthRequest
  readonly mux: Mux
  readonly socket: TLSSocket
  readonly binds: BindMessage[]
  readonly labels: LabelMessage[]
  readonly unbound: string[]
  readonly closed: Promise<WireError | undefined>
}

export interface TestServerRules {
  /** The error to refuse with; an empty one accepts. */
  auth?: (request: AuthRequest) => string
  bind?: (request: BindMessage) => string
  /** The same for a connection that waited. */
  begin?: (request: Begin) => string
  /** The node that answers, and where the others are. */
  node?: { readonly nodeId: string; readonly nodeAddresses: readonly string[] }
  /** The data plane that answers, and how many there are; by default it is the only one. */
  plane?: (request: AuthRequest) => { readonly planeId: string; readonly planeCount: number }
  /** Does not answer pings. */
  isMute?: boolean
  /** Knows nothing of standbys, and begins a session instead. */
  isOlder?: boolean
  /** Does not answer binds. */
  isSlow?: boolean
  /** Called right after an agent was let in, in the same turn of the event loop. */
  onSession?: (session: TestServerSession) => void
  /** Called right after a bind was answered, in the same turn of the event loop. */
  onBound?: (session: TestServerSession, id: string) => void
}

export class TestServer {
  readonly rules: TestServerRules
  /** In order of arrival, including those that have ended. */
  readonly sessions: TestServerSession[] = []
  /** Connections that only wait, in order of arrival; those that have become a session too. */
  readonly standbys: TestServerSession[] = []
  readonly #server: Server
  readonly #sockets = new Set<TLSSocket>()
  readonly #cookies = new Map<string, string>()
  static #placed = 0
  #ids = 0
  /** Answers to binds that it was slow with. */
  readonly #unanswered: ((id: string) => void)[] = []
  #arrived = Promise.withResolvers<void>()

  static async start({
    rules = {},
    port = 0,
    firstId = 0,
    ...tls
  }: {
    rules?: TestServerRules
    port?: number
    /** Ids begin after this: those of two nodes of one server differ. */
    firstId?: number
    cert: string
    key: string
  }) {
    const server = new TestServer(tls, rules)
    // A door that replaces another must not hand out the same ids by chance.
    server.#ids = port === 0 ? firstId : 1000 * ++TestServer.#placed
    server.#server.listen(port, '127.0.0.1')
    await once(server.#server, 'listening')
    return server
  }

  private constructor(tls: { cert: string; key: string }, rules: TestServerRules) {
    this.rules = rules
    this.#server = createServer(tls, (socket) => this.#accept(socket))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port // it listens on a port
  }

  get latest(): TestServerSession {
    return this.sessions.at(-1) ?? assert.fail('no session')
  }

  /** The id of the latest tunnel. */
  lastId = ''

  /** Connections that are open now. */
  get connections(): number {
    return this.#sockets.size
  }

  /** Waits until there have been this many sessions. */
  async session(count: number): Promise<TestServerSession> {
    while (this.sessions.length < count) await this.#arrived.promise
    return this.sessions[count - 1] ?? assert.fail()
  }

  /** A visitor's connection through the agent. */
  visit(id: string, header: Partial<ProxyHeader> = {}, session = this.latest): ByteDuplex {
    const head = buildProxyHead({
      id,
      clientAddr: '192.0.2.1:4711',
      proto: 'tcp',
      edgeType: 'none',
      passthroughTls: false,
      requestId: '',
      ...header,
    })
    const stream = session.mux.open(head)
    if (stream instanceof WireError) assert.fail(stream)
    return new ByteDuplex(stream).on('error', () => {})
  }

  /** Sends a command and returns the agent's answer. */
  async command(type: StreamType, message: Message = {}): Promise<unknown> {
    const answered = await call(this.latest.mux, type, message)
    return answered instanceof WireError ? answered.code : answered.Error
  }

  /** Asks the agent to move to another connection, at one of these nodes if any are given. */
  move(session = this.latest, nodes?: readonly string[]): void {
    assert.equal(tell(session.mux, streamTypes.move, nodes ? buildNodes(nodes) : moveMessage), undefined)
  }

  /** Resumes sessions that another node of its server began. */
  knows(other: TestServer): void {
    for (const [clientId, cookie] of other.#cookies) this.#cookies.set(clientId, cookie)
  }

  /** Tells the agent where other nodes are. */
  tellNodes(addresses: readonly string[]): void {
    assert.equal(tell(this.latest.mux, streamTypes.nodes, buildNodes(addresses)), undefined)
  }

  /** Answers the binds that it was slow with. */
  answerBinds(id: string): void {
    for (const reply of this.#unanswered.splice(0)) reply(id)
  }

  /** Knows no cookie any more. */
  forgetSessions(): void {
    this.#cookies.clear()
  }

  stopTunnel(id: string, message: string, session = this.latest): void {
    assert.equal(tell(session.mux, streamTypes.stopTunnel, { Id: id, Message: message, ErrorCode: '' }), undefined)
  }

  /** Breaks every connection, as a cut cable would; the door stays open. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.#server.close()
    this.cut()
    await once(this.#server, 'close')
  }

  #accept(socket: TLSSocket): void {
    this.#sockets.add(socket)
    socket.on('close', () => this.#sockets.delete(socket))
    socket.on('error', () => {})
    const closed = Promise.withResolvers<WireError | undefined>()
    let session: TestServerSession | undefined
    const mux = new Mux({
      role: 'server',
      transport: socketTransport(socket),
      onStream: (stream, type) => {
        if (type === streamTypes.heartbeat) {
          if (!this.rules.isMute) answerPings(stream)
        } else
          readMessage(stream, (message) => {
            if (message instanceof WireError) return
            if (session?.auth.standbyOf && type === streamTypes.begin) this.#begin(session, stream, message)
            else if (session) this.#serve(session, stream, type, message)
            else if (type === streamTypes.auth) session = this.#authenticate(message, stream, { mux, socket, closed })
          })
      },
      onClosed: closed.resolve,
    })
  }

  #authenticate(
    message: Message,
    stream: WireStream,
    { mux, socket, closed }: { mux: Mux; socket: TLSSocket; closed: PromiseWithResolvers<WireError | undefined> },
  ): TestServerSession | undefined {
    const auth = parseAuth(message)
    if (auth instanceof WireError) assert.fail(auth)
    const error = this.rules.auth?.(auth) ?? ''
    if (error !== '') {
      answer(stream, buildAuthRefusal(error))
      return undefined
    }
    const standbyOf = this.rules.isOlder ? undefined : auth.standbyOf
    const cookie = standbyOf?.cookie.reveal() ?? `cookie_${++this.#ids}`
    const isResumed = this.#cookies.get(auth.clientId) === auth.cookie.reveal()
    const clientId = standbyOf?.clientId ?? (isResumed ? auth.clientId : `ts_${this.#ids}`)
    // A leg gets a cookie too, and is no reason to forget that of the session.
    if (!auth.heldPlanes && !standbyOf) this.#cookies.set(clientId, cookie)
    const windowBytes = agreeWindow(auth.windowBytes)
    mux.adapt(peerTraits(auth.userAgent, { agreedWindow: windowBytes }))
    answer(
      stream,
      buildAuthAnswer({
        version: '3',
        clientId,
        cookie: new Secret(cookie),
        serverVersion: '9.9.9',
        region: 'test',
        accountName: '',
        planName: '',
        banner: '',
        sessionDurationS: 0,
        sessionId: clientId,
        windowBytes,
        ...(this.rules.plane?.(auth) ?? { planeId: '', planeCount: 1 }),
        ...(this.rules.node ?? { nodeId: '', nodeAddresses: [] }),
        isStandby: standbyOf !== undefined,
      }),
    )
    const session = { auth, mux, socket, binds: [], labels: [], unbound: [], closed: closed.promise }
    if (standbyOf) this.standbys.push(session)
    else this.#arrive(session)
    return session
  }

  #begin(session: TestServerSession, stream: WireStream, message: Message): void {
    const begin = parseBegin(message)
    if (begin instanceof WireError) assert.fail(begin)
    const error = this.rules.begin?.(begin) ?? ''
    if (error !== '') {
      answer(stream, buildAnswer(error))
      return
    }
    answer(stream, buildBeginAnswer({ nodeAddresses: this.rules.node?.nodeAddresses ?? [] }))
    this.#arrive(session)
  }

  #arrive(session: TestServerSession): void {
    this.sessions.push(session)
    this.#arrived.resolve()
    this.#arrived = Promise.withResolvers()
    this.rules.onSession?.(session)
  }

  #serve(session: TestServerSession, stream: WireStream, type: number, message: Message): void {
    if (type === streamTypes.bind) this.#bind(session, stream, message)
    else if (type === streamTypes.startTunnelWithLabel) {
      const request = parseLabelRequest(message)
      assert.ok(!(request instanceof WireError))
      session.labels.push(request)
      answer(stream, buildLabelAnswer(`tn_label_${session.labels.length}`))
    } else if (type === streamTypes.unbind) {
      const request = parseUnbind(message)
      assert.ok(!(request instanceof WireError))
      session.unbound.push(request.id)
      answer(stream, buildAnswer())
    } else stream.reset('stream_refused')
  }

  #bind(session: TestServerSession, stream: WireStream, message: Message): void {
    const request = parseBind(message)
    if (request instanceof WireError) assert.fail(request)
    session.binds.push(request)
    if (this.rules.isSlow) this.#unanswered.push((id) => this.#answerBind(session, stream, request, id))
    else this.#answerBind(session, stream, request, request.id || `tn_${++this.#ids}`)
  }

  #answerBind(session: TestServerSession, stream: WireStream, request: BindMessage, id: string): void {
    const error = this.rules.bind?.(request) ?? ''
    if (error !== '') {
      answer(stream, { Error: error })
      return
    }
    const { proto, opts } = request
    this.lastId = id
    const wanted = requestedName(proto, opts)?.value
    const random = proto === 'tcp' ? `example.com:${20_000 + this.#ids}` : `random-${this.#ids}.example.com`
    const name = wanted ?? random
    const [host = '', port] = name.split(':')
    const url = `${proto}://${name}`
    const echo = echoOptions(proto, opts, { host, url, ...(port && { port: Number(port) }) })
    answer(stream, buildBindAnswer({ id, url, proto, opts: echo, token: new Secret(`token_of_${id}`), tunnelId: id }))
    this.rules.onBound?.(session, id)
  }
}
