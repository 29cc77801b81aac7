/** Decides when what is known of other nodes is used as it is, and when it is looked up again. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../../lib/log/create-log.ts'

/** The state of something that is looked up. */
export interface LookedUp {
  /** When it was last answered; undefined before that. */
  at: number | undefined
  /** When it was last looked up, and whether that was answered. */
  askedAt: number | undefined
  isAnswered: boolean
  usedAt: number
  asking: Promise<boolean> | undefined
  /** Resolves after the next look-up, which is about to begin. */
  next: Promise<void> | undefined
  /** The look-up under way may give an old answer, so another must follow. */
  isOutdated: boolean
}

export const neverAsked = {
  ...{ at: undefined, askedAt: undefined, isAnswered: false },
  ...{ usedAt: 0, asking: undefined, next: undefined, isOutdated: false },
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

/** Most look-ups at once: strangers can make up any number of names. */
const MAX_ASKED = 500

export class Asking {
  readonly now: () => number
  readonly #log: Logger
  /** Look-ups since the start, and those that failed. */
  readonly counted = { total: 0, failed: 0 }
  /** Whether the last look-up failed. */
  isFailing = false
  #asked = 0

  /** `now` is a clock that never jumps, in milliseconds. */
  constructor(log: Logger, now: () => number) {
    this.#log = log
    this.now = now
  }

  /** Whether as many look-ups are under way as allowed. */
  get isBusy(): boolean {
    return this.#asked >= MAX_ASKED
  }

  /** Looks up what is too old; undefined when nobody has to wait for that. */
  current(
    known: LookedUp,
    ask: () => Promise<void>,
    { isFound }: { readonly isFound: boolean },
  ): Promise<void> | undefined {
    const age = this.#ageOf(known)
    known.usedAt = this.now()
    if (age <= FRESH_MS) return undefined
    const asking = this.again(known, ask)
    return age > OLD_MS || !isFound ? asking.then(() => {}) : undefined
  }

  /**
   * Resolves when a look-up found somebody, or when a look-up that began after this call found nobody. So a visitor who has just
   * been told of an address reaches it, although nobody had the address a moment ago. Undefined when a look-up has just failed,
   * or too many are under way.
   */
  afresh(known: LookedUp, ask: () => Promise<void>, isFound: () => boolean): Promise<void> | undefined {
    known.usedAt = this.now()
    const isFresh = this.#ageOf(known) <= FRESH_MS
    if (isFresh && (!known.isAnswered || this.isBusy)) return undefined
    if (!known.asking && this.#earlyMs(known) <= 0) return this.again(known, ask).then(() => {})
    known.next ??= this.#next(known, ask, isFound)
    return known.next
  }

  /** The next look-up after the one under way, for all who came since that began. */
  async #next(known: LookedUp, ask: () => Promise<void>, isFound: () => boolean): Promise<void> {
    const isAnswered = (await known.asking) ?? true
    const isAsked = isAnswered && !isFound()
    const earlyMs = this.#earlyMs(known)
    if (isAsked && earlyMs > 0) await pause(earlyMs, undefined, { ref: false })
    // Visitors who come from now on wait for another one.
    known.next = undefined
    if (isAsked) await this.again(known, ask)
  }

  /** Looks up once for all who wait; resolves with whether that worked. If not, what was known stays. */
  again(known: LookedUp, ask: () => Promise<void>): Promise<boolean> {
    if (known.asking) return known.asking
    known.askedAt = this.now()
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
    this.#asked++
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
    } finally {
      this.#asked--
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
