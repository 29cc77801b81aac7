/**
 * What is online at this node, as rows of the database that all nodes read. What changed is only noted, and written in
 * batches as it is by then: so a database that was away misses nothing, and many changes of one thing cost one write.
 */

import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../lib/log/log.ts'
import type { Sealer } from '../lib/secrets/seal.ts'
import { labelTexts } from '../model/label-groups.ts'
import { memberLabels, poolDifference, slotOf } from '../model/pool.ts'
import type { PresentEndpoint, PresentTunnel } from '../model/presence.ts'
import type { OnlineSession, OnlineTunnel, PlaceClaim } from '../planes/port.ts'
import type { Change } from '../store/feed.ts'
import { ENOUGH, gatherMs } from '../store/gather-time.ts'
import type { StoredHeldPlace } from '../store/online-rows.ts'
import type { FoundHolder, OnlineWriter } from '../store/online-writer.ts'
import type { Store } from '../store/store.ts'
import type { Writer } from '../store/writer.ts'
import { decideClaim, termsOf } from './decide-claim.ts'
import { type LocatedClaim, piecesOf, type RowBatch, type WaitingClaim } from './row-batch.ts'

/** What is online here, by id; undefined for what is not. */
export interface HeldHere {
  session(id: string): ({ readonly planeId: string } & OnlineSession) | undefined
  tunnel(id: string): { readonly planeId: string; readonly online: OnlineTunnel } | undefined
  /** Several where they are in a pool. */
  places(place: string): readonly ({ readonly planeId: string } & PlaceClaim)[]
  tunnelsOf(sessionId: string): readonly { readonly id: string; readonly place: string | undefined }[]
}

export interface OnlineRowsOptions {
  readonly store: Store
  readonly sealer: Sealer
  readonly nodeId: string
  readonly held: HeldHere
  readonly log: Logger
  /** The lease of this node has run out, so that nothing was written. */
  readonly onLeaseLost: () => void
  /** A place that is held here is somebody else's by now. */
  readonly onPlaceTaken: (place: PlaceClaim) => void
  /** The agent of a session that is held here has come back at another node. */
  readonly onSessionTaken: (sessionId: string) => void
}

/** The kinds of changes that other nodes follow. */
export const PORT_CHANGED = 'port'
export const SESSION_MOVED = 'session'
export const NODE_LEAVES = 'node'

/** How long what nobody waits for is gathered, in milliseconds: a session, and a moment later its tunnels. */
const GATHER_MS = 50

/** How long the agent of a place that is still ours waits until others can read what it is now, in milliseconds. */
const RENEW_MS = 1000

/** Sessions that were here lately and are remembered, by id; more than a node has agents. */
const MAX_REMEMBERED = 100_000

/** How many of the moves that this node has caused are remembered until the feed tells of them. */
const MAX_MOVES = 10_000

/** Between two tries while the database is away, in milliseconds. */
const RETRY_MS = 500

export class LeaseLost extends Error {
  constructor() {
    super('the lease of this node has run out')
    this.name = 'LeaseLost'
  }
}

export class OnlineRows {
  readonly #options: OnlineRowsOptions
  #sessions = new Map<string, boolean>()
  #tunnels = new Map<string, boolean>()
  #places = new Set<string>()
  #claims: WaitingClaim[] = []
  /** Claims that nobody has decided on yet. */
  readonly #asked = new Set<PlaceClaim>()
  /** Who had a slot here when it was last given up, until that is being written: in the database it is theirs still. */
  readonly #left = new Map<string, PlaceClaim>()
  /** The same, of which the transaction that is under way tells the database: from then on the place is anybody's. */
  readonly #told = new Map<string, PlaceClaim>()
  /** Ids of sessions that are or were here, the latest at the end. */
  readonly #seen = new Set<string>()
  /** Ids of sessions that came here from other nodes, by the revision that says so. */
  readonly #moves = new Map<number, string>()
  #writing: Promise<void> | undefined
  /** Resolves when the batch that is being written is, or cannot be; and the same for what waits. */
  #current: Promise<void> | undefined
  #next = Promise.withResolvers<void>()
  #timer: NodeJS.Timeout | undefined
  #isAway = false
  #isClosed = false

