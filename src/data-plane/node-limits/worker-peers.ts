/** What the data planes of one node call at each other, so that they count as one server. */
import type { CountedWindow } from '../../lib/limits/sliding-counters.ts'
import type { CapNews } from '../../lib/net/cap-news.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import type { Peers } from '../../link/calls/peers.ts'
import type { ServedRequest } from '../../model/served-request.ts'

/** A limiter counts each key at one plane, and the others ask that plane. */
type CounterCalls = {
  /** `[key, capacity, windowMs, hops]` for each take; answers how long each has to wait in milliseconds, 0 when it is allowed. */
  'counters.take'(
    takes: readonly (readonly [string, number, number, number])[],
  ): readonly number[] | Promise<readonly number[]>
  'counters.giveBack'(take: readonly [key: string, windowMs: number]): void
  /** Removes the count of a key, for its new owner; null when there is none. */
  'counters.fetch'(take: readonly [key: string, windowMs: number], from: string): CountedWindow | null
  'counters.move'(windows: readonly CountedWindow[]): void
  /** All counts are moved, as far as that plane sees who counts. */
  'counters.moved'(view: string, from: string): void
  'counters.leaving'(nothing: null, from: string): void
  'counters.counted'(prefix: string): readonly CountedWindow[]
}

type BreakerCalls = {
  'breakers.counted'(counts: readonly (readonly [key: string, total: number, failed: number])[]): void
  'breakers.opened'(opened: readonly (readonly [key: string, waitMs: number])[]): void
  'breakers.closed'(key: string): void
  /** Whether that plane may make the trial request. */
  'breakers.grant'(key: string, from: string): boolean
  'breakers.over'(key: string, from: string): void
}

type DrainCalls = { [Name in 'drain.begun' | 'drain.done']: (nothing: null, from: string) => void }

type WatchCalls = {
  'watched.change'(change: readonly [endpointId: string, isWatched: boolean], from: string): void
  /** Ids of the watched endpoints. */
  'watched.all'(nothing: null): readonly string[]
  'watched.saw'(seen: readonly (readonly [endpointId: string, request: ServedRequest])[]): void
}

type CapsName = ConnectionCaps['door']

type CapCalls = { [Name in `caps.${CapsName}`]: (news: CapNews, from: string) => void } & {
  [Name in `caps.${CapsName}.all`]: (nothing: null) => CapNews
}

export type WorkerCalls = CounterCalls & BreakerCalls & DrainCalls & WatchCalls & CapCalls

/** The other data planes of this node. */
export type WorkerPeers = Pick<
  Peers<WorkerCalls>,
  'self' | 'others' | 'whenMoved' | 'ask' | 'tell' | 'tellAll' | 'serve'
>
