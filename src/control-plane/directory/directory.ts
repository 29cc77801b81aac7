/**
 * The directory: which sessions, tunnels and endpoints are online at which data plane, and who holds which address.
 *
 * One thing: sessions, tunnels and addresses change together or not at all.
 */
import { Groups } from '../../lib/multi-map.ts'
import { SortedIdMap } from '../../lib/sorted-id-map.ts'
import type {
  OnlineSession,
  OnlineTunnel,
  Reservation,
  ReservedEndpoint,
  WorkerTunnel,
} from '../../link/planes/plane-calls.ts'
import { type EdgeConfig, httpVersionOf } from '../../model/edge-config.ts'
import { FormerLabels, type FormerLabelTunnel } from '../../model/former-labels.ts'
import { LabelGroups } from '../../model/label-groups.ts'
import { memberLabels, type PoolDifference, slotOf } from '../../model/pool.ts'
import type { PresencePage, PresentEndpoint, PresentSession, PresentTunnel } from '../../model/presence.ts'
import { endpointIdOf, type HeldAddress, HeldAddresses } from './held-addresses.ts'

interface HeldSession extends OnlineSession {
  readonly planeId: string
  /** Ids of its tunnels at the same plane. */
  readonly tunnels: Set<string>
}

interface HeldTunnel {
  readonly id: string
  readonly planeId: string
  readonly httpVersion: 1 | 2
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly online: OnlineTunnel
}

/** The directory of all nodes, where others read what is online at this one. */
export interface AllNodes {
  /**
   * `isNew`: the agent of the session has just connected. Otherwise, if another node has the session by now, that node keeps
   * it.
   */
  sessionChanged(id: string, how: { readonly isNew: boolean }): void
  tunnelChanged(id: string, how: { readonly isNew: boolean }): void
  addressChanged(place: string): void
  addressLeft(reservation: Reservation): void
  /** Resolves when other nodes can read all changes so far, or the database is down. */
  noted(): Promise<void>
  /** Claims a place at all nodes; resolves with whether it was granted. */
  reserve(reservation: Reservation & { readonly planeId: string }): Promise<boolean>
}

/** Ids of sessions and tunnels that are online at a plane, although another plane has them by now. */
interface Superseded {
  readonly sessions: readonly string[]
  readonly tunnels: readonly string[]
}

interface DirectoryOptions {
  /** Tells every other data plane of a tunnel; resolves when each serves it or is disconnected. */
  readonly added: (tunnel: WorkerTunnel) => Promise<void>
  /** `isLost`: its data plane is gone, and its agent may come back. */
  readonly removed: (tunnel: { readonly tunnelId: string; readonly planeId: string; readonly isLost: boolean }) => void
  /** Called when a session is over, wherever it was. */
  readonly sessionOver: (sessionId: string) => void
  readonly allNodes?: AllNodes | undefined
}

/** Lists and commands read it. No two tunnels get one address, unless they share the address in a pool. */
export class Directory {
  readonly #options: DirectoryOptions
  readonly #sessions = new SortedIdMap<HeldSession>()
  readonly #tunnels = new SortedIdMap<HeldTunnel>()
  /** By the ids of their endpoints. */
  readonly #endpoints = new SortedIdMap<HeldTunnel>()
  readonly #addresses = new HeldAddresses()
  /**
   * Claims of sessions that move, by slot: the present holder serves the place until the tunnel is online at its new plane.
   */
  readonly #coming = new Map<string, HeldAddress>()
  /** Planes that drain; other planes take over their sessions and tunnels, one by one. */
  readonly #leaving = new Set<string>()
  readonly #groups = new LabelGroups<HeldTunnel>()
  readonly #byCredential = new Groups<string>()
  readonly #former = new FormerLabels()
  /** Undefined for a node on its own. */
  readonly #allNodes: AllNodes | undefined

  constructor(options: DirectoryOptions) {
    this.#options = options
    this.#allNodes = options.allNodes
  }

