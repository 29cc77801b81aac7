/** Changes a running server, one change at a time: reloads of its settings, and upgrades. */

import type { Settings } from '../server/config/read-settings.ts'
import type { UpgradeStep } from '../server/supervisor/upgrade-server.ts'
import { type Reloading, reload } from './reload-command.ts'
import { type Upgrade, type UpgradeOutcome, upgradeRunning } from './upgrade-running.ts'

interface LiveChangesOptions extends Pick<Reloading, 'read' | 'apply' | 'log'> {
  /** The settings that the server started with. */
  readonly settings: Settings
  /** Undefined for a server of one process. */
  readonly upgrade: Upgrade | undefined
}

export class LiveChanges {
  readonly #options: LiveChangesOptions
  #running: Settings
  /** Settles when the last change that was requested is done. */
  #last: Promise<unknown> = Promise.resolve()
  /** A reload that was requested and has not begun. */
  #waiting: Promise<void> | undefined

  constructor(options: LiveChangesOptions) {
    this.#options = options
    this.#running = options.settings
  }

  /**
   * Reloads after all earlier changes, since it would miss processes of an upgrade in progress; never rejects. A reload
   * reads what is on disk when it begins, so requests that come before that share it.
   */
  reload(): Promise<void> {
    this.#waiting ??= this.#next(() => this.#reload())
    return this.#waiting
  }

  /** Upgrades after all earlier changes; never rejects. */
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
