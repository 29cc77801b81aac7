/** An agent: keeps its session with the server and its tunnels open, and serves their visitors. */
import type { Secret } from '../lib/secrets/secret.ts'
import { type Commands, noCommands, reportedCommands } from './agent-commands.ts'
import { AgentFault } from './agent-fault.ts'
import type { Introduction } from './auth-request.ts'
import type { SessionAgent } from './connector.ts'
import type { AgentEvent, Connected } from './events.ts'
import { forwardConnection, type Visitor } from './forward.ts'
import type { ExchangeWatcher } from './inspect/connection-watch.ts'
import { figuresWatch } from './inspect/figures-watch.ts'
import { PersistentSession, type PersistentSessionOptions } from './persistent-session.ts'
import type { ServerAddress } from './server-address.ts'
import { ServiceWatch } from './service-watch.ts'
import type { Session, SessionVisitor } from './session.ts'
import { type Connections, shareConnections } from './session-connections.ts'
import { watchSleepAndNetwork } from './sleep-and-network.ts'
import { systemTimers, type Timers } from './timers.ts'
import { AgentTunnel, type AgentTunnelPlan } from './tunnel.ts'
import { TunnelFigures } from './tunnel-figures.ts'

export interface AgentOptions extends Introduction {
  readonly server: ServerAddress
  /** PEM; without it the CAs of the machine are trusted. */
  readonly ca?: string | undefined
  readonly authtoken: Secret
  readonly version: string
  /** The most connections, each to another data plane of the server; `auto` by default. */
  readonly connections?: Connections | undefined
  readonly commands?: Commands
  readonly onEvent?: (event: AgentEvent) => void
  /** Whether to count requests, for a live view. */
  readonly isWatched?: boolean
  /** Gets requests and responses. */
  readonly inspector?: AgentInspector | undefined
  readonly timers?: Timers
  readonly random?: () => number
  readonly addresses?: () => string
  readonly dial?: SessionAgent['dial']
}

/** Observes what passes through tunnels. */
export interface AgentInspector {
  watch(tunnel: AgentTunnel, visitor: Visitor): ExchangeWatcher
}

export class Agent {
  readonly figures = new TunnelFigures()
  readonly #options: AgentOptions
  readonly #timers: Timers
  readonly #tunnels = new Set<AgentTunnel>()
  readonly #services: ServiceWatch
  readonly #first: PersistentSession
  /** A session at a second node, if the server has one, for pooled tunnels: visitors do not notice when either node dies. */
  readonly #second: PersistentSession
  /** What was reported last: an agent whose tunnels are all served by one session is online even if the other is not. */
  #isReportedOnline = false
  #isSecondReportedOnline = false
  #isClosed = false
  #running: Promise<unknown> | undefined