  /**
   * Takes over what is online at a plane that attaches; returns what another plane has by now. While the plane was away, an
   * agent may have come back elsewhere, or another agent may have got its address.
   */
  attached(planeId: string, sessions: readonly OnlineSession[], tunnels: readonly OnlineTunnel[]): Superseded {
    const isAtAnotherPlane = (held: { readonly planeId: string } | undefined): boolean =>
      held !== undefined && held.planeId !== planeId && !this.#leaving.has(held.planeId)
    const there = new Set(
      sessions.map(({ session }) => session.id).filter((id) => isAtAnotherPlane(this.#sessions.get(id))),
    )
    for (const each of sessions) if (!there.has(each.session.id)) this.sessionStarted(planeId, each, { isNew: false })
    const stopped: string[] = []
    const isLeaving = this.#leaving.has(planeId)
    for (const online of tunnels) {
      const { id: tunnelId, sessionId } = online.tunnel
      // It ends with its session, except at a draining plane, where the session is still there.
      if (there.has(sessionId) && !isLeaving) continue
      const reservation = online.endpoint && reservationOf(online, online.endpoint)
      if (isAtAnotherPlane(this.#tunnels.get(tunnelId)) || (reservation && this.#isTaken(reservation))) {
        // A tunnel that has moved with its session is given up when the plane hears of it.
        if (!there.has(sessionId)) stopped.push(tunnelId)
      } else {
        if (reservation) this.#hold(planeId, reservation)
        this.#put(planeId, online, { isNew: false })
      }
    }
    // At a draining plane, a session that has moved away ends with its last visitor.
    return { sessions: isLeaving ? [] : [...there], tunnels: stopped }
  }

  /** Marks a plane as draining: sessions that move away keep their tunnels there until these are online elsewhere. */
  leaving(planeId: string): void {
    this.#leaving.add(planeId)
  }

  /** Drops all that was online at a plane that is gone. */
  detached(planeId: string): void {
    for (const [slot, reservation] of this.#coming) if (reservation.planeId === planeId) this.#coming.delete(slot)
    for (const { session, planeId: at } of this.#sessions.values()) {
      if (at === planeId) this.sessionEnded(planeId, session.id, { isLost: true })
    }
    for (const held of this.#tunnels.values()) if (held.planeId === planeId) this.#drop(held, { isLost: true })
    // Claims of tunnels that were about to come online.
    for (const held of [...this.#addresses.values()]) {
      if (held.planeId === planeId) this.#free(held, { isLost: true })
    }
    this.#leaving.delete(planeId)
  }

  /** The plane of a session. */
  planeOf(sessionId: string): string | undefined {
    return this.#sessions.get(sessionId)?.planeId
  }

  /** The sessions that hold a place: one, unless it is a pool. */
  holdersOf(place: string): readonly string[] {
    const held = this.#addresses.at(place)
    const all = held.length > 0 ? held : [...this.#coming.values()].filter((reservation) => reservation.place === place)
    return [...new Set(all.map(({ sessionId }) => sessionId))]
  }

  /** The label tunnels of a session that moves, whose ids it will keep; undefined when the session does not move. */
  movingLabels(sessionId: string): readonly FormerLabelTunnel[] | undefined {
    const held = this.#sessions.get(sessionId)
    if (!held || !this.#leaving.has(held.planeId)) return undefined
    return this.#labelled(this.#tunnelsOf(held))
  }

  sessionStarted(planeId: string, session: OnlineSession, { isNew = true } = {}): void {
    const { id, credentialId } = session.session
    // The same agent on another connection; its former plane is told.
    const before = this.#sessions.get(id)
    const isOther = before && before.planeId !== planeId
    // A tunnel at a draining plane stays there until it is online here.
    if (isOther && !this.#leaving.has(before.planeId)) this.sessionEnded(before.planeId, id)
    else if (before) this.#byCredential.delete(before.session.credentialId, id)
    // Only tunnels at the session's own plane end with it; the others come over, or end with the draining plane.
    this.#sessions.add(id, { ...session, planeId, tunnels: this.#sessions.get(id)?.tunnels ?? new Set() })
    this.#byCredential.add(credentialId, id)
    this.#allNodes?.sessionChanged(id, { isNew })
  }

  /** A session has ended, with all its tunnels. */
  sessionEnded(planeId: string, sessionId: string, { isLost = false } = {}): void {
    const held = this.#sessions.get(sessionId)
    if (held?.planeId !== planeId) return
    this.#sessions.delete(sessionId)
    this.#allNodes?.sessionChanged(sessionId, { isNew: false })
    this.#byCredential.delete(held.session.credentialId, sessionId)
    const tunnels = this.#tunnelsOf(held).filter((tunnel) => tunnel.planeId === planeId)
    this.#former.remember(sessionId, this.#labelled(tunnels))
    for (const tunnel of tunnels) this.#drop(tunnel, { isLost })
    this.#options.sessionOver(sessionId)
  }

  /** Grants a place to a claim, unless another agent has it and cannot share it; resolves when every plane serves it. */
  async reserve(planeId: string, reservation: Reservation): Promise<boolean> {
    const slot = slotOf(reservation)
    const wanted = { ...reservation, planeId }
    if (this.#addresses.difference(wanted) !== undefined) return false
    const coming = this.#coming.get(slot)
    if (coming && coming.sessionId !== reservation.sessionId) return false
    const before = this.#addresses.get(reservation)
    if (before && this.#isMoving(before, planeId, reservation)) {
      this.#coming.set(slot, wanted)
      return true
    }
    this.#coming.delete(slot)
    for (const each of this.#addresses.replaced(wanted)) this.#giveUp(each)
    const held = this.#hold(planeId, reservation)
    // A place that this node already holds is not claimed again, and a node on its own never asks other nodes.
    if (!before && this.#allNodes && !(await this.#reserveAtAllNodes(held))) return false
    return this.#spread(held)
  }

  /** Why a claim would be refused at this node. */
  whyTaken(reservation: Reservation): PoolDifference | undefined {
    return this.#addresses.difference(reservation)
  }

  release(planeId: string, { place, tunnelId }: Pick<Reservation, 'place' | 'tunnelId'>): void {
    const isIt = (each: HeldAddress): boolean =>
      each.place === place && each.tunnelId === tunnelId && each.planeId === planeId
    for (const [slot, reservation] of this.#coming) if (isIt(reservation)) this.#coming.delete(slot)
    const held = this.#addresses.at(place).find(isIt)
    if (held) this.#free(held, { isLost: false })
  }

  /** A tunnel is online; resolves when every plane can reach it. */
  async tunnelStarted(planeId: string, online: OnlineTunnel): Promise<void> {
    this.#put(planeId, online, { isNew: true })
    const { tunnel, httpVersion, endpoint } = online
    const reservation = endpoint && reservationOf(online, endpoint)
    const coming = reservation && this.#coming.get(slotOf(reservation))
    if (reservation && coming?.planeId === planeId) {
      // The tunnel is online at its new plane, so all planes dial it there from now on.
      this.#coming.delete(slotOf(reservation))
      await this.#spread(this.#hold(planeId, coming))
    }
    // Its claim was granted by an earlier control plane.
    else if (reservation && !this.#addresses.get(reservation)) await this.reserve(planeId, reservation)
    const { id: tunnelId, sessionId, labels } = tunnel
    if (!labels && !endpoint?.pool) return
    // Other nodes find members by their rows, so these must be written before the agent is answered. An agent that moved
    // here then gives up the tunnel at its former node.
    await Promise.all([
      labels && this.#options.added({ tunnelId, sessionId, planeId, httpVersion, labels }),
      this.#allNodes?.noted(),
    ])
  }

  tunnelChanged(planeId: string, online: OnlineTunnel): void {
    if (this.#tunnels.get(online.tunnel.id)?.planeId === planeId) this.#put(planeId, online, { isNew: false })
  }

  tunnelEnded(planeId: string, tunnelId: string): void {
    const held = this.#tunnels.get(tunnelId)
    if (held?.planeId === planeId) this.#drop(held, { isLost: false })
  }

  /** Returns the label tunnels that a session had when it ended, and forgets them. */
  formerLabels(sessionId: string): readonly FormerLabelTunnel[] {
    return this.#former.take(sessionId)
  }

  /** What is online at all planes but this one. */
  ofOtherPlanes(planeId: string): WorkerTunnel[] {
    return this.#reachable((at) => at !== planeId)
  }

  /** What is online at a plane, as others reach it. */
  ofPlane(planeId: string): WorkerTunnel[] {
    return this.#reachable((at) => at === planeId)
  }

  /** A session of this node, with its plane. */
  heldSession(id: string): (OnlineSession & { readonly planeId: string }) | undefined {
    return this.#sessions.get(id)
  }

  heldTunnel(id: string): { readonly planeId: string; readonly online: OnlineTunnel } | undefined {
    return this.#tunnels.get(id)
  }

  heldAddresses(place: string): readonly HeldAddress[] {
    return this.#addresses.at(place)
  }

  heldTunnelsOf(sessionId: string): { readonly id: string; readonly place: string | undefined }[] {
    const session = this.#sessions.get(sessionId)
    return session ? this.#tunnelsOf(session).map(({ id, online }) => ({ id, place: online.endpoint?.place })) : []
  }

  /** Announces all that is online at this node to the others. */
  announce(): void {
    for (const { session } of this.#sessions.values()) this.#allNodes?.sessionChanged(session.id, { isNew: false })
    for (const { id } of this.#tunnels.values()) this.#allNodes?.tunnelChanged(id, { isNew: false })
    for (const place of this.#addresses.addresses()) this.#allNodes?.addressChanged(place)
  }

  sessionsOf(credentialId: string): readonly string[] {
    return [...this.#byCredential.get(credentialId)]
  }

  credentialsInUse(): ReadonlySet<string> {
    return new Set(this.#byCredential.keys())
  }

  /** Sessions that logged in with a certificate, by its id. */
  sessionsByCertificate(): ReadonlyMap<string, readonly string[]> {
    const found = new Map<string, string[]>()
    for (const { session, certificateId } of this.#sessions.values()) {
      if (certificateId === undefined) continue
      const same = found.get(certificateId)
      if (same) same.push(session.id)
      else found.set(certificateId, [session.id])
    }
    return found
  }

  /** The agent endpoint at an address; for a wildcard also one below it that the wildcard would displace (D66). */
  endpointAt(address: { readonly name: string } | { readonly port: number }): string | undefined {
    const addresses = 'port' in address ? [`:${address.port}`] : [`secure:${address.name}`, `plain:${address.name}`]
    const [there] = addresses.flatMap((place) => this.#addresses.at(place))
    if (there) return endpointIdOf(there)
    if ('port' in address || !address.name.startsWith('*.')) return undefined
    const { name } = address
    const ending = name.slice(1)
    for (const held of this.#addresses.values()) {
      const isBelow = held.config.names.some((each) => each !== name && each.endsWith(ending))
      if (held.isUnnamed && isBelow) return endpointIdOf(held)
    }
    return undefined
  }

  /** The configuration of an agent's endpoint. */
  endpointConfig(id: string): EdgeConfig | undefined {
    return this.#addresses.endpoint(id)?.config
  }

  get sessionCount(): number {
    return this.#sessions.size
  }

  sessions(page: PresencePage): PresentSession[] {
    return this.#sessions.page(page).map(({ session }) => session)
  }

  tunnels(page: PresencePage): PresentTunnel[] {
    return this.#tunnels.page(page).map(({ online }) => online.tunnel)
  }

  endpoints(page: PresencePage): PresentEndpoint[] {
    return this.#endpoints.page(page).flatMap(({ online }) => online.endpoint?.present ?? [])
  }

  endpoint(id: string): PresentEndpoint | undefined {
    return this.#endpoints.get(id)?.online.endpoint?.present
  }

  tunnelsWith(labels: Readonly<Record<string, string>>): string[] {
    return this.#groups.find(labels).map(({ id }) => id)
  }

  /** Whether another tunnel has the place of a tunnel that attaches with its plane. */
  #isTaken(reservation: Reservation): boolean {
    const held = this.#addresses.get(reservation)
    if (held) return !(held.sessionId === reservation.sessionId && this.#leaving.has(held.planeId))
    return this.#addresses.difference(reservation) !== undefined
  }

  #reachable(isMeant: (planeId: string) => boolean): WorkerTunnel[] {
    const labelled = [...this.#tunnels.values()].flatMap(({ id: tunnelId, planeId, httpVersion, labels, online }) =>
      labels && isMeant(planeId)
        ? [{ tunnelId, sessionId: online.tunnel.sessionId, planeId, httpVersion, labels }]
        : [],
    )
    const holders = [...this.#addresses.values()].flatMap((held) => (isMeant(held.planeId) ? [workerTunnel(held)] : []))
    return [...labelled, ...holders]
  }

  #put(planeId: string, online: OnlineTunnel, how: { readonly isNew: boolean }): void {
    const { tunnel, httpVersion, endpoint } = online
    const { id, sessionId, labels } = tunnel
    const before = this.#tunnels.get(id)
    if (before) this.#unlist(before)
    const held: HeldTunnel = { id, planeId, httpVersion, labels, online }
    this.#tunnels.add(id, held)
    if (labels) this.#groups.add(held)
    if (endpoint) this.#endpoints.add(endpoint.present.id, held)
    const session = this.#sessions.get(sessionId)
    if (session?.planeId === planeId) session.tunnels.add(id)
    this.#allNodes?.tunnelChanged(id, how)
  }

  #tunnelsOf({ tunnels }: HeldSession): HeldTunnel[] {
    return [...tunnels].flatMap((id) => this.#tunnels.get(id) ?? [])
  }

  #labelled(tunnels: readonly HeldTunnel[]): FormerLabelTunnel[] {
    return tunnels.flatMap(({ id, labels, online }) => (labels ? [{ id, labels, startedAt: online.startedAt }] : []))
  }

  /** Whether a claim is for a tunnel that moves with its session and is still online at a draining plane. */
  #isMoving(before: HeldAddress, planeId: string, { tunnelId, sessionId }: Reservation): boolean {
    if (before.planeId === planeId || !this.#leaving.has(before.planeId)) return false
    if (before.tunnelId !== tunnelId || before.sessionId !== sessionId) return false
    return this.#tunnels.get(tunnelId)?.planeId === before.planeId
  }

  /** Claims a place at all nodes; frees it here when it is not granted. */
  async #reserveAtAllNodes(held: HeldAddress): Promise<boolean> {
    let isGranted = false
    try {
      isGranted = (await this.#allNodes?.reserve(held)) ?? true
    } finally {
      if (!isGranted && this.#addresses.has(held)) this.#free(held, { isLost: false, wasOurs: false })
    }
    return isGranted
  }

  /** Has every other plane serve a place; resolves with whether it is still held. */
  async #spread(held: HeldAddress): Promise<boolean> {
    // The agent may have come back elsewhere meanwhile.
    if (!this.#addresses.has(held)) return false
    await this.#options.added(workerTunnel(held))
    return this.#addresses.has(held)
  }

  #drop(held: HeldTunnel, { isLost }: { readonly isLost: boolean }): void {
    const { id: tunnelId, planeId, online } = held
    this.#unlist(held)
    const place = online.endpoint && this.#addresses.get(reservationOf(online, online.endpoint))
    if (place?.tunnelId === tunnelId && place.planeId === planeId) this.#free(place, { isLost })
    // Freeing a place tells the others too; a tunnel whose place was freed before needs no news.
    else if (held.labels) this.#options.removed({ tunnelId, planeId, isLost })
  }

  /** Takes a tunnel out of all lists. */
  #unlist(held: HeldTunnel): void {
    const { id, online } = held
    this.#tunnels.delete(id)
    this.#sessions.get(online.tunnel.sessionId)?.tunnels.delete(id)
    if (held.labels) this.#groups.delete(held)
    if (online.endpoint) this.#endpoints.delete(online.endpoint.present.id)
    this.#allNodes?.tunnelChanged(id, { isNew: false })
  }

  /** Drops what held a place before the same agent took it again. */
  #giveUp(before: HeldAddress): void {
    const tunnel = this.#tunnels.get(before.tunnelId)
    if (tunnel) this.#drop(tunnel, { isLost: false })
    if (this.#addresses.has(before)) this.#free(before, { isLost: false })
  }

  #hold(planeId: string, reservation: Reservation): HeldAddress {
    const held = { ...reservation, planeId }
    this.#addresses.add(held)
    this.#allNodes?.addressChanged(reservation.place)
    return held
  }

  #free(held: HeldAddress, { isLost, wasOurs = true }: { readonly isLost: boolean; readonly wasOurs?: boolean }): void {
    const { place, tunnelId, planeId } = held
    this.#addresses.delete(held)
    if (wasOurs) this.#allNodes?.addressLeft(held)
    else this.#allNodes?.addressChanged(place)
    // Another plane has claimed the place for the same session, and is about to serve it.
    const isComing = this.#coming.has(slotOf(held))
    this.#options.removed({ tunnelId, planeId, isLost: isLost || isComing })
  }
}

/** The claim of a tunnel that has its place already. */
function reservationOf({ tunnel: { id: tunnelId, sessionId } }: OnlineTunnel, endpoint: ReservedEndpoint): Reservation {
  const { place, config, version, isUnnamed, pool } = endpoint
  return { place, config, version, isUnnamed, pool, tunnelId, sessionId }
}

/** An endpoint, as it is told to planes that do not have it. */
function workerTunnel({ tunnelId, sessionId, planeId, config, pool }: HeldAddress): WorkerTunnel {
  const httpVersion = pool?.httpVersion ?? httpVersionOf(config)
  return { tunnelId, sessionId, planeId, httpVersion, config, labels: memberLabels({ config, pool }) }
}
