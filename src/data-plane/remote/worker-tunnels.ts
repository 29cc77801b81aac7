/** What other data planes have online, and how this one reaches it: by one hop to the plane that holds the session. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { Groups } from '../../lib/multi-map.ts'
import type { AddressHolder } from '../../link/planes/ask-node.ts'
import type { PlaneCalls, WorkerTunnel } from '../../link/planes/plane-calls.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { LabelGroups, LabelledTunnel } from '../../model/label-groups.ts'
import { addressesServed } from './address-cache.ts'

interface OtherPlanesOptions<Compiled extends { release(): void }> {
  /** Serves the endpoints of agents at other planes. */
  readonly edges: {
    /** Undefined when there is nothing to compile. */
    compile(config: EdgeConfig): Promise<Compiled | undefined>
    /** Serves an endpoint for a tunnel; several tunnels may share the endpoint. */
    serve(config: EdgeConfig, compiled: Compiled | undefined, tunnelId: string): Promise<unknown>
    /** The same, but compiles the endpoint only for the first visitor. */
    serveIdle(config: EdgeConfig, tunnelId: string): Promise<unknown>
    letGo(id: string, tunnelId: string): void
  }
  readonly groups: Pick<LabelGroups<LabelledTunnel>, 'add' | 'delete' | 'find'>
  /** Dials a tunnel at another plane. */
  readonly relay: (planeId: string, request: DialRequest) => Promise<ByteStream | DialFault>
  /** Dials a tunnel over the leg that its session has at this plane; undefined when there is none. */
  readonly leg: (
    sessionId: string,
    request: DialRequest,
  ) => ByteStream | DialFault | Promise<ByteStream | DialFault> | undefined
  /** Whether a tunnel is online at this plane. */
  readonly isHere: (tunnelId: string) => boolean
  /** Whether this plane drains, so that its tunnels move to others. */
  readonly isLeaving: () => boolean
  /** Called when a tunnel that is online at this plane has moved to another. */
  readonly handOver: (tunnelId: string) => void
  /** Called when a tunnel is reached another way: connections kept for later requests would keep its former plane waiting. */
  readonly moved: (tunnelId: string) => void
}

/**
 * How long visitors of a tunnel whose plane is gone wait for its agent to come back, in milliseconds: most agents are back
 * within one second. Tunnels that a new control plane does not know yet are kept as long.
 */
const RETURN_MS = 3000

/**
 * Pause before a plane that lacks a tunnel is dialled again, in milliseconds; the plane of a bind gets the tunnel about a call
 * later.
 */
const AGAIN_MS = 20

interface Known {
  readonly tunnel: WorkerTunnel & LabelledTunnel
  /** Its plane is gone. */
  isLost: boolean
  /** When this fires the tunnel is forgotten; news of the tunnel cancels the timer. */
  expiry: NodeJS.Timeout | undefined
  isGrouped: boolean
}

export class WorkerTunnels<Compiled extends { release(): void } = { release(): void }> {
  readonly #options: OtherPlanesOptions<Compiled>
  readonly #known = new Map<string, Known>()
  /** Ids of the known tunnels of each session. */
  readonly #bySession = new Groups<string>()
  /** Dials that wait for news of a tunnel. */
  readonly #waiting = new Groups<() => void>()
  /** Planes that drain. */
  readonly #draining = new Set<string>()

  constructor(options: OtherPlanesOptions<Compiled>) {
    this.#options = options
  }

  get size(): number {
    return this.#known.size
  }

  /** The session of a tunnel that another plane has online. */
  holderOf(tunnelId: string): string | undefined {
    const known = this.#known.get(tunnelId)
    return known?.expiry === undefined ? known?.tunnel.sessionId : undefined
  }

