/** Everything online, through any listener: sessions and their tunnels, and who may have which address. */
import { setTimeout as pause } from 'node:timers/promises'
import { SharedTurns } from '../../lib/limits/shared-turns.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { type Control, LOOKUP_MS } from '../../link/planes/control-link.ts'
import type { PlaneCalls } from '../../link/planes/plane-calls.ts'
import type { BindMessage } from '../../link/wire/messages/bind.ts'
import type { LabelMessage } from '../../link/wire/messages/tunnel-messages.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import { shared } from '../../model/shared.ts'
import { type AgentPortRange, AgentTcpPorts } from './agent-tcp-ports.ts'
import { type Binding, type Bound, bind, inTurn } from './bind-tunnel.ts'
import type { AgentCredential, BindRefusal } from './interfaces.ts'
import type { LabelIds } from './label-ids.ts'
import { LegTable } from './leg-table.ts'
import type { Registry } from './registry.ts'
import type { LiveSession, Tunnel } from './session-types.ts'
import { StandbyTable } from './standby-table.ts'
import { startLabelTunnel } from './tunnel-labels.ts'
import { WatchedRequests } from './watched-requests.ts'

export interface OnlineOptions extends Omit<Binding, 'tcpPorts' | 'stopped' | 'turns'> {
  readonly tcpPorts: AgentPortRange
  /** Whether other nodes are on the same database. */
  readonly isClustered?: boolean
}

/** How many agents are asked to move at once, and the pause before the next, in milliseconds: each begins a handshake. */
const MOVED_TOGETHER = 50
const MOVES_APART_MS = 20

/** Binds of a credential that begin at once, whatever others do. */
const ALWAYS = 2

/** In a cluster one transaction of the database claims many addresses, so that more must be under way. */
const CLUSTER_TIMES = 4

/** Most binds that wait for their turn, and for how long, in milliseconds: as long as the answer to one may take. */
const MAX_WAITING = 10_000
const WAIT_MS = 15_000

/** Most ids of stopped tunnels that are kept; the oldest are forgotten first. */
const MAX_STOPPED = 10_000

/** How long an agent that comes back waits until its former session has ended, in milliseconds. */
const RETURNING_MS = 3000

const notAdmitted = 'an IP restriction no longer admits its address'

export class Online {
  readonly registry: Registry
  /** Legs of sessions that are online elsewhere. */
  readonly legs: LegTable
  /** Standbys of agents whose sessions are at other nodes. */
  readonly standbys: StandbyTable
  /** Requests, as reported by the edge. */
  readonly requests = new WatchedRequests()
  readonly region: string
  readonly domain: string
  readonly #log: Logger
  readonly #binding: Binding
  /** Tunnels that the server stopped; their agents may have missed that, and must not start them again. */
  readonly #stopped = new Set<string>()
  /** Sessions, legs and standbys that were asked to move. */
  readonly #moveRequested = new Set<{ readonly isEnded: boolean }>()
  /** Rounds of telling agents about other nodes. */
  #nodesSent = 0
  readonly #control: Control

