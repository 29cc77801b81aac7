/** When what is known of other nodes is used as it is, and when it is looked up again. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from '../lib/log/log.ts'

/** Something that was looked up. */
export interface LookedUp {
  /** When it was last answered; undefined before that. */
  at: number | undefined
  /** When it was last asked for, and whether that was answered. */
  askedAt: number | undefined
  isAnswered: boolean
  usedAt: number
  asking: Promise<boolean> | undefined
  /** Resolves when it was asked for again, which is about to be. */
  next: Promise<void> | undefined
  /** What is being asked may be answered as it was before: it must be asked again. */
  isOutdated: boolean
}

export const neverAsked = {
  ...{ at: undefined, askedAt: undefined, isAnswered: false },
  ...{ usedAt: 0, asking: undefined, next: undefined, isOutdated: false },
}

/** What is known is asked for again before it is used. */
export function outdate(known: LookedUp): void {
  known.at = undefined
  known.isOutdated = known.asking !== undefined
}

/** What was looked up less than this long ago is used as it is, in milliseconds. */
const FRESH_MS = 1000

/**
 * What is older is used once more while it is looked up again; but when it is older than this, visitors wait for that. When
 * nobody was found they wait at once, for a name always: somebody may have come since.
 */
const OLD_MS = 5000

/** Between two questions for what nobody has, in milliseconds: anybody may ask for it, as often as they like. */
const APART_MS = 50

/** How many visitors may wait for look-ups: strangers can make up any number of names. */
const MAX_ASKED = 500

export class Asking {
  readonly now: () => number
  readonly #log: Logger
  #asked = 0
  #total = 0
  #failed = 0

  /** `now` is of a clock that never jumps, in milliseconds. */
  constructor(log: Logger, now: () => number) {
    this.#log = log
    this.now = now
  }

  /** How often something was asked, and how often nobody could be, since the start. */
  get counted(): { readonly total: number; readonly failed: number } {
    return { total: this.#total, failed: this.#failed }
  }

  /** Whether as much is being asked as may be. */
  get isBusy(): boolean {
    return this.#asked >= MAX_ASKED
  }

  /** Undefined when what is known is new enough. */
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
   * Resolves when somebody was found, or nobody was by a question that was asked after this call: whoever is told of an
   * address finds it, although nobody had it a moment ago. Undefined when a question a moment ago was not answered, or
   * too much is being asked.
   */
  afresh(known: LookedUp, ask: () => Promise<void>, isFound: () => boolean): Promise<void> | undefined {
    known.usedAt = this.now()
    const isFresh = this.#ageOf(known) <= FRESH_MS
    if (isFresh && (!known.isAnswered || this.isBusy)) return undefined
    if (!known.asking && this.#earlyMs(known) <= 0) return this.again(known, ask).then(() => {})
    known.next ??= this.#next(known, ask, isFound)
    return known.next
  }

  /** The question after the one that was asked last, for all who came since. */
  async #next(known: LookedUp, ask: () => Promise<void>, isFound: () => boolean): Promise<void> {
    const isAnswered = (await known.asking) ?? true
    const isAsked = isAnswered && !isFound()
    const earlyMs = this.#earlyMs(known)
    if (isAsked && earlyMs > 0) await pause(earlyMs, undefined, { ref: false })
    // Who comes from now on waits for another one.
    known.next = undefined
    if (isAsked) await this.again(known, ask)
  }

  /** Asks once for all who wait; whether it could be asked. What cannot be asked stays as it was. */
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

  /** Whether it could be asked. */
  async once(ask: () => Promise<void>): Promise<boolean> {
    this.#asked++
    this.#total++
    try {
      await ask()
      return true
    } catch (err) {
      this.#failed++
      this.#log.debug({ err }, 'other nodes cannot be looked up')
      return false
    } finally {
      this.#asked--
    }
  }

  /** How much too early it is to ask again, in milliseconds. */
  #earlyMs({ askedAt }: LookedUp): number {
    return askedAt === undefined ? 0 : askedAt + APART_MS - this.now()
  }

  #ageOf({ at }: LookedUp): number {
    return at === undefined ? Number.POSITIVE_INFINITY : this.now() - at
  }
}
