/** Counters of a whole node: each key has one owner, a plane that counts it exactly, and the others ask that plane. */
import {
  type CountedWindow,
  type Counters,
  type Rate,
  SlidingCounters,
  type Taken,
} from '../../lib/limits/sliding-counters.ts'
import type { Answer, Argument } from '../../link/calls/call-link.ts'
import { shared } from '../../model/shared.ts'
import { CounterAsks, OWNER_MS } from './counter-asks.ts'
import { KeyOwners } from './key-owners.ts'
import type { WorkerCalls, WorkerPeers } from './worker-peers.ts'

/** How often a take may be passed on while planes disagree on who is there; then the plane that has it counts it. */
const MAX_HOPS = 3

/** When counts move: most keys checked in one turn of the event loop, and most counts in one message. */
const LOOKED_AT = 1000
const MOVED_TOGETHER = 500

/** Pause before counts are moved that were kept here because their owner was silent, in milliseconds. */
const MOVE_LATER_MS = 1000

/** Most keys that are remembered as fetched by a new owner; beyond that, the first is forgotten. */
const MAX_FETCHED = 10_000

interface SharedCountersOptions {
  readonly own?: SlidingCounters
  /** A clock that never goes back, in milliseconds. */
  readonly now?: () => number
  /** How long the plane that counts may take to answer, in milliseconds. */
  readonly withinMs?: number
}

/**
 * When planes come or go, counts move to the new owner. Until all counts have moved, an owner fetches what other planes still
 * have of a key that it does not know.
 */
export class SharedCounters implements Counters {
  readonly #peers: WorkerPeers
  readonly #own: SlidingCounters
  readonly #owners: KeyOwners
  readonly #asks: CounterAsks
  readonly #withinMs: number
  /** Other planes that are about to leave, and no longer count. */
  readonly #leaving = new Set<string>()
  #isLeaving = false
  /** The set of counting planes as this plane sees it, and as each other plane saw it after moving its counts. */
  #view = ''
  readonly #viewOf = new Map<string, string>()
  /** Other planes that may still have counts of keys that this one owns. */
  #unsettled: readonly string[] = []
  readonly #fetchedBy = new Map<string, string>()
  #moveTimer: NodeJS.Timeout | undefined
  /** Incremented by every round of moving, so that an older round stops. */
  #round = 0

  constructor(peers: WorkerPeers, options: SharedCountersOptions = {}) {
    const { now = () => performance.now(), withinMs = OWNER_MS } = options
    this.#peers = peers
    this.#own = options.own ?? new SlidingCounters({ now, maxKeys: shared.rateLimitCounters.most })
    this.#owners = new KeyOwners(peers)
    this.#withinMs = withinMs
    const local = (key: string, rate: Rate): Taken => this.#countHere(key, rate)
    this.#asks = new CounterAsks({ peers, local, now, withinMs })
    peers.serve('counters.take', (takes) => this.#taken(takes))
    peers.serve('counters.giveBack', ([key, windowMs]) => this.giveBack(key, windowMs))
    peers.serve('counters.fetch', ([key, windowMs], from) => this.#fetched(key, windowMs, from))
    peers.serve('counters.move', (windows) => this.#own.add(windows))
    peers.serve('counters.moved', (view, from) => {
      this.#viewOf.set(from, view)
      this.#settle()
    })
    peers.serve('counters.leaving', (_, from) => {
      this.#leaving.add(from)
      void this.#regroup()
    })
    // Workers of version 0.1 ask by the beginning of keys, with a space at its end.
    peers.serve('counters.counted', (owner) => this.#own.counted(owner.trim()))
    peers.whenMoved((came, left) => {
      for (const plane of [...came, ...left]) this.#asks.forget(plane)
      for (const plane of left) {
        this.#leaving.delete(plane)
        this.#viewOf.delete(plane)
      }
      void this.#regroup()
    })
  }

  take(key: string, rate: Rate): Taken | Promise<Taken> {
    return this.#take(key, rate, 0)
  }

  /** Gives back one take: another plane decided without waiting for the answer. */
  giveBack(key: string, windowMs: number): void {
    const owner = this.#ownerOf(key)
    if (owner === undefined || this.#own.has(key, windowMs)) this.#own.giveBack(key, windowMs)
    else this.#peers.tell(owner, 'counters.giveBack', [key, windowMs])
  }

  /** A copy of the counts of an edge, from all planes that answer. */
  async counted(edgeId: string): Promise<CountedWindow[]> {
    const own = this.#own.counted(edgeId)
    const others = this.#peers.others()
    if (others.length === 0) return own
    const found = await Promise.all(others.map((plane) => this.#within(plane, 'counters.counted', `${edgeId} `)))
    return [...own, ...found.flatMap((windows) => windows ?? [])]
  }

  /** Drops what this plane has counted for an edge that is gone. */
  forget(edgeId: string): void {
    this.#own.forget(edgeId)
  }

  /** Hands counting over to the others before this plane stops; resolves when they have all counts. */
  async leave(): Promise<void> {
    this.#isLeaving = true
    this.#peers.tellAll('counters.leaving', null)
    await this.#regroup()
  }

  close(): void {
    clearTimeout(this.#moveTimer)
    this.#round++
  }

  /** The other plane that counts a key; undefined when this one does. */
  #ownerOf(key: string): string | undefined {
    const fetchedBy = this.#fetchedBy.size > 0 ? this.#fetchedBy.get(key) : undefined
    return fetchedBy ?? this.#owners.ownerAmongPeers(key)
  }

  #take(key: string, rate: Rate, hops: number): Taken | Promise<Taken> {
    const owner = this.#ownerOf(key)
    if (owner !== undefined) return this.#takeFrom(owner, key, rate, hops)
    if (this.#unsettled.length === 0 || this.#own.has(key, rate.windowMs)) return this.#own.take(key, rate)
    return this.#fetch(key, rate.windowMs).then(() => {
      // The owner may have changed meanwhile.
      const newOwner = this.#ownerOf(key)
      return newOwner === undefined ? this.#own.take(key, rate) : this.#takeFrom(newOwner, key, rate, hops)
    })
  }

  #takeFrom(owner: string, key: string, rate: Rate, hops: number): Taken | Promise<Taken> {
    return hops < MAX_HOPS ? this.#asks.take(owner, key, rate, hops + 1) : this.#countHere(key, rate)
  }

  /** Answers the takes of another plane. */
  #taken(takes: Argument<WorkerCalls, 'counters.take'>): readonly number[] | Promise<readonly number[]> {
    const taken = takes.map(([key, capacity, windowMs, hops]) => this.#take(key, { capacity, windowMs }, hops))
    if (!taken.some((each) => each instanceof Promise)) return (taken as Taken[]).map(({ waitMs }) => waitMs)
    return Promise.all(taken.map((each) => Promise.resolve(each))).then((all) => all.map(({ waitMs }) => waitMs))
  }

  /** Counts here what another plane should count; it is moved there later. */
  #countHere(key: string, rate: Rate): Taken {
    this.#moveLater()
    return this.#own.take(key, rate)
  }

  #moveLater(): void {
    this.#moveTimer ??= setTimeout(() => {
      this.#moveTimer = undefined
      void this.#move()
    }, MOVE_LATER_MS).unref()
  }

