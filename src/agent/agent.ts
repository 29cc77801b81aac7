/** An agent: keeps a session with its server, reconnects when it ends, and keeps its tunnels open. */
import type { Duplex } from 'node:stream'
import { Secret } from '../lib/secrets/secret.ts'
import type { StopTunnel } from '../wire/messages/commands.ts'
import { authRequest } from './auth-request.ts'
import { retryDelay } from './backoff.ts'
import { type Commands, noCommands, reportedCommands } from './commands.ts'
import { dialServer } from './connect.ts'
import type { Connections } from './connections.ts'
import type { AgentEvent } from './events.ts'
import { AgentFault } from './fault.ts'
import { Figures } from './figures.ts'
import { FormerSessions } from './former-sessions.ts'
import { forwardConnection } from './forward.ts'
import type { Tap } from './http-tap.ts'
import { type LegRequest, Legs } from './legs.ts'
import type { ServerAddress } from './server-address.ts'
import { connectFirst, ServerNodes } from './server-nodes.ts'
import { ServiceWatch } from './service-watch.ts'
import { Session, type SessionVisitor } from './session.ts'
import { systemTimers, type Timers } from './timers.ts'
import { AgentTunnel, type AgentTunnelPlan } from './tunnel.ts'
import { watchWorld } from './world.ts'

/** A session that lasted this long resets the count of failed attempts, in milliseconds. */
const STEADY_MS = 10_000

/** How long a server may take to answer a ping after this machine slept or its network changed, in milliseconds. */
const PROBE_MS = 3000

/** How long to wait before asking again for an address that the server did not give back, in milliseconds. */
const REBIND_MS = 15_000

/** How long to wait before trying again to connect anew while the former connection lasts, in milliseconds. */
const MOVE_AGAIN_MS = 1000

export interface AgentOptions {
  readonly server: ServerAddress
  /** PEM; without it the CAs of the machine are trusted. */
  readonly ca?: string | undefined
  readonly authtoken: Secret
  readonly version: string
  readonly clientType?: string
  readonly metadata?: string
  /** How many connections its session has at most, each to another data plane of the server; `auto` by default. */
  readonly connections?: Connections
  readonly heartbeatIntervalMs?: number
  readonly heartbeatToleranceMs?: number
  readonly commands?: Commands
  readonly onEvent?: (event: AgentEvent) => void
  /** Whether to look for requests in the traffic, since somebody watches. */
  readonly isWatched?: boolean
  readonly timers?: Timers
  readonly random?: () => number
  readonly addresses?: () => string
  readonly dial?: (options: { server: ServerAddress; signal: AbortSignal }) => Promise<Duplex>
}

export class Agent {
  readonly figures = new Figures()
  readonly #options: AgentOptions
  readonly #timers: Timers
  readonly #tunnels = new Set<AgentTunnel>()
  /** By the ids that visitors carry: that of the bind, and over further connections the one that the API shows. */
  readonly #byId = new Map<string, AgentTunnel>()
  /** Tunnels that are being bound. */
  readonly #binding = new Map<AgentTunnel, Promise<void>>()
  /** Functions that cancel the next attempt for tunnels that were refused. */
  readonly #rebinds = new Map<AgentTunnel, () => void>()
  readonly #services: ServiceWatch
  readonly #closing = new AbortController()
  #session: Session | undefined
  /** Earlier connections of the same session, which serve the visitors that they have. */
  readonly #former = new FormerSessions()
  readonly #legs: Legs
  readonly #nodes: ServerNodes
  /** Resolves when another connection has taken over. */
  #moved = Promise.withResolvers<void>()
  /** The attempt to connect anew, while it goes on. */
  #moving: Promise<void> | undefined
  /** Identifies the session to resume. A new process starts without one, and gets a new session. */
  #clientId = ''
  #cookie = new Secret('')
  #failures = 0
  /** Ends the wait for the next attempt. */
  #retryNow: (() => void) | undefined
  #running: Promise<void> | undefined