  /** Whether another plane has a tunnel, or another tunnel of its session, that serves this place, as far as is known here. */
  serves({ place, tunnelId, sessionId }: AddressHolder): boolean {
    if (this.#known.has(tunnelId)) return true
    const configs = [...this.#bySession.get(sessionId)].map((id) => this.#known.get(id)?.tunnel.config)
    return configs.some((config) => config && addressesServed(config).includes(place))
  }

  /** The labels of a tunnel that another plane has online. */
  labelsOf(tunnelId: string): Readonly<Record<string, string>> | undefined {
    return this.#known.get(tunnelId)?.tunnel.labels
  }

  /** Whether a connection to a tunnel may be kept for the next request: not when the tunnel's plane drains. */
  mayKeep(tunnelId: string): boolean {
    if (this.#draining.size === 0) return true
    const known = this.#known.get(tunnelId)
    return known === undefined || !this.#draining.has(known.tunnel.planeId)
  }

  /** A session has gained or lost a leg at this plane. */
  legChanged(sessionId: string): void {
    for (const id of this.#bySession.get(sessionId)) this.#options.moved(id)
  }

  /** Another plane drains, and waits until its last connection ends. */
  drains(planeId: string): void {
    this.#draining.add(planeId)
    for (const [id, { tunnel }] of this.#known) if (tunnel.planeId === planeId) this.#options.moved(id)
  }

  /** Another plane is gone. */
  isGone(planeId: string): void {
    this.#draining.delete(planeId)
  }

  /** Applies a change, in the order of arrival; resolves when visitors of the added tunnels are served. */
  async change({ isAll, added, removed, lost }: Parameters<PlaneCalls['elsewhere']>[0]): Promise<void> {
    if (isAll) {
      const there = new Set(added.map(({ tunnelId }) => tunnelId))
      // A control plane that has just started may not know their plane yet, which still serves them.
      for (const [id, known] of this.#known) if (!there.has(id)) this.#expire(id, known)
    }
    for (const id of removed) this.#forget(id)
    for (const id of lost) this.#lose(id)
    // A full list is not compiled at once: that would take long, and most endpoints have no visitor.
    await Promise.all(added.map((tunnel) => this.#add(tunnel, { isIdle: isAll })))
  }

  /** A tunnel that was elsewhere is online at this plane, which serves its endpoint itself. */
  cameHere(tunnelId: string): void {
    const known = this.#known.get(tunnelId)
    if (known) {
      this.#unlist(known)
      this.#options.moved(tunnelId)
    }
    this.#news(tunnelId)
  }

  /** Dials a tunnel at whichever plane has it; waits for a moment when its plane has just gone. */
  async dial(request: DialRequest): Promise<ByteStream | DialFault> {
    const { tunnelId } = request
    const deadline = performance.now() + RETURN_MS
    for (;;) {
      const known = this.#known.get(tunnelId)
      if (!known) return new DialFault('offline', 'the tunnel is not online')
      if (!known.isLost) {
        const direct = await this.#options.leg(known.tunnel.sessionId, request)
        if (direct && !(direct instanceof DialFault)) return direct
        const outcome = await this.#options.relay(known.tunnel.planeId, request)
        if (!(outcome instanceof DialFault) || outcome.reason !== 'offline') return outcome
        // The tunnel has moved since.
        if (this.#known.get(tunnelId) !== known) continue
      }
      // A bind is announced a moment before its plane has the tunnel, and no further news follows: so try again soon.
      const until = known.isLost ? deadline : Math.min(deadline, performance.now() + AGAIN_MS)
      const isNew = await this.#heardOf(tunnelId, until)
      if (!isNew && performance.now() >= deadline) return new DialFault('offline', 'the agent of the tunnel is offline')
      if (this.#options.isHere(tunnelId))
        return new DialFault('offline', 'the agent of the tunnel came back at this plane')
    }
  }

  /** Dials a tunnel at another plane once, for a visitor at another node, which retries by itself. */
  async dialOnce(request: DialRequest): Promise<ByteStream | DialFault> {
    const known = this.#known.get(request.tunnelId)
    if (!known || known.isLost) return new DialFault('offline', 'the tunnel is not online at this node')
    const direct = await this.#options.leg(known.tunnel.sessionId, request)
    if (direct && !(direct instanceof DialFault)) return direct
    return this.#options.relay(known.tunnel.planeId, request)
  }

  async #add(tunnel: WorkerTunnel, { isIdle }: { readonly isIdle: boolean }): Promise<void> {
    const { tunnelId, config } = tunnel
    const { edges, isHere, isLeaving, handOver, moved } = this.#options
    const wasHere = isHere(tunnelId)
    // A tunnel that is online here stays here, unless this plane drains; other news of it is out of date.
    if (wasHere && !isLeaving()) return
    const before = this.#known.get(tunnelId)
    if (before) this.#unlist(before)
    const known: Known = { tunnel: { id: tunnelId, ...tunnel }, isLost: false, expiry: undefined, isGrouped: false }
    this.#known.set(tunnelId, known)
    this.#bySession.add(tunnel.sessionId, tunnelId)
    if (tunnel.labels) {
      this.#options.groups.add(known.tunnel)
      known.isGrouped = true
    }
    if (wasHere) handOver(tunnelId)
    if (wasHere || (before && before.tunnel.planeId !== tunnel.planeId)) moved(tunnelId)
    const served = config && this.#serve(config, known, { isIdle })
    const former = before?.tunnel.config
    // The tunnel came back with another endpoint: its membership in a pool has changed.
    if (former && former.id !== config?.id) edges.letGo(former.id, tunnelId)
    this.#news(tunnelId)
    await served
  }

  async #serve(config: EdgeConfig, known: Known, { isIdle }: { readonly isIdle: boolean }): Promise<void> {
    const { edges, isHere } = this.#options
    const { tunnelId } = known.tunnel
    if (isIdle) {
      await edges.serveIdle(config, tunnelId)
      return
    }
    const compiled = await edges.compile(config)
    // The tunnel may have gone, or come here, meanwhile.
    if (this.#known.get(tunnelId) === known && !isHere(tunnelId)) await edges.serve(config, compiled, tunnelId)
    else compiled?.release()
  }

  #lose(tunnelId: string): void {
    const known = this.#known.get(tunnelId)
    if (!known || known.isLost) return
    known.isLost = true
    this.#expire(tunnelId, known)
    const { labels } = known.tunnel
    // Visitors wait for the only tunnel of a group; otherwise they go to the others.
    if (labels && this.#options.groups.find(labels).length > 1) this.#ungroup(known)
    this.#news(tunnelId)
  }

  #expire(tunnelId: string, known: Known): void {
    known.expiry ??= setTimeout(() => this.#forget(tunnelId), RETURN_MS).unref()
  }

  #forget(tunnelId: string): void {
    const known = this.#known.get(tunnelId)
    if (!known) return
    this.#unlist(known)
    const { config } = known.tunnel
    if (config && !this.#options.isHere(tunnelId)) this.#options.edges.letGo(config.id, tunnelId)
    this.#news(tunnelId)
  }

  #unlist(known: Known): void {
    const { tunnelId, sessionId } = known.tunnel
    clearTimeout(known.expiry)
    this.#ungroup(known)
    this.#known.delete(tunnelId)
    this.#bySession.delete(sessionId, tunnelId)
  }

  #ungroup(known: Known): void {
    if (known.isGrouped) this.#options.groups.delete(known.tunnel)
    known.isGrouped = false
  }

  /** Resolves with true on news of a tunnel, with false when the time is over. */
  #heardOf(tunnelId: string, deadline: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const heard = (): void => done(true)
    const done = (isNew: boolean): void => {
      clearTimeout(timer)
      this.#waiting.delete(tunnelId, heard)
      resolve(isNew)
    }
    const timer = setTimeout(() => done(false), Math.max(0, deadline - performance.now())).unref()
    this.#waiting.add(tunnelId, heard)
    return promise
  }

  #news(tunnelId: string): void {
    for (const heard of [...this.#waiting.get(tunnelId)]) heard()
  }
}
