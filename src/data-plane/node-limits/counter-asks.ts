/** Takes from counters at other planes, and decides locally while such a plane is silent. */
import type { Rate, Taken } from '../../lib/limits/sliding-counters.ts'
import type { WorkerPeers } from './worker-peers.ts'

/** How long the plane that counts may take to answer, in milliseconds: a request waits for it. */
export const OWNER_MS = 250

/** How long a silent plane is not asked again, in milliseconds, unless its late answer arrives. */
const SILENT_MS = 1000

/** Most takes in one message; a full message is sent at once. */
const MAX_TAKES = 500

interface CounterAsksOptions {
  readonly peers: Pick<WorkerPeers, 'ask' | 'tell'>
  readonly local: (key: string, rate: Rate) => Taken
  /** A clock that never goes back, in milliseconds. */
  readonly now: () => number
  readonly withinMs?: number
}

interface Ask {
  readonly key: string
  readonly rate: Rate
  readonly hops: number
  readonly resolve: (taken: Taken) => void
}

const allowed: Taken = { isAllowed: true, waitMs: 0 }

/**
 * Takes of one turn of the event loop are sent together. When no answer comes in time, `local` decides, and goes on to decide
 * while that plane is silent.
 */
export class CounterAsks {
  readonly #options: CounterAsksOptions
  /** By plane. */
  readonly #waiting = new Map<string, Ask[]>()
  readonly #silentUntil = new Map<string, number>()

  constructor(options: CounterAsksOptions) {
    this.#options = options
  }

  isSilent(plane: string): boolean {
    const until = this.#silentUntil.get(plane)
    return until !== undefined && this.#options.now() < until
  }

  /** Forgets that a plane was silent: it is gone, or new. */
  forget(plane: string): void {
    this.#silentUntil.delete(plane)
  }

  /** `hops` counts the planes that have passed the take on. */
  take(plane: string, key: string, rate: Rate, hops: number): Taken | Promise<Taken> {
    if (this.#silentUntil.size > 0 && this.isSilent(plane)) return this.#options.local(key, rate)
    const { promise, resolve } = Promise.withResolvers<Taken>()
    const ask: Ask = { key, rate, hops, resolve }
    const waiting = this.#waiting.get(plane)
    if (!waiting) {
      this.#waiting.set(plane, [ask])
      setImmediate(() => this.#send(plane))
    } else if (waiting.push(ask) === MAX_TAKES) this.#send(plane)
    return promise
  }

  #send(plane: string): void {
    const asks = this.#waiting.get(plane)
    if (!asks) return
    this.#waiting.delete(plane)
    const { peers, local, now, withinMs = OWNER_MS } = this.#options
    const takes = asks.map(({ key, rate, hops }) => [key, rate.capacity, rate.windowMs, hops] as const)
    const late = (waits: readonly number[]): void => this.#undo(plane, asks, waits)
    peers.ask(plane, 'counters.take', takes, { withinMs, late }).then(
      (waits) => {
        for (const [i, { resolve }] of asks.entries()) resolve(takenOf(waits[i] ?? 0))
      },
      () => {
        this.#silentUntil.set(plane, now() + SILENT_MS)
        for (const { key, rate, resolve } of asks) resolve(local(key, rate))
      },
    )
  }

  /** Gives back takes that a late answer allowed: they were decided here meanwhile, and must count once. */
  #undo(plane: string, asks: readonly Ask[], waits: readonly number[]): void {
    this.#silentUntil.delete(plane)
    for (const [i, { key, rate }] of asks.entries()) {
      if (waits[i] === 0) this.#options.peers.tell(plane, 'counters.giveBack', [key, rate.windowMs])
    }
  }
}

function takenOf(waitMs: number): Taken {
  return waitMs === 0 ? allowed : { isAllowed: false, waitMs }
}
