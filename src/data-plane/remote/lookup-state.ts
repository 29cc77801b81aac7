/** Decides when what is known of other nodes is used as it is, and when it is looked up again. */
import { setTimeout as pause } from 'node:timers/promises'
import { SharedTurns } from '../../lib/limits/shared-turns.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { clientKeyOf } from '../../lib/net/client-key.ts'
import { shared } from '../../model/shared.ts'

/** The state of something that is looked up. */
export interface LookedUp {
  /** When it was last answered; undefined before that. */
  at: number | undefined
  /** When it was last looked up, and whether that was answered. */
  askedAt: number | undefined
  isAnswered: boolean
  usedAt: number
  asking: Promise<boolean> | undefined
  /** Resolves when the next look-up may begin, with whether it is needed. */
  next: Promise<boolean> | undefined
  /** The look-up under way may give an old answer, so another must follow. */
  isOutdated: boolean
  /** Visitors that wait until a look-up may begin, by source. */
  waiting: Map<string, Promise<boolean>> | undefined
  /** The last look-up that a visitor waited for did not begin in time. */
  isRefused: boolean
}

export const neverAsked = {
  ...{ at: undefined, askedAt: undefined, isAnswered: false },
  ...{ usedAt: 0, asking: undefined, next: undefined, isOutdated: false },
  ...{ waiting: undefined, isRefused: false },
}

/** Makes sure that `known` is looked up again before it is used. */
export function outdate(known: LookedUp): void {
  known.at = undefined
  known.isOutdated = known.asking !== undefined
}

/** How long an answer is used as it is, in milliseconds. */
const FRESH_MS = 1000

/**
 * An older answer is used once more while a new one is looked up. Beyond this age, in milliseconds, visitors wait for the new
 * answer. When nobody was found they always wait, since somebody may have come since.
 */
const OLD_MS = 5000

/** Pause between two look-ups of what nobody has, in milliseconds: strangers may ask for it as often as they like. */
const APART_MS = 50

/** Most look-ups that wait for their turn, and for how long, in milliseconds: strangers can make up any number of names. */
const MAX_WAITING = 2000
const WAIT_MS = 2000

/** A look-up that waits for its turn. */
interface Waiting {
  readonly known: LookedUp
  readonly ask: () => Promise<void>
  readonly source: string
}

export class Asking {
  readonly now: () => number
  readonly #log: Logger
  /** Look-ups since the start, and those that failed. */
  readonly counted = { total: 0, failed: 0 }
  /** Whether the last look-up failed. */
  isFailing = false
  readonly #turns = new SharedTurns({ atOnce: shared.nameLookUps.most, waiting: MAX_WAITING, waitMs: WAIT_MS })

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(log: Logger, now: () => number) {
    this.#log = log
    this.now = now
  }

  /** Looks up what is too old, for a visitor from `ip`; undefined when nobody has to wait for that. */
  current(
    known: LookedUp,
    ask: () => Promise<void>,
    { isFound, ip }: { readonly isFound: boolean; readonly ip?: string },
  ): Promise<void> | undefined {
    const age = this.#ageOf(known)
    known.usedAt = this.now()
    if (age <= FRESH_MS) return undefined
    const asking = this.again(known, ask, ip)
    return age > OLD_MS || !isFound ? asking.then(() => {}) : undefined
  }

  /**
   * Resolves when a look-up found somebody, or when a look-up that began after this call found nobody. So a visitor who has just
   * been told of an address reaches it, although nobody had the address a moment ago. Undefined when a look-up has just failed.
   */
  afresh(known: LookedUp, ask: () => Promise<void>, isFound: () => boolean, ip: string): Promise<void> | undefined {
    known.usedAt = this.now()
    if (this.#ageOf(known) <= FRESH_MS && !known.isAnswered) return undefined
    return this.#afresh(known, ask, isFound, ip)
  }

  async #afresh(known: LookedUp, ask: () => Promise<void>, isFound: () => boolean, ip: string): Promise<void> {
    if (known.asking || this.#earlyMs(known) > 0) {
      known.next ??= this.#next(known, isFound)
      if (!(await known.next)) return
    }
    // Each visitor by its own source: one that gets no turn must not keep the others from theirs.
    await this.again(known, ask, ip)
  }

  /** Waits until the next look-up after the one under way may begin; resolves with whether it is needed. */
  async #next(known: LookedUp, isFound: () => boolean): Promise<boolean> {
    const isAnswered = (await known.asking) ?? true
    const isAsked = isAnswered && !isFound()
    const earlyMs = this.#earlyMs(known)
    if (isAsked && earlyMs > 0) await pause(earlyMs, undefined, { ref: false })
    // Visitors who come from now on wait for another one.
    known.next = undefined
    return isAsked
  }

  /**
   * Looks up once for all who wait; resolves with whether that worked. If not, what was known stays. A look-up for a visitor, from
   * `ip`, waits for its turn.
   */
  again(known: LookedUp, ask: () => Promise<void>, ip?: string): Promise<boolean> {
    if (known.asking) return known.asking
    if (ip === undefined) return this.#begin(known, ask)
    const source = clientKeyOf(ip)
    const waits = known.waiting?.get(source)
    if (waits) return waits
    const turn = this.#turns.take(source)
    if (turn === true) return this.#begin(known, ask).finally(() => this.#turns.over(source))
    const waiting = this.#inTurn(turn, { known, ask, source })
    known.waiting ??= new Map()
    known.waiting.set(source, waiting)
    return waiting
  }

  async #inTurn(turn: Promise<boolean>, { known, ask, source }: Waiting): Promise<boolean> {
    const hasTurn = await turn
    known.waiting?.delete(source)
    try {
      // Another visitor's look-up may have begun meanwhile.
      if (hasTurn || known.asking) return await (known.asking ?? this.#begin(known, ask))
      known.isRefused = true
      return false
    } finally {
      if (hasTurn) this.#turns.over(source)
    }
  }

  #begin(known: LookedUp, ask: () => Promise<void>): Promise<boolean> {
    known.askedAt = this.now()
    known.isRefused = false
    known.asking = this.once(ask).then((isAnswered) => {
      known.at = known.isOutdated ? undefined : this.now()
      known.isAnswered = isAnswered
      known.isOutdated = false
      known.asking = undefined
      return isAnswered
    })
    return known.asking
  }

  /** Runs a look-up; resolves with whether it worked. */
  async once(ask: () => Promise<void>): Promise<boolean> {
    this.counted.total++
    try {
      await ask()
      this.isFailing = false
      return true
    } catch (err) {
      this.isFailing = true
      this.counted.failed++
      this.#log.debug({ err }, 'look-up of other nodes failed')
      return false
    }
  }

  /** How long until it may be looked up again, in milliseconds. */
  #earlyMs({ askedAt }: LookedUp): number {
    return askedAt === undefined ? 0 : askedAt + APART_MS - this.now()
  }

  #ageOf({ at }: LookedUp): number {
    return at === undefined ? Number.POSITIVE_INFINITY : this.now() - at
  }
}
