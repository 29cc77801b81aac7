/** What changes a server while it runs, one change after the other: reloads of its settings, and upgrades. */
import type { Settings } from '../config/read.ts'
import type { Logger } from '../lib/log/log.ts'
import type { UpgradeStep } from '../supervisor/upgrade.ts'
import { reload } from './reload.ts'
import { type Upgrade, type UpgradeOutcome, upgradeRunning } from './upgrade-running.ts'

export interface LiveChangesOptions {
  /** As the server started. */
  readonly settings: Settings
  /** Throws `SettingsError`. */
  readonly read: () => Settings
  /** Resolves when they are in force, with the processes that do not use them yet. */
  readonly apply: (settings: Settings) => Promise<readonly string[]>
  /** Undefined for a server of one process. */
  readonly upgrade: Upgrade | undefined
  readonly log: Logger
}

export class LiveChanges {
  readonly #options: LiveChangesOptions
  #running: Settings
  /** The end of the last change that was ordered. */
  #last: Promise<unknown> = Promise.resolve()
  /** A reload that was ordered and has not begun. */
  #waiting: Promise<void> | undefined

  constructor(options: LiveChangesOptions) {
    this.#options = options
    this.#running = options.settings
  }

  /**
   * Reloads when what was ordered before is over, since it would miss processes that are about to take over; never rejects.
   * One that has yet to begin reads what is on disk then, so that those ordered meanwhile are the same one.
   */
  reload(): Promise<void> {
    this.#waiting ??= this.#next(() => this.#reload())
    return this.#waiting
  }

  /** Upgrades when what was ordered before is over; never rejects. */
  upgrade(onStep: (step: UpgradeStep) => void = () => {}): Promise<UpgradeOutcome> {
    return this.#next(() => this.#upgrade(onStep))
  }

  #next<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#last.then(change)
    this.#last = done
    return done
  }

  async #reload(): Promise<void> {
    this.#waiting = undefined
    const { read, apply, log } = this.#options
    const { settings } = await reload({ running: this.#running, read, apply, log })
    this.#running = settings
  }

  async #upgrade(onStep: (step: UpgradeStep) => void): Promise<UpgradeOutcome> {
    const { read, apply, upgrade, log } = this.#options
    const { outcome, settings } = await upgradeRunning({ running: this.#running, read, apply, upgrade, onStep, log })
    this.#running = settings
    return outcome
  }
}