  constructor(options: AgentOptions) {
    this.#options = options
    this.#timers = options.timers ?? systemTimers
    const { server, connections = 'auto', random = Math.random } = options
    this.#nodes = new ServerNodes(server, random)
    this.#legs = new Legs({
      ...{ connections, timers: this.#timers, random },
      // Only the node that has the session takes them.
      connect: (leg) => this.#connect(this.#session?.server ?? server, { isMoving: false, leg }),
    })
    this.#services = new ServiceWatch({
      timers: this.#timers,
      onDown: (tunnel, reason) => this.#emit({ type: 'service-down', tunnel, reason }),
      onUp: (tunnel) => this.#emit({ type: 'service-up', tunnel }),
    })
  }

  get tunnels(): ReadonlySet<AgentTunnel> {
    return this.#tunnels
  }

  get isOnline(): boolean {
    return this.#session !== undefined
  }

  /** Round trip time to the server, in milliseconds. */
  get latencyMs(): number | undefined {
    return this.#session?.roundTripMs
  }

  /**
   * Connects, and stays connected until `close`. Resolves when the agent is online; rejects with an `AgentFault` when the
   * server refuses it, and, unless it is `patient`, when the server cannot be reached.
   */
  start({ patient = false }: { patient?: boolean } = {}): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const stopWatching = watchWorld({
      timers: this.#timers,
      ...(this.#options.addresses && { addresses: this.#options.addresses }),
      onChange: () => this.#worldChanged(),
    })
    this.#running = this.#run({
      online: resolve,
      mayGoOn: (fault) => {
        if (patient && fault.mayPass) return true
        reject(fault)
        return false
      },
    }).finally(stopWatching)
    return promise
  }

  /** Opens a tunnel; resolves when it is online. It is opened again after every reconnect, until it is closed. */
  async open(plan: AgentTunnelPlan, { twin }: { twin?: AgentTunnel | undefined } = {}): Promise<AgentTunnel> {
    if (this.#closing.signal.aborted) throw new AgentFault('closed', 'the agent was closed')
    const tunnel = new AgentTunnel(plan, { twin })
    this.#tunnels.add(tunnel)
    void this.#bind(tunnel)
    await tunnel.ready
    return tunnel
  }

  /** Closes a tunnel and releases its address. Its open connections go on. */
  async closeTunnel(tunnel: AgentTunnel): Promise<void> {
    if (!this.#tunnels.has(tunnel)) return
    this.#forget(tunnel, new AgentFault('closed', 'the tunnel was closed'))
    const { id } = tunnel
    if (id === '') return
    await Promise.all([this.#session?.unbind(id), ...this.#former.all.map((session) => session.unbind(id))])
  }

  /** Closes all tunnels, and then the session with a GOAWAY. */
  async close(): Promise<void> {
    if (this.#closing.signal.aborted) return this.#running
    const session = this.#session
    const open = [...this.#tunnels]
    this.#closing.abort()
    await Promise.all(open.map((tunnel) => this.closeTunnel(tunnel)))
    await Promise.all([session?.close(), this.#former.close(), this.#legs.close()])
    await this.#running
  }

  async #run(first: { online: () => void; mayGoOn: (fault: AgentFault) => boolean }): Promise<void> {
    let wasOnline = false
    const { signal } = this.#closing
    while (!signal.aborted) {
      const { fault, lastedMs } = await this.#live(() => {
        wasOnline = true
        first.online()
      })
      if (!wasOnline && !first.mayGoOn(fault)) return
      if (signal.aborted) return
      this.#failures = lastedMs >= STEADY_MS ? 0 : this.#failures + 1
      const isRefused = !fault.mayPass
      const random = this.#options.random ?? Math.random
      const retryMs = retryDelay({ failures: this.#failures, isRefused, random })
      this.#emit({ type: 'offline', fault, retryMs })
      await this.#wait(retryMs)
    }
  }

  /** Runs one session to its end, over one connection after the other; resolves with why it ended or could not begin, and how long it lasted. */
  async #live(online: () => void): Promise<{ fault: AgentFault; lastedMs: number }> {
    let session: Session
    try {
      session = await connectFirst(this.#nodes.all, (server) => this.#connect(server, { isMoving: false }))
    } catch (error) {
      return { fault: asFault(error), lastedMs: 0 }
    }
    const startedAt = this.#timers.now()
    const { clientId, cookie, sessionId, region, serverVersion } = session.welcome
    const isResumed = clientId === this.#clientId
    this.#clientId = clientId
    this.#cookie = cookie
    this.#use(session)
    this.#emit({ type: 'online', session: sessionId || clientId, region, serverVersion, isResumed })
    for (const tunnel of this.#tunnels) void this.#bind(tunnel)
    online()
    if (session.isAskedToMove) this.#moveIfAsked()
    const fault = await this.#lasts(session)
    this.#session = undefined
    void this.#legs.close()
    this.#cancelRebinds()
    for (const tunnel of this.#tunnels) tunnel.offline()
    return { fault, lastedMs: this.#timers.now() - startedAt }
  }

  /** Resolves when the connection has ended, or the last that took over from it. */
  async #lasts(session: Session): Promise<AgentFault> {
    for (let current = session; ; current = this.#session ?? current) {
      const fault = await Promise.race([current.ended, this.#moved.promise])
      if (!fault) continue
      // It may have got another connection just in time.
      await this.#moving
      if (this.#session === current) return fault
    }
  }

  /** Connects anew while the current connection goes on, and lets that take over. Tries again while the first lasts. */
  async #move(): Promise<void> {
    const { signal } = this.#closing
    for (;;) {
      const from = this.#session
      if (!from?.isAskedToMove || from.isEnded || signal.aborted) return
      const servers = from.isNodeLeaving ? this.#nodes.awayFrom(from.server) : [from.server]
      const to = await connectFirst(servers, (server) => this.#connect(server, { isMoving: true })).catch(
        () => undefined,
      )
      if (!to) await this.#waitFor(from, MOVE_AGAIN_MS)
      else if (signal.aborted || to.welcome.clientId !== this.#clientId) {
        // A server that does not know the session cannot give it its addresses while another connection has them.
        await to.close()
        return
      } else this.#takeOver(from, to)
    }
  }

  /** Resolves when the time is over or the connection has ended. */
  #waitFor(session: Session, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#timers.after(ms, resolve)
      void session.ended.then(() => {
        cancel()
        resolve()
      })
    })
  }

  #takeOver(from: Session, to: Session): void {
    const { cookie, sessionId, region, serverVersion, clientId } = to.welcome
    this.#cookie = cookie
    this.#use(to)
    this.#moved.resolve()
    this.#moved = Promise.withResolvers()
    this.#cancelRebinds()
    this.#emit({ type: 'moved', session: sessionId || clientId, region, serverVersion })
    const bound = this.#boundAt(to, from)
    // With a session all its further connections end.
    const isOtherNode = to.welcome.nodeId !== from.welcome.nodeId
    this.#former.add(from, isOtherNode ? bound.then(() => this.#legs.leftNode(from.welcome.nodeId)) : bound)
    void bound.then(() => {
      if (this.#session === to) this.#legs.follow(to)
    })
  }

  #use(session: Session): void {
    this.#session = session
    this.#nodes.isAt(session.server)
    // Asked to move before it got here, it was told already.
    if (!session.isNodeLeaving) this.#nodes.told(session.welcome.nodeAddresses)
  }

  /** Resolves when all tunnels are online at `to`; those that are not may be so at `from`, while that lasts. */
  async #boundAt(to: Session, from: Session): Promise<void> {
    const ids = [...this.#tunnels].map(({ id }) => id).filter((id) => id !== '')
    await Promise.all([...this.#tunnels].map((tunnel) => this.#bind(tunnel)))
    const isMissing = (): boolean => [...this.#tunnels].some(({ isOnline }) => !isOnline)
    while (this.#session === to && !from.isEnded && isMissing()) await this.#waitFor(from, MOVE_AGAIN_MS)
    // Planes of one node tell each other; another node goes on sending visitors until it is told.
    if (to.welcome.nodeId !== from.welcome.nodeId) await Promise.all(ids.map((id) => from.unbind(id)))
  }

  /** Moves if the server has asked for it. */
  #moveIfAsked(): void {
    this.#moving ??= this.#move().finally(() => {
      this.#moving = undefined
    })
  }

  async #connect(
    server: ServerAddress,
    { isMoving, leg }: { readonly isMoving: boolean; readonly leg?: LegRequest },
  ): Promise<Session> {
    const { signal } = this.#closing
    const { ca, dial = () => dialServer({ server, ca, signal }) } = this.#options
    const socket = await dial({ server, signal })
    const abort = (): void => void socket.destroy()
    signal.addEventListener('abort', abort)
    try {
      const commands = reportedCommands(this.#options.commands ?? libraryCommands, (name, error) =>
        this.#emit({ type: 'command', name, error }),
      )
      const session = await Session.start({
        ...{ socket, server },
        auth: authRequest(this.#options, { clientId: this.#clientId, cookie: this.#cookie, commands, isMoving, leg }),
        commands,
        onVisitor: (visitor) => this.#serve(session, visitor),
        onStopTunnel: (stop) => {
          // What a former connection no longer serves is served by the current one.
          if (session === this.#session) this.#stopTunnel(stop)
        },
        onMove: () => (leg ? leg.onMove() : this.#moveIfAsked()),
        onNodes: (addresses) => this.#nodes.told(addresses),
      })
      session.release()
      return session
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  /** Asks for a tunnel at the current connection, and again at one that takes over meanwhile. */
  #bind(tunnel: AgentTunnel): Promise<void> {
    const under = this.#binding.get(tunnel)
    if (under) return under
    const binding = this.#bindLatest(tunnel).finally(() => this.#binding.delete(tunnel))
    this.#binding.set(tunnel, binding)
    return binding
  }

  async #bindLatest(tunnel: AgentTunnel): Promise<void> {
    let asked: Session | undefined
    while (this.#session && this.#session !== asked && this.#tunnels.has(tunnel)) {
      asked = this.#session
      await this.#bindAt(asked, tunnel)
    }
  }

  async #bindAt(session: Session, tunnel: AgentTunnel): Promise<void> {
    try {
      await tunnel.twinIsReady()
      const answer = await this.#ask(session, tunnel)
      // The tunnel was closed meanwhile.
      if (!this.#tunnels.has(tunnel)) return await session.unbind(answer.id)
      this.#unname(tunnel)
      this.#byId.set(answer.id, tunnel)
      if (answer.tunnelId !== '') this.#byId.set(answer.tunnelId, tunnel)
      if (session === this.#session && !this.#legs.isActive) this.#legs.follow(session)
      if (tunnel.online(answer)) this.#emit({ type: 'tunnel-online', tunnel })
    } catch (error) {
      this.#notBound(session, tunnel, asFault(error))
    }
  }

  async #ask(session: Session, tunnel: AgentTunnel) {
    const labels = tunnel.labelRequest()
    if (labels) {
      const id = await session.label(labels)
      return { id, url: '', proto: '', opts: {}, token: new Secret(''), tunnelId: id }
    }
    const request = tunnel.bindRequest()
    if (!request) throw new Error('a tunnel has labels or asks for an address')
    return session.bind(request)
  }

  #notBound(session: Session, tunnel: AgentTunnel, fault: AgentFault): void {
    // The next session will ask for it again.
    if (session !== this.#session || !this.#tunnels.has(tunnel)) return
    const isFinal = fault.code === 'refused' || fault.code === 'closed'
    if (isFinal && !tunnel.wasOnline) {
      this.#forget(tunnel, fault)
      return
    }
    tunnel.offline()
    if (isFinal) this.#emit({ type: 'tunnel-refused', tunnel, fault })
    const again = (): void => void this.#bind(tunnel)
    // Visitors may still be served over a former connection, which will not last.
    const waitMs = this.#former.all.length > 0 ? MOVE_AGAIN_MS : REBIND_MS
    this.#rebinds.set(tunnel, this.#timers.after(waitMs, again))
  }

  #cancelRebinds(): void {
    for (const cancel of this.#rebinds.values()) cancel()
    this.#rebinds.clear()
  }

  #forget(tunnel: AgentTunnel, fault: AgentFault): void {
    this.#tunnels.delete(tunnel)
    this.#unname(tunnel)
    this.#rebinds.get(tunnel)?.()
    this.#rebinds.delete(tunnel)
    this.#services.forget(tunnel)
    tunnel.end(fault)
  }

  #unname({ id, tunnelId }: AgentTunnel): void {
    this.#byId.delete(id)
    this.#byId.delete(tunnelId)
  }

  #serve(session: Session, waiting: SessionVisitor): void {
    const { stream, header, done } = waiting
    const tunnel = this.#byId.get(header.id)
    if (!tunnel) {
      // Over a leg, visitors may come before the bind is answered, which is done over the first connection.
      const binding = [session, this.#session].find((each) => each?.isBinding)
      if (binding && !stream.isClosed) binding.hold(waiting)
      else {
        stream.reset('stream_refused')
        done()
      }
      return
    }
    const now = (): number => performance.now()
    forwardConnection(stream, header, tunnel.plan.target, {
      figures: this.figures,
      now,
      tap: this.#options.isWatched ? this.#tapOf(tunnel, now) : undefined,
      onDialled: (fault, request) => {
        // Connections of a closed tunnel go on, but the state of its service is of no interest any more.
        if (!this.#tunnels.has(tunnel)) return
        if (fault) this.#services.failed(tunnel, fault, request)
        else this.#services.answered(tunnel)
      },
      onEnd: (end) => {
        done()
        this.#emit({ type: 'connection-closed', tunnel, end })
      },
    })
    const visitor = { address: header.clientAddr, proto: header.proto }
    this.#emit({ type: 'connection-opened', tunnel, visitor })
  }

  #tapOf({ plan }: AgentTunnel, now: () => number): Tap {
    return {
      figures: this.figures,
      tunnel: plan.name,
      now,
      clock: () => this.#timers.now(),
      onChange: () => this.#emit({ type: 'request' }),
    }
  }

  #stopTunnel({ id, message }: StopTunnel): void {
    const tunnel = this.#byId.get(id)
    if (!tunnel) return
    this.#forget(tunnel, new AgentFault('refused', message))
    this.#emit({ type: 'tunnel-stopped', tunnel, message })
  }

  #worldChanged(): void {
    this.#failures = 0
    this.#session?.probe(PROBE_MS)
    this.#legs.probe(PROBE_MS)
    this.#retryNow?.()
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#closing
      const done = (): void => {
        cancel()
        signal.removeEventListener('abort', done)
        this.#retryNow = undefined
        resolve()
      }
      const cancel = this.#timers.after(ms, done)
      signal.addEventListener('abort', done)
      this.#retryNow = done
      if (signal.aborted) done()
    })
  }

  /** An error thrown by a listener must not end the session. */
  #emit(event: AgentEvent): void {
    try {
      this.#options.onEvent?.(event)
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error))
    }
  }
}

const libraryCommands = noCommands('this agent is part of another program, which takes no commands')

function asFault(error: unknown): AgentFault {
  if (error instanceof AgentFault) return error
  const text = error instanceof Error ? error.message : String(error)
  return new AgentFault('unreachable', text, { cause: error })
}
