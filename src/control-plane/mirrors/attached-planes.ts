/**
 * The data planes that are attached to this control plane: answers their calls, and sends each what it serves.
 *
 * One thing: attaching, answering and detaching are the life of one connection.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { CountedWindow } from '../../lib/limits/sliding-counters.ts'
import { CallLink } from '../../link/calls/call-link.ts'
import type { Channel } from '../../link/calls/plane-channel.ts'
import type { LoginEndings } from '../../link/planes/login-store.ts'
import type {
  Attachment,
  ControlCalls,
  NameChallenge,
  OnlineSession,
  OnlineTunnel,
  OtherNode,
  PlaneCalls,
  WorkerTunnel,
} from '../../link/planes/plane-calls.ts'
import { Refusal } from '../../model/errors.ts'
import { LinkFault } from '../../model/link-fault.ts'
import { type PlaneMetrics, pastOf, sumOf } from '../../model/plane-metrics.ts'
import type { AgentCommand, Presence } from '../../model/presence.ts'
import { Directory } from '../directory/directory.ts'
import { type BindRules, Binds } from '../directory/grant-binds.ts'
import { onlyNode, type StartedNode } from '../records/only-node.ts'
import { Follower } from '../store/feed-follower.ts'
import { InForce } from './in-force.ts'
import { type PlaneMirrorsOptions, planeMirrors } from './plane-mirrors.ts'
import type { ClusterOfPlanes, SharedCalls } from './shared-calls.ts'

interface AttachedPlanesOptions extends PlaneMirrorsOptions {
  /** The node to which all planes and this control plane belong. */
  readonly node: StartedNode
  readonly calls: SharedCalls
  readonly bindRules: BindRules
  /** Undefined for a node on its own. */
  readonly nodes?: ClusterOfPlanes | undefined
  /** Called when a plane attaches with sessions, whose credentials may be gone. */
  readonly checkCredentials: (planes: AttachedPlanes) => Promise<void>
}

type PlaneLink = CallLink<PlaneCalls, ControlCalls>

interface Plane {
  readonly id: string
  readonly version: string
  readonly link: PlaneLink
  readonly feeds: Follower[]
  metrics: PlaneMetrics | undefined
  isFed: boolean
  isLeaving: boolean
  missed: number | undefined
}

/** How long other planes may take to serve an endpoint before its agent is answered without them, in milliseconds. */
const SPREAD_MS = 2000

/** How long a plane may take to answer calls for lists and metrics, in milliseconds. */
const ASK_MS = 2000

/** Pause between two tries to load the configuration for a new plane, in milliseconds. */
const RETRY_MS = 500

/** How long legs of unknown sessions are kept, in milliseconds: the plane that has their session may not be attached yet. */
const ORPHAN_MS = 10_000

/** How many planes that are gone are remembered by id, since they may come back; more than a node has workers. */
const MAX_GONE = 64

export class AttachedPlanes {
  readonly directory: Directory
  readonly #options: AttachedPlanesOptions
  readonly #binds: Binds
  readonly #planes = new Map<string, Plane>()
  readonly #links = new Set<PlaneLink>()
  /** Totals of planes that are gone, by id; a plane that comes back counts on from there. */
  readonly #gone = new Map<string, PlaneMetrics>()
  /** Totals of planes that are no longer remembered by id. */
  #past: PlaneMetrics = sumOf([])
  #onJoined: (metrics: PlaneMetrics) => void = () => {}
  readonly #inForce = new InForce(() => this.#planes.values())
  #isClosed = false
  #onTunnelStarted: (tunnel: OnlineTunnel) => void = () => {}
  #changed = Promise.withResolvers<void>()

