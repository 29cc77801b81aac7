/** Stores filled with edges; each is created when a row first needs it, and kept for later rows. */
import { join } from 'node:path'
import type { Stage } from '../stage/stage.ts'
import { type Seed, type SeededStore, seedStore } from './seed.ts'

export class Stores {
  readonly #stage: Stage
  readonly #made = new Map<string, Promise<SeededStore>>()
  readonly #progress: (text: string) => void

  constructor(stage: Stage, progress: (text: string) => void) {
    this.#stage = stage
    this.#progress = progress
  }

  /** The store of this name; only one server may run on it at a time. */
  get(name: string, seed: Seed): Promise<SeededStore> {
    let store = this.#made.get(name)
    if (!store) {
      this.#progress(`storing ${seed.edges} edges (${name})`)
      store = seedStore(join(this.#stage.folder, name), seed)
      this.#made.set(name, store)
    }
    return store
  }
}
