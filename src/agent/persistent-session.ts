/**
 * A session that an agent keeps alive: connects, reconnects when it ends, moves when the server asks for it, and keeps the
 * agent's tunnels bound.
 *
 * One thing: connecting, losing and moving are states of one session.
 */
import { Secret } from '../lib/secrets/secret.ts'
import type { StopTunnel } from '../link/wire/messages/command-messages.ts'
import type { Commands } from './agent-commands.ts'
import { AgentFault, asFault } from './agent-fault.ts'
import { Standby } from './agent-standby.ts'
import { retryDelay } from './backoff.ts'
import { Connector, type SessionAgent } from './connector.ts'
import { Legs } from './extra-connections.ts'
import type { ServerAddress } from './server-address.ts'
import { ServerNodes } from './server-nodes.ts'
import type { Session, SessionVisitor } from './session.ts'
import { SessionBinds, type SessionBindsOptions } from './session-binds.ts'
import type { Connections } from './session-connections.ts'
import type { Timers } from './timers.ts'
import type { AgentTunnel } from './tunnel.ts'

/** A session that lasted this long resets the count of failed attempts, in milliseconds. */
const STEADY_MS = 10_000

/** How long a server may take to answer a ping after this machine slept or its network changed, in milliseconds. */
const PROBE_MS = 3000

/** How long to wait before the next attempt to move while the former connection lasts, in milliseconds. */
const MOVE_AGAIN_MS = 1000

export interface PersistentSessionOptions
  extends Pick<SessionBindsOptions, 'tunnels' | 'wants' | 'bindOf' | 'onBound' | 'onRefused'> {
  readonly agent: SessionAgent
  readonly timers: Timers
  /** Returns a number from 0 up to, but not including, 1. */
  readonly random: () => number
  readonly commands: Commands
  /** How many connections the session may have now. */
  readonly connections: () => Connections
  /** Whether the session may have a standby at another node. */
  readonly mayStandBy: (session: Session) => boolean
  readonly onStandby?: (session: Session) => void
  /** Where the agent has another session, which should not be at the same node as this one. */
  readonly avoided: () => ServerAddress | undefined
  /** The node where the session must not be; `''` for none. */
  readonly notAt: () => string
  /** False while the session must not connect. */
  readonly isWanted: () => boolean
  /** Whether another session serves all that this one does. */
  readonly isSpare: () => boolean
  readonly onOnline: (session: Session, state: { readonly isResumed: boolean }) => void
  /** The session has a new connection, which the server asked for. */
  readonly onMoved: (session: Session) => void
  readonly onOffline: (fault: AgentFault, retryMs: number) => void
  readonly onVisitor: (tunnel: AgentTunnel, visitor: SessionVisitor) => void
  readonly onStopped: (tunnel: AgentTunnel, message: string) => void
  /** The server sent the addresses of its other nodes. */
  readonly onNodes?: (addresses: readonly string[]) => void
}

/** Decides about the first attempts to connect. */
interface FirstAttempts {
  readonly online: () => void
  /** Whether to try again after a fault, before the session was ever online. */
  readonly mayGoOn: (fault: AgentFault) => boolean
}

export class PersistentSession {
  readonly binds: SessionBinds
  readonly nodes: ServerNodes
  readonly #options: PersistentSessionOptions
  readonly #closing = new AbortController()
  readonly #connector: Connector
  #session: Session | undefined
  /** Earlier connections, which only keep their visitors. */
  readonly #former = new FormerSessions()
  #legs: Legs
  /** Takes over at once when the session is lost. */
  readonly #standby: Standby
  /** Resolves when another connection has taken over, or the session was given up. */
  #moved = Promise.withResolvers<void>()
  /** The move in progress, if any. */
  #moving: Promise<void> | undefined
  /** Identifies the session to resume. A new process starts without one, and gets a new session. */
  #clientId = ''
  #cookie = new Secret('')
  #failures = 0
  /** Ends the wait for the next attempt. */
  #retryNow: (() => void) | undefined
  /** Whether it is waiting to be wanted. */
  #isIdle = false
  #running: Promise<void> | undefined