  constructor(options: AttachedPlanesOptions) {
    this.#options = options
    this.directory = new Directory({
      added: (tunnel) => this.#spread(tunnel),
      removed: ({ tunnelId, planeId, isLost }) => {
        const ids = [tunnelId]
        const change = { isAll: false, added: [], removed: isLost ? [] : ids, lost: isLost ? ids : [] }
        for (const plane of this.#others(planeId)) plane.link.tell('elsewhere', change)
      },
      sessionOver: (sessionId) => {
        for (const { link } of this.#planes.values()) link.tell('endLegs', { sessionId })
      },
      allNodes: options.nodes?.allNodes,
    })
    this.#binds = new Binds(options.bindRules, this.directory)
  }

  /** `then` runs when an agent has started a tunnel. */
  whenTunnelStarted(then: (tunnel: OnlineTunnel) => void): void {
    this.#onTunnelStarted = then
  }

  /** Ids of the planes that have all stored configuration. */
  get ready(): readonly string[] {
    return [...this.#planes.values()].filter(({ isFed }) => isFed).map(({ id }) => id)
  }

  /** Resolves when at least `count` planes have all stored configuration. */
  async whenReady(count: number): Promise<void> {
    while (this.ready.length < count && !this.#isClosed) await this.#changed.promise
  }

  /** Resolves with whether all that this process has written is in force at every plane, within a second at most. */
  inForce(): Promise<boolean> {
    return this.#inForce.wait(this.#options.store.feed.written)
  }

  /** Serves a data plane that has connected: sends it the whole configuration at first, and then the changes. */
  take(channel: Channel): void {
    const { calls, log } = this.#options
    const at: { plane: Plane | undefined } = { plane: undefined }
    const id = (): string => {
      const { plane } = at
      if (!plane || this.#planes.get(plane.id) !== plane) throw new Error('a data plane must attach first')
      return plane.id
    }
    const { directory } = this
    const link: PlaneLink = new CallLink(
      channel,
      {
        ...calls,
        attach: async (attachment) => {
          if (at.plane) this.#detach(at.plane)
          at.plane = this.#attach(attachment, link)
        },
        bind: (bind) => this.#binds.grant(id, bind),
        claim: (claim) => directory.reserve(id(), claim),
        whyTaken: (claim) => this.#binds.whyTaken(claim),
        unclaim: (claim) => this.#binds.withdraw(id(), claim),
        proveAlive: ({ place }) => this.#proveAlive(place),
        returning: ({ sessionId, isMoving }) => this.#returning(sessionId, isMoving),
        mayHaveLeg: ({ sessionId, credentialId }) =>
          directory.heldSession(sessionId)?.session.credentialId === credentialId,
        sessionStarted: (session) => this.#sessionStarted(id(), session),
        leaving: async () => {
          directory.leaving(id())
          if (at.plane) at.plane.isLeaving = true
          return { isNode: (await this.#options.nodes?.isKnownToLeave()) ?? false }
        },
        // The agents of a draining plane come back, like those of a plane that is gone.
        sessionEnded: ({ sessionId }) =>
          directory.sessionEnded(id(), sessionId, { isLost: at.plane?.isLeaving ?? false }),
        tunnelStarted: async (tunnel) => {
          await directory.tunnelStarted(id(), tunnel)
          this.#onTunnelStarted(tunnel)
        },
        tunnelChanged: (tunnel) => directory.tunnelChanged(id(), tunnel),
        tunnelEnded: ({ tunnelId }) => directory.tunnelEnded(id(), tunnelId),
        tunnelStopped: (tunnel) => {
          for (const plane of this.#others(id())) plane.link.tell('tunnelStopped', tunnel)
        },
      },
      { log },
    )
    this.#links.add(link)
    void link.closed.then(() => {
      this.#links.delete(link)
      if (at.plane) this.#detach(at.plane)
    })
  }

  /** Ends every connection of a credential that is no longer valid (D25), also one that the directory does not list. */
  endSessionsOf(credentialId: string, reason: string): void {
    for (const sessionId of this.directory.sessionsOf(credentialId)) this.#endSession(sessionId, reason)
    for (const { link } of this.#planes.values()) link.tell('endSessionsOf', { credentialId, reason })
  }

  /** The ids of the credentials that started a live session. */
  credentialsInUse(): ReadonlySet<string> {
    return this.directory.credentialsInUse()
  }

  /** The ids of the certificates that live sessions logged in with. */
  certificatesInUse(): ReadonlySet<string> {
    return new Set(this.directory.sessionsByCertificate().keys())
  }

  /** Ends the sessions of an SSH certificate that was deleted. */
  endSessionsBy(certificateId: string, reason: string): void {
    const ids = this.directory.sessionsByCertificate().get(certificateId) ?? []
    for (const sessionId of ids) this.#endSession(sessionId, reason)
  }

  /** Ends a session whose agent is on another connection now. */
  async sessionCameBack(sessionId: string): Promise<void> {
    const plane = this.#planeOf(sessionId)
    if (!plane) return
    // A plane that is stuck must not delay the agent.
    await plane.link.ask('endSession', { sessionId, reason: cameBack }, { withinMs: ASK_MS }).catch(() => {})
    this.directory.sessionEnded(plane.id, sessionId)
  }

  /** Asks the agent of a session for a sign of life; resolves when it has given one, or its session is over. */
  async proveSessionAlive(sessionId: string): Promise<void> {
    await this.#planeOf(sessionId)
      ?.link.ask('proveAlive', { sessionId })
      .catch(() => {})
  }

  /** Stops a tunnel whose address was given to another. */
  stopTaken(tunnelId: string): void {
    const plane = this.#planes.get(this.directory.heldTunnel(tunnelId)?.planeId ?? '')
    plane?.link.tell('stopTunnel', { tunnelId, why: taken })
  }

  /** Tells all planes about the other nodes. */
  nodesChanged(others: readonly OtherNode[]): void {
    for (const { link } of this.#planes.values()) link.tell('nodes', others)
  }

  /** What is online at this node, for the API. */
  get presence(): Presence {
    const { directory } = this
    return {
      ...onlyNode(this.#options.node, () => directory.sessionCount),
      sessions: async (page) => directory.sessions(page),
      session: async (id) => directory.heldSession(id)?.session,
      tunnels: async (page) => directory.tunnels(page),
      tunnel: async (id) => directory.heldTunnel(id)?.online.tunnel,
      endpoints: async (page) => directory.endpoints(page),
      endpoint: async (id) => directory.endpoint(id),
      tunnelsWith: async (labels) => directory.tunnelsWith(labels),
      command: (sessionId, command) => this.#command(sessionId, command),
    }
  }

  /** Tells all planes of logins that ended, here or at another node; resolves when no plane accepts them. */
  async loginsEnded(endings: LoginEndings): Promise<void> {
    const all = [...this.#planes.values()].map(({ link }) =>
      // A plane that does not answer is stuck, or starts again without cached logins.
      link.ask('loginsEnded', endings, { withinMs: ASK_MS }).catch(() => {}),
    )
    await Promise.all(all)
  }

  /** Has every plane answer a challenge; resolves with whether all do. */
  async showChallenge(challenge: NameChallenge): Promise<boolean> {
    const change = { isAll: false, set: [challenge], removed: [] }
    const all = [...this.#planes.values()].map(async ({ id, link }) => {
      try {
        await link.ask('challenges', change, { withinMs: ASK_MS })
        return true
      } catch (err) {
        this.#options.log.warn(
          { err, plane: id, name: challenge.name },
          'data plane did not confirm a certificate challenge',
        )
        return false
      }
    })
    return all.length > 0 && (await Promise.all(all)).every(Boolean)
  }

  /** The numbers of all planes, and of those that are gone. */
  async metrics(): Promise<PlaneMetrics> {
    await Promise.all([...this.#planes.values()].map((plane) => this.#readMetrics(plane)))
    const gone = [...this.#gone].flatMap(([id, metrics]) => (this.#planes.get(id)?.metrics ? [] : metrics))
    return sumOf([this.#past, ...gone, ...[...this.#planes.values()].flatMap(({ metrics }) => metrics ?? [])])
  }

  /** `then` is called with the numbers of a plane that may have served before it attached here, before they count. */
  whenJoined(then: (metrics: PlaneMetrics) => void): void {
    this.#onJoined = then
  }

  async #readMetrics(plane: Plane): Promise<void> {
    try {
      const metrics = await plane.link.ask('numbers', null, { withinMs: ASK_MS })
      if (!plane.metrics && !this.#gone.has(plane.id)) this.#onJoined(metrics)
      plane.metrics = metrics
    } catch (err) {
      this.#options.log.debug({ err, plane: plane.id }, 'cannot fetch metrics from a data plane')
    }
  }

  /** What the rate limits of an edge have counted; any plane knows the counts of all. */
  async counted(edgeId: string): Promise<readonly CountedWindow[]> {
    for (const { link } of this.#planes.values()) {
      try {
        return await link.ask('counted', edgeId, { withinMs: ASK_MS })
      } catch (err) {
        this.#options.log.debug({ err, edge: edgeId }, 'cannot fetch rate limit counts from a data plane')
      }
    }
    return []
  }

  /** Asks every plane, or those that `isAsked` selects; planes that do not answer are left out. */
  async askEach<Name extends keyof PlaneCalls>(
    name: Name,
    argument: Parameters<PlaneCalls[Name]>[0],
    { isAsked = () => true, withinMs = ASK_MS }: { isAsked?: (planeId: string) => boolean; withinMs?: number } = {},
  ): Promise<{ readonly planeId: string; readonly answer: Awaited<ReturnType<PlaneCalls[Name]>> }[]> {
    const asked = [...this.#planes.values()].filter(({ id }) => isAsked(id))
    const answers = await Promise.allSettled(asked.map(({ link }) => link.ask(name, argument, { withinMs })))
    return answers.flatMap((each, i) => {
      const planeId = asked[i]?.id ?? ''
      if (each.status === 'fulfilled') return [{ planeId, answer: each.value }]
      if (each.reason instanceof Refusal) throw each.reason
      this.#options.log.debug({ err: each.reason, plane: planeId, call: name }, 'data plane did not answer')
      return []
    })
  }

  /** Sends nothing more; the planes go on with what they have. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#changed.resolve()
    await Promise.all([...this.#planes.values()].flatMap(({ feeds }) => feeds.map((feed) => feed.stop())))
    for (const link of this.#links) link.close()
  }

  #attach({ planeId, version, isLeaving = false, sessions, tunnels, legs = [] }: Attachment, link: PlaneLink): Plane {
    const before = this.#planes.get(planeId)
    if (before) {
      this.#detach(before)
      // Late calls over the former link must not be taken for calls of the plane.
      before.link.close()
    }
    const plane: Plane = {
      ...{ id: planeId, version, link, feeds: [], metrics: undefined },
      ...{ isFed: false, isLeaving, missed: undefined },
    }
    this.#planes.set(planeId, plane)
    if (isLeaving) this.directory.leaving(planeId)
    const superseded = this.directory.attached(planeId, sessions, tunnels)
    for (const sessionId of superseded.sessions) link.tell('endSession', { sessionId, reason: cameBack })
    for (const tunnelId of superseded.tunnels) link.tell('stopTunnel', { tunnelId, why: taken })
    // Any login may have ended while it was not attached.
    link.tell('loginsEnded', { isAll: true, ids: [], userIds: [] })
    link.tell('elsewhere', { isAll: true, added: this.directory.ofOtherPlanes(planeId), removed: [], lost: [] })
    const own = this.directory.ofPlane(planeId)
    if (own.length > 0) {
      const change = { isAll: false, added: own, removed: [], lost: [] }
      for (const other of this.#others(planeId)) other.link.tell('elsewhere', change)
    }
    this.#introduce()
    link.tell('nodes', this.#options.nodes?.reached ?? [])
    if (sessions.length > 0) {
      this.#options.checkCredentials(this).catch((err: unknown) => this.#options.log.warn({ err }, notChecked))
    }
    void this.#feed(plane)
    // At once: what it counts from now on is new.
    void this.#readMetrics(plane)
    if (legs.length > 0) setTimeout(() => this.#endOrphans(plane, legs), ORPHAN_MS).unref()
    return plane
  }

  #detach(plane: Plane): void {
    if (this.#planes.get(plane.id) !== plane) return
    this.#planes.delete(plane.id)
    if (plane.metrics) this.#keepPast(plane.id, plane.metrics)
    for (const feed of plane.feeds) void feed.stop()
    this.#inForce.progressed()
    if (this.#isClosed) return
    this.directory.detached(plane.id)
    this.#introduce()
  }

  /** Ends the legs of sessions that ended while no control plane was there. */
  #endOrphans({ id, link }: Plane, legs: readonly string[]): void {
    if (this.#isClosed || this.#planes.get(id)?.link !== link) return
    for (const sessionId of legs) if (!this.directory.heldSession(sessionId)) link.tell('endLegs', { sessionId })
  }

  /** Keeps the totals of a plane that is gone, so that no counter goes back. */
  #keepPast(planeId: string, metrics: PlaneMetrics): void {
    this.#gone.delete(planeId)
    this.#gone.set(planeId, pastOf(metrics))
    for (const [oldest, past] of this.#gone) {
      if (this.#gone.size <= MAX_GONE) break
      this.#gone.delete(oldest)
      this.#past = pastOf(sumOf([this.#past, past]))
    }
  }

  /** Tells every plane of the others. */
  #introduce(): void {
    for (const { id, link } of this.#planes.values()) {
      link.tell(
        'planes',
        this.#others(id).map((other) => ({ planeId: other.id })),
      )
    }
  }

  /** Sends a plane all stored configuration, and then its changes. */
  async #feed(plane: Plane): Promise<void> {
    const { store, log } = this.#options
    for (const each of planeMirrors(plane.link, this.#options)) {
      const follower = new Follower({ store, followed: each, log, onProgress: () => this.#inForce.progressed() })
      while (!(await this.#begun(plane, follower))) {
        if (plane.link.isClosed || this.#isClosed) return
        await pause(RETRY_MS, undefined, { ref: false })
      }
    }
    plane.isFed = true
    plane.link.tell('letVisitorsIn', null)
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }

  async #begun(plane: Plane, follower: Follower): Promise<boolean> {
    try {
      await follower.start()
      plane.feeds.push(follower)
      if (plane.link.isClosed) void follower.stop()
      return true
    } catch (err) {
      void follower.stop()
      if (!(err instanceof LinkFault) && !this.#isClosed) {
        this.#options.log.warn({ err, plane: plane.id }, 'cannot load the configuration for a data plane; retrying')
      }
      return false
    }
  }

  #others(planeId: string): Plane[] {
    return [...this.#planes.values()].filter(({ id }) => id !== planeId)
  }

  async #spread(tunnel: WorkerTunnel): Promise<void> {
    const change = { isAll: false, added: [tunnel], removed: [], lost: [] }
    const all = this.#others(tunnel.planeId).map(({ id, link }) =>
      link.ask('elsewhere', change, { withinMs: SPREAD_MS }).catch((err: unknown) => {
        this.#options.log.warn(
          { err, plane: id, tunnel: tunnel.tunnelId },
          'data plane did not confirm a tunnel in time; its agent is answered anyway',
        )
      }),
    )
    await Promise.all(all)
  }

  /** Whether a place is free after its holder was asked for a sign of life. */
  async #proveAlive(place: string): Promise<boolean> {
    const holders = this.directory.holdersOf(place)
    if (holders.length === 0) return this.#options.nodes?.proveAlive(place) ?? true
    await Promise.all(holders.map((sessionId) => this.proveSessionAlive(sessionId)))
    return !this.directory.holdersOf(place).some((sessionId) => holders.includes(sessionId))
  }

  async #returning(sessionId: string, isMoving = false) {
    const moving = isMoving ? this.directory.movingLabels(sessionId) : undefined
    if (moving) return moving
    const plane = this.#planeOf(sessionId)
    if (plane) {
      // Its former tunnels are known only once its plane has reported them ended.
      await this.sessionCameBack(sessionId)
    }
    const former = this.directory.formerLabels(sessionId)
    if (plane || former.length > 0) return former
    return this.#options.nodes?.returning(sessionId, isMoving) ?? []
  }

  /** Of two connections that came back as one session at the same time, each found no other; the later one keeps it. */
  #sessionStarted(planeId: string, session: OnlineSession): void {
    const { id: sessionId } = session.session
    const former = this.#planeOf(sessionId)
    // At a draining plane, the session ends with its last visitor.
    if (former && former.id !== planeId && !former.isLeaving) {
      former.link.tell('endSession', { sessionId, reason: cameBack })
    }
    this.directory.sessionStarted(planeId, session)
  }

  async #command(sessionId: string, command: AgentCommand): Promise<void> {
    const plane = this.#planeOf(sessionId)
    if (!plane) throw new Refusal('NOT_FOUND', 'there is no tunnel session with this id')
    try {
      await plane.link.ask('command', { sessionId, command })
    } catch (cause) {
      if (!(cause instanceof LinkFault)) throw cause
      if (cause.reason === 'timeout') throw new Refusal('COMMAND_TIMEOUT', undefined, { cause })
      throw new Refusal('COMMAND_FAILED', `the session ended before the agent answered the command ${command}`, {
        cause,
      })
    }
  }

  /** Ends a session at its plane and at draining ones: an agent that moves has connections at two planes. */
  #endSession(sessionId: string, reason: string): void {
    const at = this.directory.planeOf(sessionId)
    for (const { id, link, isLeaving } of this.#planes.values()) {
      if (id === at || isLeaving) link.tell('endSession', { sessionId, reason })
      // Its own plane may be stuck, and not report the end.
      link.tell('endLegs', { sessionId })
    }
  }

  #planeOf(sessionId: string): Plane | undefined {
    return this.#planes.get(this.directory.planeOf(sessionId) ?? '')
  }
}

const cameBack = 'its agent reconnected on another connection'

/**
 * What an agent is told when another agent got its address while its data plane was disconnected; with the vendor's number.
 */
const taken = { message: 'its address was given to another tunnel while the server was restarting', ngrok: 334 }

const notChecked = 'cannot check the credentials of online agents'
