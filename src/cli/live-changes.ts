/** Changes a running server, one change at a time: reloads of its settings, and upgrades. */

import type { Settings } from '../server/config/read-settings.ts'
import { SettingsError } from '../server/config/settings-error.ts'
import type { UpgradeStep } from '../server/supervisor/upgrade-server.ts'
import { type Reloading, reload, settingsFault } from './reload-command.ts'

/** Switches to what is on disk; if it rejects, the error says why, and nothing has changed. */
export type Upgrade = (
  settings: Settings,
  onStep: (step: UpgradeStep) => void,
) => Promise<{ readonly from: string; readonly to: string }>

export type UpgradeOutcome =
  | { readonly type: 'upgraded'; readonly from: string; readonly to: string }
  /** Of a server of one process, whose code cannot change while it runs. */
  | { readonly type: 'reloaded'; readonly needsRestart: readonly string[] }
  | { readonly type: 'failed'; readonly reason: string }

interface LiveChangesOptions extends Pick<Reloading, 'read' | 'apply' | 'log'> {
  /** The settings that the server started with. */
  readonly settings: Settings
  /** Undefined for a server of one process. */
  readonly upgrade?: Upgrade | undefined
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
    this.#waiting ??= this.#next(async () => {
      this.#waiting = undefined
      await this.#reload()
    })
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

  async #reload(): ReturnType<typeof reload> {
    const reloaded = await reload({ ...this.#options, running: this.#running })
    this.#running = reloaded.settings
    return reloaded
  }

  /** Never ends the server, whatever goes wrong. */
  async #upgrade(onStep: (step: UpgradeStep) => void): Promise<UpgradeOutcome> {
    const { read, upgrade, log } = this.#options
    if (!upgrade) return this.#reloadAlone()
    try {
      const settings = read()
      log.info('upgrade begins: starting new processes beside the running ones')
      const { from, to } = await upgrade(settings, onStep)
      log.level = settings.logLevel
      log.info({ from, to }, 'upgrade done; the old processes finish what is open')
      this.#running = settings
      return { type: 'upgraded', from, to }
    } catch (error) {
      const reason = settingsFault(error)
      if (error instanceof SettingsError) log.error({ problems: error.problems }, failed)
      else log.error({ reason }, failed)
      return { type: 'failed', reason }
    }
  }

  async #reloadAlone(): Promise<UpgradeOutcome> {
    this.#options.log.warn(
      'a server of one process (`workers` is 0) cannot be upgraded while it runs; only its settings are reloaded',
    )
    const { fault, needsRestart } = await this.#reload()
    return fault === undefined ? { type: 'reloaded', needsRestart } : { type: 'failed', reason: fault }
  }
}

const failed = 'upgrade failed; nothing has changed'