  constructor(options: AgentOptions) {
    this.#options = options
    this.#timers = options.timers ?? systemTimers
    this.#first = new PersistentSession(this.#firstOptions())
    this.#second = new PersistentSession(this.#secondOptions())
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
    const stopWatching = watchSleepAndNetwork({
      timers: this.#timers,
      ...(this.#options.addresses && { addresses: this.#options.addresses }),
      onChange: () => {
        for (const session of this.#sessions) session.probe()
      },
    })
    const first = this.#first.start({
      online: resolve,
      mayGoOn: (fault) => {
        if (patient && fault.mayPass) return true
        reject(fault)
        return false
      },
    })
    void this.#second.start()
    this.#running = first.finally(() => {
      stopWatching()
      this.#second.stop()
    })
    return promise
  }

  /** Opens a tunnel; resolves when it is online. It is opened again after every reconnect, until it is closed. */
  async open(plan: AgentTunnelPlan, { twin }: { twin?: AgentTunnel | undefined } = {}): Promise<AgentTunnel> {
    if (this.#isClosed) throw new AgentFault('closed', 'the agent was closed')
    const tunnel = new AgentTunnel(plan, { twin })
    this.#tunnels.add(tunnel)
    void this.#first.binds.bind(tunnel)
    await tunnel.ready
    return tunnel
  }

  /** Closes a tunnel and releases its address. Its open connections go on. */
  async closeTunnel(tunnel: AgentTunnel): Promise<void> {
    if (!this.#tunnels.has(tunnel)) return
    this.#forget(tunnel, new AgentFault('closed', 'the tunnel was closed'))
    const { main, second } = tunnel
    await Promise.all([main.got && this.#first.unbind(main.got.id), second.got && this.#second.unbind(second.got.id)])
    this.#check()
  }

  /** Closes all tunnels, and then each session with a GOAWAY. */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true
      for (const session of this.#sessions) session.stop()
      await Promise.all([...this.#tunnels].map((tunnel) => this.closeTunnel(tunnel)))
      await Promise.all(this.#sessions.map((session) => session.close()))
    }
    await this.#running
  }

  get #sessions(): readonly PersistentSession[] {
    return [this.#first, this.#second]
  }

  /** The session that is shown to users. */
  get #session(): Session | undefined {
    return this.#first.current ?? this.#second.current
  }

  #firstOptions(): PersistentSessionOptions {
    return {
      ...this.#sharedOptions(),
      connections: () => (this.#isSecondWanted() ? this.#shares.first : this.#connections),
      wants: () => true,
      bindOf: ({ main }) => main,
      mayStandBy: ({ welcome }) => this.#mayStandBy(welcome.planeCount),
      onStandby: ({ server, welcome: { region } }) => this.#emit({ type: 'standby', server, region }),
      avoided: () => this.#second.current?.server,
      notAt: () => '',
      isWanted: () => true,
      isSpare: () => false,
      onOnline: (session, { isResumed }) => this.#online(session, isResumed),
      onMoved: (session) => this.#moved(session),
      onOffline: (fault, retryMs) => this.#offline(fault, retryMs),
      onBound: (tunnel, isNew) => {
        if (isNew) this.#emit({ type: 'tunnel-online', tunnel })
        if (tunnel.isPooled && !tunnel.second.isOnline) void this.#second.binds.bind(tunnel)
        this.#check()
      },
      onRefused: (tunnel, fault) => {
        if (tunnel.wasOnline) this.#emit({ type: 'tunnel-refused', tunnel, fault })
        else this.#forget(tunnel, fault)
      },
      onStopped: (tunnel, message) => {
        this.#forget(tunnel, new AgentFault('refused', message))
        if (tunnel.second.got) void this.#second.unbind(tunnel.second.got.id)
        this.#emit({ type: 'tunnel-stopped', tunnel, message })
        this.#check()
      },
      onNodes: (addresses) => {
        this.#second.learn(addresses)
        this.#check()
      },
    }
  }

  #secondOptions(): PersistentSessionOptions {
    return {
      ...this.#sharedOptions(),
      connections: () => this.#shares.second,
      wants: ({ isPooled, wasOnline }) => isPooled && wasOnline,
      bindOf: ({ second }) => second,
      mayStandBy: () => false,
      avoided: () => this.#first.current?.server,
      notAt: () => this.#first.current?.welcome.nodeId ?? '',
      isWanted: () => this.#isSecondWanted(),
      isSpare: () => this.#pooled.every(({ main }) => main.isOnline),
      onOnline: (session) => {
        this.#isSecondReportedOnline = true
        this.#emit({ type: 'second-online', ...locationOf(session) })
        this.#check()
      },
      onMoved: () => this.#check(),
      onOffline: (fault, retryMs) => {
        if (this.#isSecondReportedOnline) this.#emit({ type: 'second-offline', fault })
        this.#isSecondReportedOnline = false
        if (!this.#first.current) this.#offline(fault, retryMs)
      },
      // The tunnel is served by the first session, which reports its state: no `onBound` and no `onRefused`.
      onStopped: (tunnel) => this.#second.binds.stopped(tunnel),
    }
  }

  #sharedOptions() {
    const { random = Math.random, commands = libraryCommands } = this.#options
    return {
      agent: this.#options,
      timers: this.#timers,
      random,
      tunnels: this.#tunnels,
      commands: reportedCommands(commands, (name, error) => this.#emit({ type: 'command', name, error })),
      onVisitor: (tunnel: AgentTunnel, visitor: SessionVisitor) => this.#serve(tunnel, visitor),
    }
  }

  get #connections(): Connections {
    return this.#options.connections ?? 'auto'
  }

  get #shares() {
    return shareConnections(this.#connections)
  }

  get #pooled(): AgentTunnel[] {
    return [...this.#tunnels].filter(({ isPooled }) => isPooled)
  }

  /** Only pooled tunnels have a second session: for an address of one tunnel alone, two sessions would compete. */
  #isSecondWanted(): boolean {
    const isPossible = this.#shares.second !== 0 && this.#first.nodes.hasOthers
    return isPossible && this.#pooled.some(({ wasOnline }) => wasOnline)
  }

  /** Whether there may be a standby at another node, besides a connection to each data plane. A second session replaces it. */
  #mayStandBy(planeCount: number): boolean {
    const isLeft = this.#connections === 'auto' || this.#connections > planeCount
    return isLeft && this.#first.nodes.hasOthers && !this.#isSecondWanted()
  }

  /** Called when something that decides about the second session may have changed. */
  #check(): void {
    if (!this.#isClosed) for (const session of this.#sessions) session.check()
  }

  #online(session: Session, isResumed: boolean): void {
    const connected = { ...locationOf(session), serverVersion: session.welcome.serverVersion }
    this.#emit(this.#isReportedOnline ? { type: 'moved', ...connected } : { type: 'online', ...connected, isResumed })
    this.#isReportedOnline = true
  }

  #moved(session: Session): void {
    this.#emit({ type: 'moved', ...locationOf(session), serverVersion: session.welcome.serverVersion })
  }

  #offline(fault: AgentFault, retryMs: number): void {
    const tunnels = [...this.#tunnels]
    const isServed = tunnels.length > 0 && tunnels.every(({ isOnline }) => isOnline)
    if (isServed && this.#isReportedOnline) return
    this.#isReportedOnline = false
    this.#emit({ type: 'offline', fault, retryMs })
  }

  #forget(tunnel: AgentTunnel, fault: AgentFault): void {
    this.#tunnels.delete(tunnel)
    for (const session of this.#sessions) session.binds.forget(tunnel)
    this.#services.forget(tunnel)
    tunnel.end(fault)
  }

  #serve(tunnel: AgentTunnel, { stream, header, done }: SessionVisitor): void {
    const visitor = { address: header.clientAddr, proto: header.proto }
    forwardConnection(stream, header, tunnel.plan.target, {
      figures: this.figures,
      now,
      watcher: this.#watcherOf(tunnel, visitor),
      onDialled: (fault, request) => {
        // Connections of a closed tunnel go on, but the state of its service no longer matters.
        if (!this.#tunnels.has(tunnel)) return
        if (fault) this.#services.failed(tunnel, fault, request)
        else this.#services.answered(tunnel)
      },
      onEnd: (end) => {
        done()
        this.#emit({ type: 'connection-closed', tunnel, end })
      },
    })
    this.#emit({ type: 'connection-opened', tunnel, visitor })
  }

  #watcherOf(tunnel: AgentTunnel, visitor: Visitor): ExchangeWatcher | undefined {
    const inspector = this.#options.inspector?.watch(tunnel, visitor)
    if (!this.#options.isWatched) return inspector
    return figuresWatch({
      ...{ figures: this.figures, tunnel: tunnel.plan.name, now, inspector },
      clock: () => this.#timers.now(),
      onChange: () => this.#emit({ type: 'request' }),
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

function locationOf({ server, welcome: { sessionId, clientId, region } }: Session): Connected {
  return { server, session: sessionId || clientId, region }
}

function now(): number {
  return performance.now()
}
