/** Settings of which some may change while the server runs (`isLive` in their table). */
import type { Settings } from './read-settings.ts'

export class LiveSettings {
  #now: Settings
  readonly #changes: ((next: Settings) => void)[] = []

  constructor(settings: Settings) {
    this.#now = settings
  }

  /** The settings as they are now. */
  get now(): Settings {
    return this.#now
  }

  /** `apply` runs with the new settings whenever some change. */
  whenChanged(apply: (next: Settings) => void): void {
    this.#changes.push(apply)
  }

  /** What is made from the settings, once for each change; the result gives the present one. */
  derive<T>(make: (settings: Settings) => T): () => T {
    let made = make(this.#now)
    this.whenChanged((next) => {
      made = make(next)
    })
    return () => made
  }

  /** Applies other settings, as far as they can change. */
  use(next: Settings): void {
    this.#now = next
    for (const apply of this.#changes) apply(next)
  }
}
