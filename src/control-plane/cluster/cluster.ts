/**
 * This node among others on one database: its lease, what it has online for all to see, and what others have.
 *
 * One thing: what begins, runs and ends with the lease of this node.
 */

import type { AddressHolder, ServedAnswer } from '../../link/planes/ask-node.ts'
import type { NameChallenge, OtherNode, PlaneCalls, Reservation } from '../../link/planes/plane-calls.ts'
import { Refusal } from '../../model/errors.ts'
import type { ExchangeAsk } from '../../model/exchange.ts'
import type { FormerLabelTunnel } from '../../model/former-labels.ts'
import type { ClusterMetrics } from '../../model/plane-metrics.ts'
import type { PoolDifference } from '../../model/pool.ts'
import type { Presence } from '../../model/presence.ts'
import type { AllNodes } from '../directory/directory.ts'
import { AskedTogether } from '../store/asked-together.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
import type { StoredHolder, StoredNode, StoredOnlineSession, StoredOnlineTunnel } from '../store/online-rows.ts'
import type { Reader } from '../store/reader.ts'
import type { Period, TrafficPoint } from '../traffic/traffic-counts.ts'
import { LookUps } from './answer-lookups.ts'
import { answerCall, type NodeServices, servicesOf } from './cluster-calls.ts'
import { clusterPresence } from './cluster-presence.ts'
import { decideReservation } from './decide-address.ts'
import { LostNodes } from './lost-nodes.ts'
import { LEASE_MS, type NodeFacts, NodeLease } from './node-lease.ts'
import { type HeldHere, type KeptTunnel, NODE_LEAVES, OnlineRows, SESSION_MOVED } from './write-online-rows.ts'

/** What the cluster needs of this node's own data planes. */
interface Here extends NodeServices {
  readonly held: HeldHere
  /** How many sessions are online here. */
  sessions(): number
  /** Tells the cluster of everything that is online here. */
  announce(): void
  /** Stops a tunnel whose address another node holds by now. */
  stopTaken(tunnelId: string): void
  nodesChanged(others: readonly OtherNode[]): void
  nodeGone(nodeId: string): void
  /** Sends a call to another node. */
  callNode(nodeId: string, value: unknown): Promise<unknown>
  /** Asks a data plane of another node which places that node still serves; never rejects. */
  askServed(node: OtherNode, holders: readonly AddressHolder[]): Promise<ServedAnswer>
}

interface ClusterOptions extends Pick<ControlTools, 'store' | 'sealer' | 'log'> {
  readonly node: Omit<NodeFacts, 'sessions' | 'isLeaving'>
  readonly here: Here
  /** Instead of the usual time between renewals, for tests. */
  readonly renewMs?: number
  /** A clock that never jumps, in milliseconds, for tests. */
  readonly now?: () => number
}

/** A session that some node has, or had. */
interface FormerSession {
  readonly session: StoredOnlineSession | undefined
  readonly tunnels: readonly StoredOnlineTunnel[]
}

/** How long another node may take to end a session whose agent has come here, in milliseconds. */
const END_MS = 1000

/**
 * How long an unreachable node is not asked again to end sessions, in milliseconds: when a node dies, all its agents come
 * back at about the same time.
 */
const UNREACHED_MS = 1000

/** How long another node may take to answer a certificate challenge, in milliseconds: an order waits for it. */
const CHALLENGE_MS = 5000

/** How long the database may take to tell where a session was, in milliseconds. */
const RETURN_MS = 1500

/** Rows that are read at once. */
const READ_TOGETHER = 1000

export class Cluster {
  readonly lookUps: LookUps
  readonly #options: ClusterOptions
  readonly #rows: OnlineRows
  readonly #lease: NodeLease
  /** What sessions had when they were last written, by id. */
  readonly #former: AskedTogether<string, FormerSession>
  /** When other nodes could not be reached, by id. */
  readonly #unreached = new Map<string, number>()
  readonly #lost: LostNodes
  #others: readonly OtherNode[] = []
  /** How many nodes have a lease that runs. */
  #liveCount = 1
  /** Set when this node drains; resolves with whether other nodes know that. */
  #leaving: Promise<boolean> | undefined

