/**
 * Writes what is online at this node to the database, as rows that all nodes read.
 *
 * One thing: what is marked, batched and written is one queue.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { OnlineSession, OnlineTunnel, Reservation } from '../../link/planes/plane-calls.ts'
import { labelTexts } from '../../model/label-groups.ts'
import { memberLabels, poolDifference, slotOf } from '../../model/pool.ts'
import type { PresentEndpoint, PresentTunnel } from '../../model/presence.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { Change } from '../store/feed.ts'
import { ENOUGH, gatherMs } from '../store/gather-time.ts'
import type { StoredHeldAddress } from '../store/online-rows.ts'
import type { FoundHolder, OnlineWriter } from '../store/online-writer.ts'
import type { Writer } from '../store/writer.ts'
import { decideReservation, termsOf } from './decide-address.ts'
import { RETURN_MS } from './node-lease.ts'
import { type LocatedReservation, piecesOf, type RowBatch, type WaitingReservation } from './row-batch.ts'

/** What is online here, by id; undefined for what is not. */
export interface HeldHere {
  session(id: string): ({ readonly planeId: string } & OnlineSession) | undefined
  tunnel(id: string): { readonly planeId: string; readonly online: OnlineTunnel } | undefined
  /** Several where they are in a pool. */
  addresses(place: string): readonly ({ readonly planeId: string } & Reservation)[]
  tunnelsOf(sessionId: string): readonly { readonly id: string; readonly place: string | undefined }[]
}

interface OnlineRowsOptions extends Pick<ControlTools, 'store' | 'sealer' | 'log'> {
  readonly nodeId: string
  readonly held: HeldHere
  /** Called when nothing was written because the lease of this node has expired. */
  readonly onLeaseLost: () => void
  /** Whether this node has or had lost its lease, so that agents that left it may be on their way back. */
  readonly isShaken: () => boolean
  /** Whether lost nodes have all these places no longer; never rejects. */
  readonly areFree: (holders: readonly FoundHolder[]) => Promise<boolean>
  /** Called when another node has taken a place that was held here. */
  readonly onAddressTaken: (place: Reservation) => void
  /** Called when the agent of a session here has come back at another node. */
  readonly onSessionTaken: (sessionId: string) => void
}

/** The kinds of changes that other nodes follow. */
export const PORT_CHANGED = 'port'
export const SESSION_MOVED = 'session'
export const NODE_LEAVES = 'node'

/** How long changes that nobody waits for are gathered, in milliseconds: a session is soon followed by its tunnels. */
const GATHER_MS = 50

/** How long an agent that takes back a place waits until other nodes can read the new row, in milliseconds. */
const RENEW_MS = 1000

/** How many ids of current and recent sessions are remembered; more than a node has agents. */
const MAX_REMEMBERED = 100_000

/** How many moves made by this node are remembered until the feed reports them. */
const MAX_MOVES = 10_000

/** The node of a holder that left this node after it had lost its lease. */
const LEFT_HERE = ''

/** Most refused claims that may be made again. */
const MAX_DOUBTS = 10_000

/** Pause between retries while the database is down, in milliseconds. */
const RETRY_MS = 500

class LeaseLost extends Error {
  constructor() {
    super('the lease of this node has expired')
    this.name = 'LeaseLost'
  }
}

/**
 * A change only marks its row; the next batch writes the row as it is by then. So nothing is lost while the database is
 * down, and many changes of a row cost one write.
 */