  constructor(options: OnlineRowsOptions) {
    this.#options = options
  }

  /** How much is not written yet. */
  get waiting(): number {
    return this.#sessions.size + this.#tunnels.size + this.#places.size + this.#claims.length
  }

  /** Whether a session is online here, or was lately. */
  hasSeen(sessionId: string): boolean {
    return this.#seen.has(sessionId)
  }

  /** Whether a change says that a session has moved to this node, which is no news here; true once. */
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

  placeChanged(place: string): void {
    this.#places.add(place)
    this.#writeSoon(GATHER_MS)
  }

  placeLeft(claim: PlaceClaim): void {
    // What was not granted yet was never ours.
    if (!this.#asked.has(claim)) this.#left.set(slotOf(claim), claim)
    this.placeChanged(claim.place)
  }

  /** Whether the place is this tunnel's, at all nodes; rejects when the database does not say. */
  claim(claim: LocatedClaim): Promise<boolean> {
    if (this.#isOursStill(claim)) return this.#renew(claim)
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    this.#asked.add(claim)
    this.#claims.push({ claim, resolve, reject })
    this.#writeSoon(0)
    return promise.finally(() => this.#asked.delete(claim))
  }

  /** Writes what waits; resolves when that is done, or the database is away. */
  async written(): Promise<void> {
    while (this.waiting > 0 && !this.#isAway && !this.#isClosed) {
      this.#writeSoon(0)
      await this.#writing
    }
  }

  /** Resolves when what was noted until now is written, or the database is away. */
  async noted(): Promise<void> {
    if (this.#isAway || this.#isClosed) return
    if (this.waiting === 0) return this.#current
    const { promise } = this.#next
    this.#writeSoon(0)
    // Not for all that is being written: claims of others may come all the while.
    await promise
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#writing
    this.#next.resolve()
    for (const { reject } of this.#claims.splice(0)) reject(new Error('the node stops'))
  }

  /** Its agent is back before the database was told that it had gone: the place is still ours there, away or not. */
  #isOursStill(claim: PlaceClaim): boolean {
    return this.#left.get(slotOf(claim))?.sessionId === claim.sessionId
  }

  /** Visitors at other nodes find what the place is now, unless the database takes long: then they ask once more. */
  async #renew({ place }: LocatedClaim): Promise<boolean> {
    this.placeChanged(place)
    await Promise.race([this.noted(), pause(RENEW_MS, undefined, { ref: false })])
    return true
  }

  #remember(sessionId: string): void {
    this.#seen.delete(sessionId)
    this.#seen.add(sessionId)
    const [oldest] = this.#seen
    if (this.#seen.size > MAX_REMEMBERED && oldest !== undefined) this.#seen.delete(oldest)
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
    // What else comes in this turn of the event loop goes along.
    this.#writing ??= Promise.resolve()
      .then(() => this.#writeAll())
      .finally(() => {
        this.#writing = undefined
        if (this.waiting > 0) this.#writeSoon(GATHER_MS)
      })
  }

  async #writeAll(): Promise<void> {
    // Whoever claims a place waits; the rest may gather.
    for (let begunAt = performance.now(); ; begunAt = performance.now()) {
      const batch = { sessions: this.#sessions, tunnels: this.#tunnels, places: this.#places, claims: this.#claims }
      this.#sessions = new Map()
      this.#tunnels = new Map()
      this.#places = new Set()
      this.#claims = []
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
      // In a crowd more come within a moment, even when nobody waits just now.
      const { length } = batch.claims
      if (this.#isClosed || (this.#claims.length === 0 && length <= 1)) return
      if (this.#claims.length < ENOUGH) await pause(Math.max(0, begunAt + gatherMs(length) - performance.now()))
      if (this.#claims.length === 0) return
    }
  }

  async #writeBatch(batch: RowBatch): Promise<void> {
    const { store, nodeId, onPlaceTaken, onSessionTaken } = this.#options
    const outcome = await store.write(async (writer) => {
      // Locked until the end of the transaction: nobody sweeps what is written here.
      if (!(await writer.online.holdLease(nodeId))) throw new LeaseLost()
      const sessions = await this.#writeSessions(writer.online, batch.sessions)
      await this.#writeTunnels(writer.online, batch.tunnels)
      return { sessions, ...(await this.#writePlaces(writer, batch)) }
    })
    this.#told.clear()
    for (const { claim, resolve } of batch.claims) resolve(!outcome.refused.has(claim))
    for (const claim of outcome.taken) onPlaceTaken(claim)
    for (const id of outcome.sessions) onSessionTaken(id)
  }

  /** Gives the ids of those that another node has by now. */
  async #writeSessions(online: OnlineWriter, ids: RowBatch['sessions']): Promise<readonly string[]> {
    const { nodeId, held } = this.#options
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
    const [come, announced] = parted(rows, ({ id }) => ids.get(id) === true)
    await online.putSessions(come)
    const kept = new Set(await online.keepSessions(announced))
    await online.removeSessions(nodeId, gone)
    return announced.flatMap(({ id }) => (kept.has(id) ? [] : [id]))
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
    const [come, announced] = parted(rows, ({ id }) => ids.get(id) === true)
    await online.putTunnels(come)
    await online.keepTunnels(announced)
  }

  /** Gives places to claims, and gives up those that nobody has here any more. */
  async #writePlaces(
    writer: Writer,
    batch: RowBatch,
  ): Promise<{ refused: ReadonlySet<PlaceClaim>; taken: PlaceClaim[] }> {
    const { nodeId } = this.#options
    const { online } = writer
    // Of two claims of one slot in a batch the later is the same agent's, or this node would not have asked for it.
    const claims = Map.groupBy(
      new Map(batch.claims.map(({ claim }) => [slotOf(claim), claim])).values(),
      ({ place }) => place,
    )
    const all = [...new Set([...claims.keys(), ...batch.places])]
    if (all.length === 0) return { refused: new Set(), taken: [] }
    const locked = await online.lockPlaces(all)
    this.#tell(new Set(all))
    const settled = locked.map((row) => this.#settle(row, claims.get(row.place) ?? []))
    for (const { sessionId } of settled.flatMap(({ movedHere }) => movedHere)) {
      // Its node learns it from the feed, even when it cannot be reached.
      writer.changed(SESSION_MOVED, sessionId, (revision) => this.#noteMove(revision, sessionId))
    }
    await online.dropHolders(settled.flatMap(({ dropped }) => dropped))
    await online.setPlaces(settled.flatMap(({ given: [first] }) => (first ? [this.#placeRow(first)] : [])))
    await online.putHolders(
      settled.flatMap(({ given }) =>
        given.map(({ place, tunnelId, sessionId, planeId, version, pool }) => ({
          ...{ place, slot: pool ? tunnelId : '', tunnelId, sessionId, nodeId, planeId, version },
        })),
      ),
    )
    await online.dropEmptyPlaces(settled.flatMap(({ place, given }) => (given.length > 0 ? [] : [place])))
    for (const { place, given, dropped } of settled) {
      const port = portOf(place)
      if (port !== null && given.length + dropped.length > 0) writer.changed(PORT_CHANGED, String(port))
    }
    return {
      refused: new Set(settled.flatMap(({ refused }) => refused)),
      taken: settled.flatMap(({ taken }) => taken),
    }
  }

  /** Whoever comes back to one of these places from now on has to ask for it. */
  #tell(places: ReadonlySet<string>): void {
    for (const [slot, claim] of this.#left) {
      if (!places.has(claim.place)) continue
      this.#left.delete(slot)
      this.#told.set(slot, claim)
    }
  }

  /** The database was not told after all; who came back meanwhile need not ask. */
  #takeBack(): void {
    for (const [slot, claim] of this.#told) if (!this.#left.has(slot)) this.#left.set(slot, claim)
    this.#told.clear()
    const [ours, asked] = parted(this.#claims, ({ claim }) => this.#isOursStill(claim))
    this.#claims = asked
    for (const { claim, resolve } of ours) {
      this.#places.add(claim.place)
      resolve(true)
    }
  }

  /** What becomes of one place, which is locked. */
  #settle(row: StoredHeldPlace<FoundHolder>, claims: readonly LocatedClaim[]) {
    const { nodeId, held } = this.#options
    const { place, holders } = row
    const here = held.places(place)
    const isHere = ({ tunnelId, sessionId }: PlaceClaim): boolean =>
      here.some((each) => each.tunnelId === tunnelId && each.sessionId === sessionId)
    // Whoever did not wait for the answer has given the place up, and nobody would ever remove the row.
    const [wanted, refused] = parted(claims, isHere)
    const granted: LocatedClaim[] = []
    const dropped = new Set(holders.filter((holder) => holder.nodeId === nodeId || !holder.isAlive))
    const movedHere: FoundHolder[] = []
    for (const claim of wanted) {
      const decision = decideClaim({ ...claim, nodeId }, row)
      if (!decision.isGranted) {
        refused.push(claim)
        continue
      }
      granted.push(claim)
      for (const holder of decision.replaced) {
        dropped.add(holder)
        if (holder.isAlive && holder.nodeId !== nodeId) movedHere.push(holder)
      }
    }
    const asked = new Set(wanted.map(slotOf))
    const announced = here.filter((claim) => !asked.has(slotOf(claim)))
    const others = holders.filter((holder) => !dropped.has(holder))
    const [taken, kept] = parted(announced, (claim) =>
      others.some(
        (holder) => holder.tunnelId === claim.tunnelId || poolDifference(claim, termsOf(row, holder)) !== undefined,
      ),
    )
    return { place, refused, taken, given: [...granted, ...kept], dropped: [...dropped], movedHere }
  }

  #placeRow({ place, config, isUnnamed, pool, version }: PlaceClaim) {
    const sealed = this.#options.sealer.seal(JSON.stringify(config), placeContext(place))
    const terms = { ownerId: pool?.ownerId ?? '', isPooled: pool !== undefined, digest: pool ? version : '' }
    return { place, ...terms, isUnnamed, port: portOf(place), config: sealed }
  }

  #failed(pieces: readonly RowBatch[], err: unknown): void {
    const { log, onLeaseLost } = this.#options
    for (const batch of pieces) {
      for (const [id, isNew] of batch.sessions) this.sessionChanged(id, { isNew })
      for (const [id, isNew] of batch.tunnels) this.tunnelChanged(id, { isNew })
      for (const place of batch.places) this.#places.add(place)
      // Whether they were granted is not known; whoever asked gives up, and what it may have been given is looked at again.
      for (const { claim, reject } of batch.claims) {
        this.#places.add(claim.place)
        reject(err)
      }
    }
    this.#takeBack()
    if (err instanceof LeaseLost) onLeaseLost()
    else log.warn({ err, waiting: this.waiting }, 'what is online here cannot be written; retrying')
    this.#isAway = true
    this.#timer = setTimeout(() => {
      this.#isAway = false
      this.#begin()
    }, RETRY_MS).unref()
  }
}

/** What is kept of a tunnel. */
export interface KeptTunnel {
  readonly tunnel: PresentTunnel
  readonly startedAt: number
  readonly httpVersion: 1 | 2
  readonly endpoint: PresentEndpoint | undefined
  /** The pool that it is in. */
  readonly pool?: { readonly labels: Readonly<Record<string, string>>; readonly version: string } | undefined
}

/** What the configuration of a place is sealed for: it has the secrets of its guards. */
export function placeContext(place: string): string {
  return `places/${place}`
}

function portOf(place: string): number | null {
  return place.startsWith(':') ? Number(place.slice(1)) : null
}

/** What is there, and the ids of what is not. */
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

function parted<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))]
}
