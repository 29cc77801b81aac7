/** Follows the change feed: delivers changes in order, retries after a failure, and reloads everything after a gap. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { Change } from './feed.ts'
import type { Store } from './store.ts'

export interface Followed {
  /** Loads all that is stored; called before the first change, and whenever changes were missed. */
  load(): Promise<void>
  /** Applies changes, oldest first; may see a change twice. What takes long goes on beside later changes. */
  apply(changes: readonly Change[]): Promise<Unfinished | undefined> | Promise<void>
}

interface FollowerOptions {
  readonly store: Store
  readonly followed: Followed
  readonly log: Logger
  /** Called when `position` has changed. */
  readonly onProgress?: () => void
}

interface Unfinished {
  /** Settles when the changes are in force. */
  readonly later: Promise<unknown>
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
  /** Changes that are not in force yet, with the revision before them. */
  readonly #unfinished = new Set<{ readonly after: number }>()
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

  /** The revision up to which everything is in force; 0 before the first load. */
  get position(): number {
    const last = typeof this.#last === 'number' ? this.#last : (this.#last?.revision ?? 0)
    return Math.min(last, ...[...this.#unfinished].map(({ after }) => after))
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
      const unfinished = await this.#followed.apply(changes)
      if (unfinished) this.#finish(unfinished, this.position)
      this.#moveTo(last)
      // Later changes are announced.
      if (changes.length < READ_TOGETHER) return
    }
  }

  #finish({ later }: Unfinished, after: number): void {
    const unfinished = { after }
    this.#unfinished.add(unfinished)
    const finished = (): void => {
      this.#unfinished.delete(unfinished)
      this.#onProgress()
    }
    // What fails is in force as far as it ever will be: the plane is gone, or of a version that does not know the question.
    later.then(finished, finished)
  }

  #moveTo(last: Change | number): void {
    this.#last = last
    this.#onProgress()
  }
}
