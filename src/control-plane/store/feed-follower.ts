/** Follows the change feed: delivers changes in order, retries after a failure, and reloads everything after a gap. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Change } from './feed.ts'
import type { Store } from './store.ts'

export interface Followed {
  /** Loads all that is stored; called before the first change, and whenever changes were missed. */
  load(): Promise<void>
  /** Applies changes, oldest first; may see a change twice. */
  apply(changes: readonly Change[]): Promise<void>
}

interface FollowerOptions {
  readonly store: Store
  readonly followed: Followed
  readonly log: Logger
  /** Called when `position` has changed. */
  readonly onProgress?: () => void
}

/** How many changes are read at once. */
const READ_TOGETHER = 1000

/** Pause after a failure, in milliseconds. */
const RETRY_MS = 1000

export class Follower {
  readonly #store: Store
  readonly #followed: Followed
  readonly #log: Logger
  /** The last change that was read, or the revision at the last load. */
  #last: Change | number | null = null
  #running: Promise<void> | null = null
  #isBehind = false
  #isStopped = false
  #retry: NodeJS.Timeout | undefined
  #unsubscribe: () => void = () => {}
  readonly #onProgress: () => void

  constructor({ store, followed, log, onProgress = () => {} }: FollowerOptions) {
    this.#store = store
    this.#followed = followed
    this.#log = log
    this.#onProgress = onProgress
  }

  /** The revision up to which everything has been applied; 0 before the first load. */
  get position(): number {
    return typeof this.#last === 'number' ? this.#last : (this.#last?.revision ?? 0)
  }

  /** Resolves once everything stored before is loaded. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#store.feed.subscribe(() => this.#wake())
    await this.#load()
    this.#wake()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unsubscribe()
    clearTimeout(this.#retry)
    await this.#running
  }

  async #load(): Promise<void> {
    // Read before loading: changes made meanwhile are applied again, which does no harm.
    const revision = await this.#store.feed.latest()
    await this.#followed.load()
    this.#moveTo(revision)
  }

  #wake(): void {
    this.#isBehind = true
    if (this.#last === null && this.#running === null) return
    this.#running ??= this.#catchUp().finally(() => {
      this.#running = null
      if (this.#isBehind && !this.#isStopped && this.#retry === undefined) this.#wake()
    })
  }

  async #catchUp(): Promise<void> {
    try {
      while (this.#isBehind && !this.#isStopped) {
        this.#isBehind = false
        await this.#readOn()
      }
    } catch (error) {
      // After a stop a read may still be under way when the store closes.
      if (this.#isStopped) return
      this.#log.warn({ err: error }, 'cannot follow the change feed; retrying')
      this.#isBehind = true
      this.#retry = setTimeout(() => {
        this.#retry = undefined
        this.#wake()
      }, RETRY_MS).unref()
    }
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const changes = await this.#store.feed.since(this.#last ?? 0, READ_TOGETHER)
      if (changes === null) return this.#load()
      const last = changes.at(-1)
      if (!last) return
      await this.#followed.apply(changes)
      this.#moveTo(last)
      // Later changes are announced.
      if (changes.length < READ_TOGETHER) return
    }
  }

  #moveTo(last: Change | number): void {
    this.#last = last
    this.#onProgress()
  }
}