export class OnlineRows {
  readonly #options: OnlineRowsOptions
  #sessions = new Map<string, boolean>()
  #tunnels = new Map<string, boolean>()
  #addresses = new Set<string>()
  #reservations: WaitingReservation[] = []
  /** Claims that are not decided yet. */
  readonly #asked = new Set<Reservation>()
  /** Claims that were refused since only lost nodes have their places: by claim, the holders there. */
  readonly #inDoubt = new Map<string, readonly FoundHolder[]>()
  /** Places that are kept for agents that left this node after it had lost its lease. */
  readonly #kept = new Map<string, NodeJS.Timeout>()
  /** Holders at lost nodes that have their place no longer, by the claim that follows. */
  readonly #freed = new Map<string, readonly FoundHolder[]>()
  /** Claims given up here that the database still shows as held, by slot; until their release is being written. */
  readonly #givenUp = new Map<string, Reservation>()
  /** Claims that the current transaction releases; once it commits, anybody may take their places. */
  readonly #releasing = new Map<string, Reservation>()
  /** Ids of sessions that are or were here, the latest at the end. */
  readonly #seen = new Set<string>()
  /** Ids of sessions that came here from other nodes, by the revision of that change. */
  readonly #moves = new Map<number, string>()
  #writing: Promise<void> | undefined
  /** Resolves when the batch being written has succeeded or failed; `#next` does so for the batch after it. */
  #current: Promise<void> | undefined
  #next = Promise.withResolvers<void>()
  #timer: NodeJS.Timeout | undefined
  #isAway = false
  #isClosed = false

  constructor(options: OnlineRowsOptions) {
    this.#options = options
  }

  /** How many changes are not written yet. */
  get waiting(): number {
    return this.#sessions.size + this.#tunnels.size + this.#addresses.size + this.#reservations.length
  }

  /** Whether a session is online here, or was lately. */
  hasSeen(sessionId: string): boolean {
    return this.#seen.has(sessionId)
  }

  /** Whether a change reports a session's move to this node, which this node made itself; true once for each move. */
  causedMove({ revision, id }: Change): boolean {
    return this.#moves.get(revision) === id && this.#moves.delete(revision)
  }