  constructor({ tcpPorts, isClustered = false, ...given }: OnlineOptions) {
    const { control, registry } = given
    this.#control = control
    this.registry = registry
    this.legs = new LegTable({ control, registry })
    this.standbys = new StandbyTable(async (id) => (await this.currentCredential(id)) !== undefined)
    this.region = registry.region
    this.domain = given.domain
    this.#log = given.log
    this.#binding = {
      ...given,
      tcpPorts: new AgentTcpPorts(tcpPorts, given.random),
      stopped: this.#stopped,
      turns: new SharedTurns({
        ...{ atOnce: shared.binds.most * (isClustered ? CLUSTER_TIMES : 1), always: ALWAYS },
        ...{ waiting: MAX_WAITING, waitMs: WAIT_MS },
      }),
    }
  }

  /** A session's credential, looked up again: its ACL may have changed, or it may be gone. Rejects when the store is down. */
  currentCredential(id: string): Promise<AgentCredential | undefined> {
    return this.#control.ask('currentCredential', { id }, { withinMs: LOOKUP_MS })
  }

  /** Gives a session an address and serves it, or says why not. */
  async bind(session: LiveSession, request: BindMessage): Promise<Bound | BindRefusal> {
    const bound = await bind(session, request, this.#binding)
    if ('tunnel' in bound) this.#logStart(bound.tunnel, { url: bound.url })
    return bound
  }

  /** Starts a tunnel with labels, for tunnel groups, or says why not. */
  async startLabels(session: LiveSession, request: LabelMessage, labelIds: LabelIds): Promise<Tunnel | BindRefusal> {
    const start = () => startLabelTunnel(session, request, labelIds, this.#binding)
    const tunnel = await inTurn(session, this.#binding.turns, start)
    if ('session' in tunnel) this.#logStart(tunnel, { labels: tunnel.labels })
    return tunnel
  }

  /** Ends a tunnel at the request of its session. */
  unbind(tunnel: Tunnel): void {
    this.registry.removeTunnel(tunnel)
    this.#log.info({ session: tunnel.session.id, tunnel: tunnel.id }, 'tunnel stopped')
  }

  /** Ends a tunnel and tells its agent why, if possible; false when it is not online. */
  stopTunnel(tunnelId: string, why: { readonly message: string; readonly ngrok: number }): boolean {
    const tunnel = this.registry.liveTunnel(tunnelId)
    if (!tunnel) return false
    // Some agents miss the message after they reconnected, so the tunnel is removed here and may not come back.
    this.noteStopped(tunnelId)
    this.#control.tell('tunnelStopped', { tunnelId })
    this.registry.removeTunnel(tunnel)
    tunnel.session.tellStopped(tunnel, why)
    this.#log.info({ session: tunnel.session.id, tunnel: tunnelId, reason: why.message }, 'tunnel stopped')
    return true
  }

  /** Notes a tunnel that was stopped, perhaps at another data plane: its agent may not start it here. */
  noteStopped(tunnelId: string): void {
    this.#stopped.add(tunnelId)
    const [oldest] = this.#stopped
    if (this.#stopped.size > MAX_STOPPED && oldest !== undefined) this.#stopped.delete(oldest)
  }

  /**
   * For a session that was elsewhere and begins here: ends its former connection, wherever that is, unless the session is
   * moving. Resolves with the label tunnels that it had; rejects when the lookup fails.
   */
  beginning(sessionId: string, how: { readonly isMoving: boolean }): Promise<readonly FormerLabelTunnel[]> {
    return this.#control.ask('returning', { sessionId, ...how }, { withinMs: RETURNING_MS })
  }

  /** The same for an agent that reconnects by itself; a failed lookup does not keep the agent out. */
  async returning(sessionId: string, how: { readonly isMoving: boolean }): Promise<readonly FormerLabelTunnel[]> {
    try {
      return await this.beginning(sessionId, how)
    } catch (error) {
      // The agent is let in all the same, but its label tunnels get new ids.
      this.#log.warn(
        { session: sessionId, error },
        'cannot look up the former tunnels of a returning agent; its label tunnels get new ids',
      )
      return []
    }
  }

  /** D64: ends sessions from addresses that a changed restriction no longer admits. */
  dropUnadmitted(admits: (peer: { readonly ip: string }) => boolean): void {
    for (const session of this.registry.liveSessions()) {
      if (!admits({ ip: session.present.ip })) session.end(notAdmitted)
    }
    for (const other of [...this.legs.all, ...this.standbys.all]) if (!admits({ ip: other.ip })) other.end(notAdmitted)
  }

  /** Ends all that was let in with a credential that is no longer valid (D25). */
  endSessionsOf({ credentialId, reason }: Parameters<PlaneCalls['endSessionsOf']>[0]): void {
    for (const each of this.#all()) if (each.credentialId === credentialId) each.end(reason)
  }

  /**
   * Asks every agent that supports it to reconnect, which must lead elsewhere by now: to one of these nodes, if any are given,
   * since this node is about to stop. A few agents at a time.
   */
  async tellToMove(nodes?: readonly string[]): Promise<void> {
    // Standbys first and all at once, so that none becomes a session that is not asked.
    for (const standby of this.standbys.all) if (standby.tellToMove()) this.#moveRequested.add(standby)
    for (const session of this.registry.liveSessions()) {
      if (session.isEnded || session.tellToMove?.(nodes) !== true) continue
      this.#moveRequested.add(session)
      if (this.#moveRequested.size % MOVED_TOGETHER === 0) await pause(MOVES_APART_MS)
    }
    for (const leg of this.legs.all) if (!leg.isEnded && this.legs.moveAway(leg)) this.#moveRequested.add(leg)
  }

  /** Tells every agent that supports it where other nodes accept agents; a few agents at a time. */
  async tellNodes(addresses: readonly string[]): Promise<void> {
    const round = ++this.#nodesSent
    let sent = 0
    for (const session of this.registry.liveSessions()) {
      // A later list has replaced this one.
      if (round !== this.#nodesSent) return
      if (session.isEnded) continue
      session.tellNodes?.(addresses)
      if (++sent % MOVED_TOGETHER === 0) await pause(MOVES_APART_MS)
    }
  }

  /** Sessions, legs and standbys that were asked to move and are still here. */
  get moving(): number {
    let count = 0
    for (const session of this.#moveRequested) if (!session.isEnded) count++
    return count
  }

  /** Whether no agent is here. */
  get isEmpty(): boolean {
    return this.#all().length === 0
  }

  /** Ends every session; the listeners must be closed before. */
  endAll(reason: string): void {
    for (const each of this.#all()) each.end(reason)
  }

  #all() {
    return [...this.registry.liveSessions(), ...this.legs.all, ...this.standbys.all]
  }

  /** Numbers for metrics; bytes are those of all sessions since the start. */
  get load() {
    const totals = { ...this.legs.load }
    totals.bytesIn += this.registry.past.bytesIn
    totals.bytesOut += this.registry.past.bytesOut
    for (const session of this.registry.liveSessions()) {
      totals.connections += session.connections
      totals.bytesIn += session.bytesIn
      totals.bytesOut += session.bytesOut
    }
    return { ...this.registry.counts, ...totals }
  }

  #logStart({ id, session }: Tunnel, fields: Readonly<Record<string, unknown>>): void {
    this.#log.info({ session: session.id, tunnel: id, ...fields }, 'tunnel started')
  }
}