  /** Gets what unsettled planes have of a key. */
  async #fetch(key: string, windowMs: number): Promise<void> {
    // Counts are added even when they arrive late, so that nothing is lost.
    const add = (window: CountedWindow | null | undefined): void => this.#own.add(window ? [window] : [])
    const fetched = this.#unsettled.map((plane) =>
      this.#within(plane, 'counters.fetch', [key, windowMs], add).then(add),
    )
    await Promise.all(fetched)
  }

  #fetched(key: string, windowMs: number, from: string): CountedWindow | null {
    // The other plane owns the key, though this one may not know that yet.
    if (this.#owners.ownerAmongPeers(key) === undefined) {
      this.#fetchedBy.set(key, from)
      const [first] = this.#fetchedBy.keys()
      if (this.#fetchedBy.size > MAX_FETCHED && first !== undefined) this.#fetchedBy.delete(first)
    }
    return this.#own.remove(key, windowMs) ?? null
  }

  /** Resolves with undefined when there is no answer in time. */
  #within<Name extends keyof WorkerCalls>(
    plane: string,
    name: Name,
    argument: Argument<WorkerCalls, Name>,
    late?: (answer: Answer<WorkerCalls, Name>) => void,
  ): Promise<Answer<WorkerCalls, Name> | undefined> {
    const options = { withinMs: this.#withinMs, ...(late && { late }) }
    return this.#peers.ask(plane, name, argument, options).catch(() => undefined)
  }

  /** Switches to the present set of planes. */
  #regroup(): Promise<void> {
    const counting = this.#peers.others().filter((plane) => !this.#leaving.has(plane))
    this.#owners.use(counting, { withSelf: !this.#isLeaving })
    this.#view = [...counting, ...(this.#isLeaving ? [] : [this.#peers.self])].sort().join(' ')
    this.#fetchedBy.clear()
    this.#settle()
    return this.#move()
  }

  #settle(): void {
    this.#unsettled = this.#peers.others().filter((plane) => this.#viewOf.get(plane) !== this.#view)
  }

  /** Moves counts to their owners, and tells the others when that is done. */
  async #move(): Promise<void> {
    const round = ++this.#round
    const moving = new Map<string, CountedWindow[]>()
    let lookedAt = 0
    for (const [key, windowMs] of this.#own.keys()) {
      const owner = this.#owners.ownerAmongPeers(key)
      // While their owner is silent, the counts are needed here.
      if (owner !== undefined && this.#asks.isSilent(owner)) this.#moveLater()
      else if (owner !== undefined) this.#gather(moving, owner, this.#own.remove(key, windowMs))
      if (++lookedAt % LOOKED_AT > 0) continue
      this.#send(moving)
      await new Promise((resolve) => setImmediate(resolve))
      if (round !== this.#round) return
    }
    this.#send(moving)
    // Calls arrive in order, so when this one is answered, the counts are there.
    const answers = this.#peers.others().map((plane) => this.#within(plane, 'counters.moved', this.#view))
    await Promise.all(answers)
  }

  #gather(moving: Map<string, CountedWindow[]>, owner: string, window: CountedWindow | undefined): void {
    if (!window) return
    const windows = moving.get(owner) ?? []
    moving.set(owner, windows)
    if (windows.push(window) < MOVED_TOGETHER) return
    moving.delete(owner)
    this.#peers.tell(owner, 'counters.move', windows)
  }

  #send(moving: Map<string, CountedWindow[]>): void {
    for (const [owner, windows] of moving) this.#peers.tell(owner, 'counters.move', windows)
    moving.clear()
  }
}
