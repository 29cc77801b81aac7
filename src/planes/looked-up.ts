/** When what is known of other nodes is used as it is, and when it is looked up again. */
import type { Logger } from '../lib/log/log.ts'

/** Something that was looked up. */
export interface LookedUp {
  /** When it was last answered; undefined before that. */
  at: number | undefined
  usedAt: number
  asking: Promise<boolean> | undefined
  /** What is being asked may be answered as it was before: it must be asked again. */
  isOutdated: boolean
}

export const neverAsked = { at: undefined, usedAt: 0, asking: undefined, isOutdated: false }

/** What is known is asked for again before it is used. */
export function outdate(known: LookedUp): void {
  known.at = undefined
  known.isOutdated = known.asking !== undefined
}

/** What was looked up less than this long ago is used as it is, in milliseconds. */
const FRESH_MS = 1000

/**
 * What is older is used once more while it is looked up again; but when it is older than this, visitors wait for that. When
 * nobody was found they wait at once: somebody may have come since.
 */
const OLD_MS = 5000

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
    const age = known.at === undefined ? Number.POSITIVE_INFINITY : this.now() - known.at
    known.usedAt = this.now()
    if (age <= FRESH_MS) return undefined
    const asking = this.again(known, ask)
    return age > OLD_MS || !isFound ? asking.then(() => {}) : undefined
  }

  /** Asks once for all who wait; whether it could be asked. What cannot be asked stays as it was. */
  again(known: LookedUp, ask: () => Promise<void>): Promise<boolean> {
    known.asking ??= this.once(ask).then((isAnswered) => {
      known.at = known.isOutdated ? undefined : this.now()
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
}