  sessionChanged(id: string, { isNew = false } = {}): void {
    if (this.#options.held.session(id)) this.#remember(id)
    this.#sessions.set(id, isNew || this.#sessions.get(id) === true)
    this.#writeSoon(GATHER_MS)
  }

  tunnelChanged(id: string, { isNew = false } = {}): void {
    this.#tunnels.set(id, isNew || this.#tunnels.get(id) === true)
    this.#writeSoon(GATHER_MS)
  }

  addressChanged(place: string): void {
    this.#addresses.add(place)
    this.#writeSoon(GATHER_MS)
  }

  addressLeft(reservation: Reservation): void {
    // A claim that was not granted yet never held the place.
    if (!this.#asked.has(reservation)) this.#givenUp.set(slotOf(reservation), reservation)
    this.addressChanged(reservation.place)
  }

  /** Resolves with whether the tunnel gets the place at all nodes; rejects when the database does not answer. */
  reserve(reservation: LocatedReservation): Promise<boolean> {
    if (this.#isOursStill(reservation)) return this.#renew(reservation)
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#asked.add(reservation)
    this.#reservations.push({ reservation, resolve, reject })
    this.#writeSoon(0)
    return promise.finally(() => {
      this.#asked.delete(reservation)
      this.#freed.delete(reservationKey(reservation))
    })
  }

  /**
   * D56: whether a claim that was just refused may be made again, since only lost nodes had the place, and by now it is free
   * there. They are asked while nothing is held or locked: the agent that has the place may come here.
   */
  async isFreed(reservation: Reservation): Promise<boolean> {
    const key = reservationKey(reservation)
    const lost = this.#inDoubt.get(key)
    this.#inDoubt.delete(key)
    if (!lost || !(await this.#options.areFree(lost))) return false
    this.#freed.set(key, lost)
    return true
  }

  /** Writes all that waits; resolves when that is done, or the database is down. */
  async written(): Promise<void> {
    while (this.waiting > 0 && !this.#isAway && !this.#isClosed) {
      this.#writeSoon(0)
      await this.#writing
    }
  }

  /** Resolves when all changes so far are written, or the database is down. */
  async noted(): Promise<void> {
    if (this.#isAway || this.#isClosed) return
    if (this.waiting === 0) return this.#current
    const { promise } = this.#next
    this.#writeSoon(0)
    // Waits for one batch only, since new claims may keep arriving.
    await promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    for (const timer of this.#kept.values()) clearTimeout(timer)
    await this.#writing
    this.#next.resolve()
    for (const { reject } of this.#reservations.splice(0)) reject(new Error('this node is stopping'))
  }

  /** The agent is back before its release was written: in the database it still holds the place, reachable or not. */
  #isOursStill(reservation: Reservation): boolean {
    return this.#givenUp.get(slotOf(reservation))?.sessionId === reservation.sessionId
  }

  /** Waits until other nodes can read the new row. Not for a slow database: a node with the old row looks up again. */
  async #renew({ place }: LocatedReservation): Promise<boolean> {
    this.addressChanged(place)
    await Promise.race([this.noted(), pause(RENEW_MS, undefined, { ref: false })])
    return true
  }

  #remember(sessionId: string): void {
    this.#seen.delete(sessionId)
    this.#seen.add(sessionId)
    const [oldest] = this.#seen
    if (this.#seen.size > MAX_REMEMBERED && oldest !== undefined) this.#seen.delete(oldest)
  }

  /** Looks again whether a place that was kept for an agent of this node is free. */
  #releaseLater(place: string): void {
    if (this.#kept.has(place)) return
    const timer = setTimeout(() => {
      this.#kept.delete(place)
      this.addressChanged(place)
    }, RETURN_MS).unref()
    this.#kept.set(place, timer)
  }

  #noteDoubt(key: string, lost: readonly FoundHolder[]): void {
    this.#inDoubt.set(key, lost)
    const [oldest] = this.#inDoubt.keys()
    if (this.#inDoubt.size > MAX_DOUBTS && oldest !== undefined) this.#inDoubt.delete(oldest)
  }

  #noteMove(revision: number, sessionId: string): void {
    this.#moves.set(revision, sessionId)
    const [oldest] = this.#moves.keys()
    if (this.#moves.size > MAX_MOVES && oldest !== undefined) this.#moves.delete(oldest)
  }

  #writeSoon(afterMs: number): void {
    if (this.#isClosed || this.#isAway || this.#writing) return
    if (afterMs > 0) {
      this.#timer ??= setTimeout(() => this.#begin(), afterMs).unref()
      return
    }
    this.#begin()
  }

  #begin(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    // Other changes in this turn of the event loop join the batch.
    this.#writing ??= Promise.resolve()
      .then(() => this.#writeAll())
      .finally(() => {
        this.#writing = undefined
        if (this.waiting > 0) this.#writeSoon(GATHER_MS)
      })
  }

  async #writeAll(): Promise<void> {
    // An agent waits for its claim, so the next batch follows at once; other changes may gather.
    for (let begunAt = performance.now(); ; begunAt = performance.now()) {
      const batch = {
        sessions: this.#sessions,
        tunnels: this.#tunnels,
        addresses: this.#addresses,
        reservations: this.#reservations,
      }
      this.#sessions = new Map()
      this.#tunnels = new Map()
      this.#addresses = new Set()
      this.#reservations = []
      const { promise, resolve } = this.#next
      this.#current = promise
      this.#next = Promise.withResolvers()
      const pieces = piecesOf(batch)
      try {
        for (let piece = pieces[0]; piece; piece = pieces[0]) {
          await this.#writeBatch(piece)
          pieces.shift()
        }
      } catch (err) {
        this.#failed(pieces, err)
        this.#next.resolve()
        this.#next = Promise.withResolvers()
        return
      } finally {
        this.#current = undefined
        resolve()
      }
      // In a crowd, more claims arrive within moments even when none waits right now.
      const { length } = batch.reservations
      if (this.#isClosed || (this.#reservations.length === 0 && length <= 1)) return
      if (this.#reservations.length < ENOUGH) await pause(Math.max(0, begunAt + gatherMs(length) - performance.now()))
      if (this.#reservations.length === 0) return
    }
  }

  async #writeBatch(batch: RowBatch): Promise<void> {
    const { store, nodeId, onAddressTaken, onSessionTaken } = this.#options
    const outcome = await store.write(async (writer) => {
      // The lease stays locked until the transaction ends, so that no node sweeps what is written here.
      if (!(await writer.online.holdLease(nodeId))) throw new LeaseLost()
      const sessions = await this.#writeSessions(writer, batch.sessions)
      await this.#writeTunnels(writer.online, batch.tunnels)
      return { sessions, ...(await this.#writeAddresses(writer, batch)) }
    })
    this.#releasing.clear()
    for (const [reservation, lost] of outcome.inDoubt) this.#noteDoubt(reservationKey(reservation), lost)
    for (const { reservation, resolve } of batch.reservations) resolve(!outcome.refused.has(reservation))
    for (const reservation of outcome.taken) onAddressTaken(reservation)
    for (const id of outcome.sessions) onSessionTaken(id)
  }

  /** Returns the ids of sessions that another node has by now. */
  async #writeSessions(writer: Writer, ids: RowBatch['sessions']): Promise<readonly string[]> {
    const { nodeId, held } = this.#options
    const { online } = writer
    const [there, gone] = split(ids.keys(), (id) => held.session(id))
    const rows = there.map(({ planeId, session, certificateId }) => {
      const { id, credentialId } = session
      return {
        id,
        nodeId,
        planeId,
        credentialId,
        certificateId: certificateId ?? null,
        fields: JSON.stringify(session),
      }
    })
    const kept = new Set(await online.keepSessions(rows))
    const atOthers = rows.filter(({ id }) => !kept.has(id))
    const [come, announced] = partition(atOthers, ({ id }) => ids.get(id) === true)
    await online.putSessions(come)
    for (const { id } of come) this.#cameHere(writer, id)
    await online.removeSessions(nodeId, gone)
    return announced.map(({ id }) => id)
  }

  /** The former node of a session learns of the move from the feed, even when it was not asked or cannot be reached. */
  #cameHere(writer: Writer, sessionId: string): void {
    writer.changed(SESSION_MOVED, sessionId, (revision) => this.#noteMove(revision, sessionId))
  }

  async #writeTunnels(online: OnlineWriter, ids: RowBatch['tunnels']): Promise<void> {
    const { nodeId, held } = this.#options
    const [there, gone] = split(ids.keys(), (id) => held.tunnel(id))
    await online.removeTunnels(nodeId, gone)
    const rows = there.map(({ planeId, online: { tunnel, startedAt, httpVersion, endpoint } }) => {
      const { id, sessionId, labels = {} } = tunnel
      const poolOf = endpoint && memberLabels(endpoint)
      const pairs = labelTexts(poolOf ?? labels)
      const pool = poolOf && endpoint && { labels: poolOf, version: endpoint.version }
      const kept: KeptTunnel = { tunnel, startedAt, httpVersion, endpoint: endpoint?.present, pool }
      const endpointId = endpoint?.present.id ?? null
      return { id, nodeId, planeId, sessionId, endpointId, fields: JSON.stringify(kept), pairs }
    })
    const [come, announced] = partition(rows, ({ id }) => ids.get(id) === true)
    await online.putTunnels(come)
    await online.keepTunnels(announced)
  }

  /** Grants places to claims, and releases those that nobody here holds any more. */
  async #writeAddresses(
    writer: Writer,
    batch: RowBatch,
  ): Promise<{
    refused: ReadonlySet<Reservation>
    inDoubt: ReadonlyMap<Reservation, readonly FoundHolder[]>
    taken: Reservation[]
  }> {
    const { nodeId } = this.#options
    const { online } = writer
    // When a batch has two claims for one slot, both are the same agent's, or this node would not have made the later one.
    const reservations = Map.groupBy(
      new Map(batch.reservations.map(({ reservation }) => [slotOf(reservation), reservation])).values(),
      ({ place }) => place,
    )
    const all = [...new Set([...reservations.keys(), ...batch.addresses])]
    if (all.length === 0) return { refused: new Set(), inDoubt: new Map(), taken: [] }
    const locked = await online.lockAddresses(all)
    this.#startRelease(new Set(all))
    const settled = locked.map((row) => this.#settle(row, reservations.get(row.place) ?? []))
    for (const { sessionId } of settled.flatMap(({ movedHere }) => movedHere)) {
      this.#cameHere(writer, sessionId)
    }
    await online.dropHolders(settled.flatMap(({ dropped }) => dropped))
    await online.setAddresses(settled.flatMap(({ given: [first] }) => (first ? [this.#addressRow(first)] : [])))
    await online.putHolders(
      settled.flatMap(({ given }) =>
        given.map(({ place, tunnelId, sessionId, planeId, version, pool }) => ({
          ...{ place, slot: pool ? tunnelId : '', tunnelId, sessionId, nodeId, planeId, version },
        })),
      ),
    )
    await online.dropEmptyAddresses(settled.flatMap(({ place, given }) => (given.length > 0 ? [] : [place])))
    for (const { place, given, dropped } of settled) {
      const port = portOf(place)
      if (port !== null && given.length + dropped.length > 0) writer.changed(PORT_CHANGED, String(port))
    }
    return {
      refused: new Set(settled.flatMap(({ refused }) => refused)),
      inDoubt: new Map(settled.flatMap(({ inDoubt }) => [...inDoubt])),
      taken: settled.flatMap(({ taken }) => taken),
    }
  }

  /** From now on, an agent that comes back to one of these places has to claim it again. */
  #startRelease(addresses: ReadonlySet<string>): void {
    for (const [slot, reservation] of this.#givenUp) {
      if (!addresses.has(reservation.place)) continue
      this.#givenUp.delete(slot)
      this.#releasing.set(slot, reservation)
    }
  }

  /** The release was not written: agents that came back meanwhile still hold their places. */
  #undoRelease(): void {
    for (const [slot, reservation] of this.#releasing)
      if (!this.#givenUp.has(slot)) this.#givenUp.set(slot, reservation)
    this.#releasing.clear()
    const [ours, asked] = partition(this.#reservations, ({ reservation }) => this.#isOursStill(reservation))
    this.#reservations = asked
    for (const { reservation, resolve } of ours) {
      this.#addresses.add(reservation.place)
      resolve(true)
    }
  }

  /** Decides who holds one place, whose row is locked. */
  #settle(row: StoredHeldAddress<FoundHolder>, reservations: readonly LocatedReservation[]) {
    const { nodeId, held } = this.#options
    const { place, holders: found } = row
    const here = held.addresses(place)
    const isHere = ({ tunnelId, sessionId }: Reservation): boolean =>
      here.some((each) => each.tunnelId === tunnelId && each.sessionId === sessionId)
    // A tunnel that ended before the answer is not granted its place: nobody would ever remove the row.
    const [wanted, refused] = partition(reservations, isHere)
    const granted: LocatedReservation[] = []
    const inDoubt = new Map<Reservation, readonly FoundHolder[]>()
    // D56: what an agent left at a node that stood still is kept for it and its owner for a while, as at a lost node.
    const isShaken = this.#options.isShaken()
    const ownState = (each: FoundHolder): FoundHolder =>
      isShaken && each.nodeId === nodeId && !here.some(({ tunnelId }) => tunnelId === each.tunnelId)
        ? { ...each, nodeId: LEFT_HERE, isAlive: false, isLost: true }
        : each
    const holders = found.map(ownState)
    if (holders.some((each) => each.nodeId === LEFT_HERE)) this.#releaseLater(place)
    const dropped = new Set(holders.filter((each) => each.nodeId === nodeId || !(each.isAlive || each.isLost)))
    const movedHere: FoundHolder[] = []
    for (const reservation of wanted) {
      const free = holders.filter(
        (holder) => holder.isLost && isAmong(holder, this.#freed.get(reservationKey(reservation))),
      )
      const left = { ...row, holders: holders.filter((holder) => !free.includes(holder)) }
      const decision = decideReservation({ ...reservation, nodeId, ownerId: ownerOf(reservation) }, left)
      if (!decision.isGranted) {
        refused.push(reservation)
        if (decision.lost.length > 0) inDoubt.set(reservation, decision.lost)
        continue
      }
      granted.push(reservation)
      for (const holder of free) dropped.add(holder)
      for (const holder of decision.replaced) {
        dropped.add(holder)
        if (holder.isAlive && holder.nodeId !== nodeId) movedHere.push(holder)
      }
    }
    const asked = new Set(wanted.map(slotOf))
    const announced = here.filter((reservation) => !asked.has(slotOf(reservation)))
    const others = holders.filter((holder) => !dropped.has(holder))
    const [taken, kept] = partition(announced, (reservation) =>
      others.some(
        (holder) =>
          holder.tunnelId === reservation.tunnelId || poolDifference(reservation, termsOf(row, holder)) !== undefined,
      ),
    )
    return { place, refused, inDoubt, taken, given: [...granted, ...kept], dropped: [...dropped], movedHere }
  }

  #addressRow(reservation: Reservation) {
    const { place, config, isUnnamed, pool, version } = reservation
    const sealed = this.#options.sealer.seal(JSON.stringify(config), addressContext(place))
    const terms = { ownerId: ownerOf(reservation), isPooled: pool !== undefined, digest: pool ? version : '' }
    return { place, ...terms, isUnnamed, port: portOf(place), config: sealed }
  }

  #failed(pieces: readonly RowBatch[], err: unknown): void {
    const { log, onLeaseLost } = this.#options
    for (const batch of pieces) {
      for (const [id, isNew] of batch.sessions) this.sessionChanged(id, { isNew })
      for (const [id, isNew] of batch.tunnels) this.tunnelChanged(id, { isNew })
      for (const place of batch.addresses) this.#addresses.add(place)
      // Whether the claim was granted is unknown: its agent is refused, and the place is written again as it is held here.
      for (const { reservation, reject } of batch.reservations) {
        this.#addresses.add(reservation.place)
        reject(err)
      }
    }
    this.#undoRelease()
    if (err instanceof LeaseLost) onLeaseLost()
    else log.warn({ err, waiting: this.waiting }, 'cannot write online sessions and tunnels to the database; retrying')
    this.#isAway = true
    this.#timer = setTimeout(() => {
      this.#isAway = false
      this.#begin()
    }, RETRY_MS).unref()
  }
}

/** A tunnel as it is stored. */
export interface KeptTunnel {
  readonly tunnel: PresentTunnel
  readonly startedAt: number
  readonly httpVersion: 1 | 2
  readonly endpoint: PresentEndpoint | undefined
  /** The pool that it is in. */
  readonly pool?: { readonly labels: Readonly<Record<string, string>>; readonly version: string } | undefined
}

/** The context under which a place's configuration is sealed; it holds the secrets of guards. */
export function addressContext(place: string): string {
  return `places/${place}`
}

/** The same when a claim is made again. */
function reservationKey({ place, tunnelId, sessionId }: Reservation): string {
  return `${place} ${tunnelId} ${sessionId}`
}

function ownerOf({ pool, config }: Reservation): string {
  return pool?.ownerId ?? config.ownerId ?? ''
}

function isAmong({ nodeId, slot, tunnelId }: FoundHolder, holders: readonly FoundHolder[] = []): boolean {
  return holders.some((each) => each.nodeId === nodeId && each.slot === slot && each.tunnelId === tunnelId)
}

function portOf(place: string): number | null {
  return place.startsWith(':') ? Number(place.slice(1)) : null
}

/** The values that were found, and the ids of those that were not. */
function split<T>(ids: Iterable<string>, find: (id: string) => T | undefined): readonly [T[], string[]] {
  const there: T[] = []
  const gone: string[] = []
  for (const id of ids) {
    const found = find(id)
    if (found === undefined) gone.push(id)
    else there.push(found)
  }
  return [there, gone]
}

function partition<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))]
}
