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
  readonly apply: (settings: Settings) => void
  /** Undefined for a server of one process. */
  readonly upgrade: Upgrade | undefined
  readonly log: Logger
}

export class LiveChanges {
  readonly #options: LiveChangesOptions
  #running: Settings
  /** The end of the last upgrade that was ordered; undefined when none is under way. */
  #upgrading: Promise<unknown> | undefined

  constructor(options: LiveChangesOptions) {
    this.#options = options
    this.#running = options.settings
  }

  /** At once, unless an upgrade is under way: a reload would miss the processes that are about to take over. */
  reload(): void {
    if (this.#upgrading) void this.#upgrading.then(() => this.#reload())
    else this.#reload()
  }

  /** Upgrades when those that were ordered before are over; never rejects. */
  upgrade(onStep: (step: UpgradeStep) => void = () => {}): Promise<UpgradeOutcome> {
    const done = (this.#upgrading ?? Promise.resolve()).then(() => this.#upgrade(onStep))
    const over = done.then(() => {
      if (this.#upgrading === over) this.#upgrading = undefined
    })
    this.#upgrading = over
    return done
  }

  #reload(): void {
    const { read, apply, log } = this.#options
    this.#running = reload({ running: this.#running, read, apply, log }).settings
  }

  async #upgrade(onStep: (step: UpgradeStep) => void): Promise<UpgradeOutcome> {
    const { read, apply, upgrade, log } = this.#options
    const { outcome, settings } = await upgradeRunning({ running: this.#running, read, apply, upgrade, onStep, log })
    this.#running = settings
    return outcome
  }
}