  constructor(options: PersistentSessionOptions) {
    this.#options = options
    const { agent, timers, random, tunnels, wants, bindOf, onBound, onRefused } = options
    this.nodes = new ServerNodes(agent.server, random)
    this.#connector = this.#newConnector()
    this.#legs = this.#newLegs()
    this.#standby = this.#newStandby()
    this.binds = new SessionBinds({
      ...{ timers, tunnels, wants, bindOf, onRefused },
      session: () => this.#session,
      hasFormer: () => this.#former.all.length > 0,
      onBound: (tunnel, isNew, at) => {
        if (at === this.#session && !this.#legs.isActive) this.#legs.follow(at)
        onBound?.(tunnel, isNew, at)
      },
    })
  }

  /** The connection of the session, while it is online. */
  get current(): Session | undefined {
    return this.#session
  }

  /** Connects, and stays connected until `close`. */
  start(first: FirstAttempts = { online() {}, mayGoOn: () => true }): Promise<void> {
    this.#running = this.#run(first)
    return this.#running
  }

  /** Called when something that decides whether and where the session should be may have changed. */
  check(): void {
    this.#legs.refit()
    const { isWanted, isSpare, notAt } = this.#options
    const session = this.#session
    if (!session) {
      if (this.#isIdle && isWanted()) this.#retryNow?.()
      return
    }
    this.#standby.check()
    const isAtLeftNode = notAt() !== '' && session.welcome.nodeId === notAt()
    if ((isAtLeftNode || !isWanted()) && isSpare()) this.#giveUp(session)
  }

  /** Another session of the agent got the addresses of nodes. */
  learn(addresses: readonly string[]): void {
    // While online, the list of its own node counts.
    if (this.#session) return
    this.nodes.announced(addresses)
    this.#retryNow?.()
  }

  /** This machine slept, or its network changed. */
  probe(): void {
    this.#failures = 0
    this.#session?.probe(PROBE_MS)
    this.#legs.probe(PROBE_MS)
    this.#standby.probe(PROBE_MS)
    this.#retryNow?.()
  }

  /** Releases a bind at the current and at former connections. */
  async unbind(id: string): Promise<void> {
    await Promise.all([this.#session?.unbind(id), ...this.#former.all.map((session) => session.unbind(id))])
  }

  /** Makes no further attempts; `close` does the rest. */
  stop(): void {
    this.#closing.abort()
  }

  /** Ends the session with a GOAWAY. */
  async close(): Promise<void> {
    const session = this.#session
    this.stop()
    await Promise.all([session?.close(), this.#former.close(), this.#legs.close(), this.#standby.close()])
    await this.#running
  }

  async #run(first: FirstAttempts): Promise<void> {
    let wasOnline = false
    const { signal } = this.#closing
    const { random, isWanted } = this.#options
    while (!signal.aborted) {
      if (!isWanted()) {
        this.#isIdle = true
        await this.#wait()
        this.#isIdle = false
        continue
      }
      const { fault, lastedMs } = await this.#live(() => {
        wasOnline = true
        first.online()
      })
      if (!wasOnline && !first.mayGoOn(fault)) return
      if (signal.aborted) return
      this.#failures = lastedMs >= STEADY_MS ? 0 : this.#failures + 1
      if (this.#standby.isReady) {
        this.#options.onOffline(fault, 0)
        // If one connection fell silent, the standby may have too.
        if (fault.isSilence) this.#standby.probe(PROBE_MS)
        continue
      }
      const isRefused = !fault.mayPass
      const retryMs = retryDelay({ failures: this.#failures, isRefused, random })
      this.#options.onOffline(fault, retryMs)
      await this.#wait(retryMs)
    }
  }

  /** Runs one session to its end, over any number of connections; resolves with why it ended or could not begin, and its duration. */
  async #live(online: () => void): Promise<{ fault: AgentFault; lastedMs: number }> {
    const standby = this.#standby.take()
    let session: Session
    try {
      session = standby ?? (await this.#connector.connect(this.nodes.all({ avoided: this.#options.avoided() }), {}))
    } catch (error) {
      return { fault: asFault(error), lastedMs: 0 }
    }
    const { timers } = this.#options
    const startedAt = timers.now()
    const { clientId, cookie } = session.welcome
    const isResumed = clientId === this.#clientId
    this.#clientId = clientId
    this.#cookie = cookie
    const begun = standby?.begin({ isMoving: false })
    this.#session = session
    if (begun) {
      // Binds are sent together with the request to begin, since visitors are waiting.
      void this.binds.bindAll()
      await begun
    }
    if (!begun || !session.isEnded) {
      this.#use(session)
      this.#options.onOnline(session, { isResumed })
      if (!begun) void this.binds.bindAll()
      online()
      if (session.isAskedToMove) this.#moveIfAsked()
    }
    const fault = await this.#lasts(session)
    this.#session = undefined
    void this.#legs.close()
    this.binds.offline()
    return { fault, lastedMs: timers.now() - startedAt }
  }

  /** Resolves when the connection has ended, or else the last one that took over from it. */
  async #lasts(session: Session): Promise<AgentFault> {
    for (let current = session; ; ) {
      const fault = await Promise.race([current.ended, this.#moved.promise])
      if (!this.#session) return new AgentFault('lost', 'the session was given up')
      // A move in progress may have got another connection just in time.
      if (fault) await this.#moving
      if (fault && this.#session === current) return fault
      current = this.#session ?? current
    }
  }

  /** Opens another connection, which takes over from the current one. Tries again for as long as the current one lasts. */
  async #move(): Promise<void> {
    const { signal } = this.#closing
    const { isSpare } = this.#options
    for (;;) {
      const from = this.#session
      if (!from?.isAskedToMove || from.isEnded || signal.aborted) return
      const to = await this.#another(from)
      if (!to) {
        // No other node accepts the session, and a node that is about to stop waits for it to leave.
        if (from.isNodeLeaving && from === this.#session && isSpare()) this.#giveUp(from)
        else await this.#waitFor(from, MOVE_AGAIN_MS)
      } else if (signal.aborted || to.welcome.clientId !== this.#clientId) {
        // A server that does not know the session cannot give it its addresses while the former connection has them.
        await to.close()
        return
      } else this.#takeOver(from, to)
    }
  }

  /** Resolves after `ms`, or when the connection has ended. */
  #waitFor(session: Session, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.timers.after(ms, resolve)
      void session.ended.then(() => {
        cancel()
        resolve()
      })
    })
  }

  #takeOver(from: Session, to: Session): void {
    this.#cookie = to.welcome.cookie
    this.#use(to)
    this.#notifyMoved()
    this.binds.cancelRebinds()
    this.#options.onMoved(to)
    const bound = this.#boundAt(to, from)
    // To close `from` ends its legs at that node too, so their visitors are waited for first.
    const isOtherNode = to.welcome.nodeId !== from.welcome.nodeId
    const legs = this.#legs
    this.#former.add(from, isOtherNode ? bound.then(() => legs.leftNode(from.welcome.nodeId)) : bound)
    void bound.then(() => {
      if (this.#session === to) legs.follow(to)
    })
  }

  /** Ends the session after its last visitor. The next session will be a new one. */
  #giveUp(session: Session): void {
    this.#session = undefined
    this.#clientId = ''
    this.#cookie = new Secret('')
    const legs = this.#legs
    this.#legs = this.#newLegs()
    this.#former.add(
      session,
      this.binds.giveUp(session).then(() => legs.leave()),
    )
    this.#notifyMoved()
  }

  #notifyMoved(): void {
    this.#moved.resolve()
    this.#moved = Promise.withResolvers()
  }

  #use(session: Session): void {
    this.#session = session
    this.nodes.isAt(session.server)
    // If the node is leaving, its addresses came with the request to move.
    if (!session.isNodeLeaving) this.#learnNodes(session.welcome.nodeAddresses)
    this.#standby.check()
  }

  #learnNodes(addresses: readonly string[]): void {
    this.nodes.announced(addresses)
    this.#options.onNodes?.(addresses)
    this.#standby.hasNews()
  }

  /** Resolves when all tunnels are online at `to`; until then `from` may serve those that are missing. */
  async #boundAt(to: Session, from: Session): Promise<void> {
    const { ids } = this.binds
    await this.binds.bindAll()
    const isMissing = (): boolean => !this.binds.areAllOnline
    while (this.#session === to && !from.isEnded && isMissing()) await this.#waitFor(from, MOVE_AGAIN_MS)
    // Planes of one node know of each other's binds. The former node sends visitors until the binds are released there.
    if (to.welcome.nodeId !== from.welcome.nodeId) await Promise.all(ids.map((id) => from.unbind(id)))
  }

  /** Moves if the server has asked for it. */
  #moveIfAsked(): void {
    this.#moving ??= this.#move().finally(() => {
      this.#moving = undefined
    })
  }

  /** Another connection for the session, to take over from `from`; undefined if there is none now. */
  async #another(from: Session): Promise<Session | undefined> {
    if (!from.isNodeLeaving) return this.#connector.connect([from.server], { isMoving: true }).catch(() => undefined)
    const standby = this.#standby.take()
    if (standby) {
      const { signal } = this.#closing
      const abort = (): void => void standby.close()
      signal.addEventListener('abort', abort)
      await standby.begin({ isMoving: true })
      signal.removeEventListener('abort', abort)
      if (!standby.isEnded) return standby
    }
    const servers = this.nodes.awayFrom(from.server, { avoided: this.#options.avoided() })
    return this.#connector.connect(servers, { isMoving: true }).catch(() => undefined)
  }

  #newConnector(): Connector {
    const { agent, commands, timers, notAt } = this.#options
    return new Connector({
      ...{ agent, commands, timers, closing: this.#closing.signal },
      identity: () => ({ clientId: this.#clientId, cookie: this.#cookie }),
      notAt: ({ leg, isStandby }) => {
        if (leg) return ''
        return isStandby ? (this.#session?.welcome.nodeId ?? '') : notAt()
      },
      onVisitor: (session, visitor) => this.#serve(session, visitor),
      onStopTunnel: (session, stop) => {
        // A tunnel that a former connection stops serving is served by the current one.
        if (session === this.#session) this.#stopTunnel(stop)
      },
      onMove: () => this.#moveIfAsked(),
      onNodes: (addresses) => this.#learnNodes(addresses),
    })
  }

  #newStandby(): Standby {
    const { timers, random, mayStandBy, avoided, onStandby } = this.#options
    return new Standby({
      ...{ timers, random },
      onReady: (session) => onStandby?.(session),
      isWanted: () => this.#session !== undefined && mayStandBy(this.#session),
      sessionId: () => this.#clientId,
      notAt: () => this.#session?.welcome.nodeId ?? '',
      connect: (onMove) => {
        const from = this.#session?.server ?? this.#options.agent.server
        return this.#connector.connect(this.nodes.awayFrom(from, { avoided: avoided() }), { isStandby: true, onMove })
      },
    })
  }

  #newLegs(): Legs {
    const { agent, connections, timers, random } = this.#options
    return new Legs({
      ...{ connections, timers, random },
      // Only the node that has the session accepts legs.
      connect: (leg) => {
        const server = this.#session?.server ?? agent.server
        return this.#connector.connect([server], { leg, onMove: leg.onMove })
      },
    })
  }

  #serve(session: Session, waiting: SessionVisitor): void {
    const { stream, header, done } = waiting
    const tunnel = this.binds.find(header.id)
    if (tunnel) {
      this.#options.onVisitor(tunnel, waiting)
      return
    }
    // Over a leg, visitors may come before the answer to the bind, which comes over the first connection.
    const binding = [session, this.#session].find((each) => each?.isBinding)
    if (binding && !stream.isClosed) binding.hold(waiting)
    else {
      stream.reset('stream_refused')
      done()
    }
  }

  #stopTunnel({ id, message }: StopTunnel): void {
    const tunnel = this.binds.find(id)
    if (tunnel) this.#options.onStopped(tunnel, message)
  }

  /** Waits for `ms`, if given, or until `#retryNow` or the end. */
  #wait(ms?: number): Promise<void> {
    return new Promise((resolve) => {
      const { signal } = this.#closing
      const done = (): void => {
        cancel()
        signal.removeEventListener('abort', done)
        this.#retryNow = undefined
        resolve()
      }
      const cancel = ms === undefined ? () => {} : this.#options.timers.after(ms, done)
      signal.addEventListener('abort', done)
      this.#retryNow = done
      if (signal.aborted) done()
    })
  }
}

/** How many there may be; beyond that, the oldest is closed. A server drains at most a few at the same time. */
const MAX_FORMER = 8

class FormerSessions {
  readonly #sessions = new Set<Session>()

  get all(): readonly Session[] {
    return [...this.#sessions]
  }

  /** Another connection takes over from this one; `bound` resolves when all tunnels are served there. */
  add(session: Session, bound: Promise<unknown>): void {
    this.#sessions.add(session)
    void session.ended.then(() => this.#sessions.delete(session))
    const [oldest] = this.#sessions
    if (this.#sessions.size > MAX_FORMER && oldest) void oldest.close()
    void bound.then(() => session.leave())
  }

  async close(): Promise<void> {
    await Promise.all([...this.#sessions].map((session) => session.close()))
  }
}