  constructor(options: ClusterOptions) {
    const { store, sealer, log, node, here } = options
    const nodeId = node.id
    this.#options = options
    // Agents that come back wait for this, and are let in even when it fails.
    this.#former = new AskedTogether((ids) =>
      store.read((reader) => formerSessions(reader, ids), { withinMs: RETURN_MS }),
    )
    this.#lost = new LostNodes({
      ask: (lost, holders) => here.askServed(lost, holders),
      now: options.now ?? (() => performance.now()),
    })
    this.lookUps = new LookUps({ store, sealer, nodeId, log, introduce: (ids) => this.#introduce(ids) })
    this.#rows = new OnlineRows({
      ...{ store, sealer, nodeId, log, held: here.held },
      onLeaseLost: () => void this.#lease.renew(),
      isShaken: () => this.#lease.isShaken,
      areFree: (holders) => this.#lost.areFree(holders),
      // On a node that leaves, what has moved away stays until its agent gives it up.
      onAddressTaken: ({ tunnelId }) => {
        if (!this.#leaving) here.stopTaken(tunnelId)
      },
      onSessionTaken: (sessionId) => {
        if (!this.#leaving) void here.endSession(sessionId)
      },
    })
    this.#lease = new NodeLease({
      ...{ store, log },
      facts: () => ({ ...node, sessions: here.sessions(), isLeaving: this.#leaving !== undefined }),
      onBegun: () => here.announce(),
      onNodes: (nodes, state) => this.#use(nodes, state),
      isGone: (nodeId) => this.#lost.isGone(nodeId),
      ...(options.renewMs !== undefined && { renewMs: options.renewMs }),
    })
  }

  /** Takes what the directory of this node reports for all nodes. */
  get allNodes(): AllNodes {
    return this.#rows
  }

  /** The other nodes whose leases run, and those that may be about to renew theirs. */
  get others(): readonly OtherNode[] {
    return this.#others
  }

  /** The nodes that data planes reach: those that have lost their lease too, since some still serve what they had. */
  get reached(): readonly OtherNode[] {
    const ids = new Set(this.#others.map(({ nodeId }) => nodeId))
    return [...this.#others, ...this.#lost.all.filter(({ nodeId }) => !ids.has(nodeId))]
  }

  /** For the metrics. */
  get metrics(): ClusterMetrics {
    const { ageMs } = this.#lease
    return {
      nodes: this.#liveCount,
      isLeaseHeld: ageMs < LEASE_MS,
      leaseAgeMs: ageMs,
      waitingRows: this.#rows.waiting,
    }
  }

  /** Takes the lease; what is online here counts from now on. */
  start(): Promise<void> {
    return this.#lease.start()
  }

  /** Marks this node as draining and tells the others. */
  async leaving(): Promise<void> {
    this.#leaving ??= Promise.resolve().then(() => this.#tellLeaving())
    await this.#leaving
  }

  /** Whether this node drains, and other nodes know that. */
  async isKnownToLeave(): Promise<boolean> {
    return (await this.#leaving) ?? false
  }

  /** Whether a session is or was lately at this node; while the database is down, agents of other sessions must wait. */
  knows(sessionId: string): boolean {
    return this.#rows.hasSeen(sessionId)
  }

  /** Renews the lease now and reads which nodes are there; resolves with whether that worked. */
  renew(): Promise<boolean> {
    return this.#lease.renew()
  }

  /** Marks every row that an earlier control plane of this node wrote, so that stale ones are written anew. */
  async reconcile(): Promise<void> {
    const { store, node } = this.#options
    for (const kind of ['sessions', 'tunnels', 'places'] as const) {
      let after = ''
      for (;;) {
        const keys = await store.read(({ online }) => online.keysAt(node.id, kind, { after, limit: READ_TOGETHER }))
        for (const key of keys) this.#note(kind, key)
        const last = keys.at(-1)
        if (last === undefined) break
        after = last
      }
    }
  }

  /** Stops for another control plane of this node to take over; what is online still counts. */
  async pause(): Promise<void> {
    await this.#rows.written()
    await this.#rows.close()
    await this.#lease.pause()
  }

  /** Stops and gives up the lease: nothing online here counts any more. */
  async close(): Promise<void> {
    await this.pause()
    await this.#lease.stop()
  }

  #note(kind: 'sessions' | 'tunnels' | 'places', key: string): void {
    if (kind === 'sessions') this.#rows.sessionChanged(key)
    else if (kind === 'tunnels') this.#rows.tunnelChanged(key)
    else this.#rows.addressChanged(key)
  }

  /** What is online at all nodes. */
  presence(): Presence {
    return clusterPresence({
      store: this.#options.store,
      written: () => this.#rows.noted(),
      command: (sessionId, command) => this.#command(sessionId, command),
      own: { id: this.#options.node.id, sessions: () => this.#options.here.sessions() },
    })
  }

  /** Sends a data plane the ports that tunnels at other nodes have. */
  ports(send: (change: Parameters<PlaneCalls['distantPorts']>[0]) => Promise<unknown>): Followed {
    return this.lookUps.ports(send)
  }

  /** Ends sessions here whose agents have come back at another node; the feed tells of them. */
  moved(): Followed {
    return {
      // Announcing finds the sessions that are elsewhere by now.
      load: async () => this.#options.here.announce(),
      apply: async (changes: readonly Change[]) => {
        for (const change of changes) {
          if (change.kind === SESSION_MOVED && !this.#rows.causedMove(change)) this.#recheck(change.id)
        }
        if (changes.some(({ kind, id }) => kind === NODE_LEAVES && id !== this.#options.node.id)) await this.renew()
      },
    }
  }

  /** For an agent that comes back here: ends its session at the node that has it, and returns the label tunnels it had. */
  async returning(sessionId: string, isMoving: boolean): Promise<readonly FormerLabelTunnel[]> {
    const { log } = this.#options
    const { session, tunnels } = await this.#former.ask(sessionId)
    const at = session && this.#others.find(({ nodeId }) => nodeId === session.nodeId)
    // An agent that moves keeps its tunnels at its former node until they are online here. That node has told it to move, though
    // its control process may be too late to say that it leaves.
    if (at && !isMoving && !this.#isUnreached(at.nodeId)) {
      const ended = this.#servicesAt(at.nodeId).endSession(sessionId)
      // A node that cannot be reached learns it from the feed when the places of the session are claimed here.
      const late = new Promise<void>((resolve) => setTimeout(resolve, END_MS).unref())
      await Promise.race([ended, late]).catch((err: unknown) =>
        log.debug({ err, node: at.name, session: sessionId }, 'another node failed to end a session that moved here'),
      )
    }
    return tunnels.flatMap(({ id, fields }) => {
      const { tunnel, startedAt } = JSON.parse(fields) as KeptTunnel // written by a node from one
      return tunnel.labels ? [{ id, startedAt, labels: tunnel.labels }] : []
    })
  }

  /** Asks the agents that hold a place at other nodes for a sign of life; true when the place is free afterwards. */
  async proveAlive(place: string): Promise<boolean> {
    const before = await this.#holdersOf(place)
    // Such a node was asked before the place was refused.
    if (before.some(({ nodeId }) => this.#lost.has(nodeId))) return false
    const asked = before.map(({ nodeId, sessionId }) => this.#servicesAt(nodeId).proveAlive(sessionId))
    try {
      await Promise.all(asked)
    } catch (err) {
      this.#options.log.debug({ err, place }, 'cannot check whether an agent at another node is alive')
      return false
    }
    if (before.length === 0) return true
    const former = new Set(before.map(({ sessionId }) => sessionId))
    return !(await this.#holdersOf(place)).some(({ sessionId }) => former.has(sessionId))
  }

  /** Why a holder at another node blocks a claim; undefined when none does. */
  async whyTaken(reservation: Reservation): Promise<PoolDifference | undefined> {
    const { store, node } = this.#options
    const [row] = await store.read(({ online }) => online.holders([reservation.place]))
    const stored = row && { ...row, holders: row.holders.map((each) => ({ ...each, isAlive: true, isLost: false })) }
    const decision = stored && decideReservation({ ...reservation, nodeId: node.id, ownerId: '' }, stored)
    return decision?.isGranted === false ? decision.difference : undefined
  }

  /** Whether a claim that was just refused may be made again; see `OnlineRows`. */
  isFreed(reservation: Reservation): Promise<boolean> {
    return this.#rows.isFreed(reservation)
  }

  /** Answers a call of another node. */
  answer(value: unknown): Promise<object> {
    return answerCall(this.#options.here, value)
  }

  /**
   * The holders of a place at other nodes, one for each session: a pool has several holders, and two of them may be of one
   * session.
   */
  async #holdersOf(place: string): Promise<readonly StoredHolder[]> {
    const { store, node } = this.#options
    const [row] = await store.read(({ online }) => online.holders([place]))
    const others = row?.holders.filter(({ nodeId }) => nodeId !== node.id) ?? []
    return [...new Map(others.map((holder) => [holder.sessionId, holder])).values()]
  }

  async #command(sessionId: string, command: Parameters<Presence['command']>[1]): Promise<void> {
    const { here, store, node } = this.#options
    if (here.held.session(sessionId)) return here.command(sessionId, command)
    const row = await store.read(({ online }) => online.session(sessionId))
    if (!row || row.nodeId === node.id) throw new Refusal('NOT_FOUND', 'there is no tunnel session with this id')
    return this.#servicesAt(row.nodeId).command(sessionId, command)
  }

  /** Has every other node answer a challenge; resolves with whether all do. */
  async showChallenge(challenge: NameChallenge): Promise<boolean> {
    const { log } = this.#options
    const all = this.#others.map(async ({ nodeId, name }) => {
      try {
        const shown = this.#servicesAt(nodeId).showChallenge(challenge)
        const late = new Promise((resolve) => setTimeout(resolve, CHALLENGE_MS).unref())
        return (await Promise.race([shown, late])) === true
      } catch (err) {
        log.debug(
          { err, node: name, challenge: challenge.name },
          'another node did not confirm a certificate challenge',
        )
        return false
      }
    })
    return (await Promise.all(all)).every(Boolean)
  }

  /** Asks another node how its traffic went. */
  async trafficAt(nodeId: string, period: Period): Promise<readonly TrafficPoint[]> {
    // Trusted to be what `NodeServices` says, since it comes from a node.
    return (await this.#servicesAt(nodeId).traffic(period)) as readonly TrafficPoint[]
  }

  /** Asks another node about its exchanges. */
  exchangesAt(nodeId: string, ask: ExchangeAsk): Promise<unknown> {
    return this.#servicesAt(nodeId).exchanges(ask)
  }

  #servicesAt(nodeId: string): NodeServices {
    return servicesOf(async (call) => {
      try {
        const answer = await this.#options.here.callNode(nodeId, call)
        this.#unreached.delete(nodeId)
        return answer
      } catch (error) {
        this.#unreached.set(nodeId, performance.now())
        throw error
      }
    })
  }

  #isUnreached(nodeId: string): boolean {
    const since = this.#unreached.get(nodeId)
    return since !== undefined && performance.now() - since < UNREACHED_MS
  }

  async #tellLeaving(): Promise<boolean> {
    const { store, node, log } = this.#options
    if (!(await this.renew())) return false
    // So that the others do not wait for their next renewal.
    await store
      .write(async (writer) => writer.changed(NODE_LEAVES, node.id))
      .catch((err: unknown) => log.debug({ err }, 'other nodes learn only at their next renewal that this node leaves'))
    return true
  }

  /** For a session that may have moved away: writing its rows finds out what is no longer held here. */
  #recheck(sessionId: string): void {
    if (!this.#options.here.held.session(sessionId)) return
    this.#rows.sessionChanged(sessionId)
    for (const { id, place } of this.#options.here.held.tunnelsOf(sessionId)) {
      this.#rows.tunnelChanged(id)
      if (place !== undefined) this.#rows.addressChanged(place)
    }
  }

  /**
   * Renews the lease, which also reads the list of nodes, when one of these nodes is unknown because it has just started, or
   * when the database was away. Data planes must hear that nodes are unsure before they get an answer that lacks what those
   * nodes have.
   */
  async #introduce(nodeIds: ReadonlySet<string>): Promise<void> {
    const known = new Set(this.reached.map(({ nodeId }) => nodeId))
    if ([...nodeIds].some((id) => !known.has(id))) await this.renew()
    if (await this.#lease.catchUp()) return
    throw new Error('the database was away, and which nodes are there cannot be read')
  }

  #use(
    nodes: readonly StoredNode[],
    { lost, isSettled }: { readonly lost: readonly StoredNode[]; readonly isSettled: boolean },
  ): void {
    const { node, here } = this.#options
    const live = nodes.filter(({ id }) => id !== node.id).map(otherNode)
    const isLive = ({ nodeId }: OtherNode): boolean => live.some((each) => each.nodeId === nodeId)
    // Nodes whose leases run are unsure too: a look-up may have been answered before they renewed, or before their rows are
    // written again.
    const unsettled = [...live, ...this.#others.filter((other) => !isLive(other))]
    const before = this.reached
    this.#others = isSettled ? live : unsettled.map((other) => ({ ...other, isUnsure: true }))
    // What it had counts as long as it answers; agents are sent to others.
    const asLost = { agentAddresses: [], isUnsure: true, isLost: true }
    this.#lost.use(lost.filter(({ id }) => id !== node.id).map((each) => ({ ...otherNode(each), ...asLost })))
    this.#liveCount = live.length + 1
    const now = this.reached
    if (JSON.stringify(now) === JSON.stringify(before)) return
    const isGone = (id: string): boolean => !now.some(({ nodeId }) => nodeId === id)
    for (const { nodeId } of before) if (isGone(nodeId)) here.nodeGone(nodeId)
    for (const id of this.#unreached.keys()) if (isGone(id)) this.#unreached.delete(id)
    here.nodesChanged(now)
  }
}

function otherNode({ id, name, address, agentAddresses, isLeaving }: StoredNode): OtherNode {
  return { nodeId: id, name, address: addressOf(address), agentAddresses, isLeaving }
}

async function formerSessions({ online }: Reader, asked: readonly string[]): Promise<(id: string) => FormerSession> {
  const ids = [...new Set(asked)]
  const sessions = new Map((await online.sessionsById(ids)).map((session) => [session.id, session]))
  const tunnels = Map.groupBy(await online.tunnelsOf(ids), ({ sessionId }) => sessionId)
  return (id) => ({ session: sessions.get(id), tunnels: tunnels.get(id) ?? [] })
}

/** The parts of `host:port` or `[host]:port`; not checked, since a node wrote it. */
function addressOf(address: string): OtherNode['address'] {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replaceAll(/[[\]]/g, ''), port: Number(address.slice(colon + 1)) }
}
