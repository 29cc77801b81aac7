/** Records when users of logins were last here: at once in memory, and in batches in the store. */
import type { Logger } from '../lib/log/log.ts'
import type { Seen } from '../store/login-writer.ts'
import type { Store } from '../store/store.ts'
import type { CachedLogin } from './login-cache.ts'

/** How often one login is written at most, in milliseconds. */
const NOTE_EVERY_MS = 60_000

/** How long writes are collected, in milliseconds. */
const GATHER_MS = 5000

/** Logins written in one transaction. */
const AT_A_TIME = 200

/** Logins waiting to be written. Over that the oldest is dropped: it only changes when inactivity ends. */
const MAX_WAITING = 50_000

/** In memory a login is updated at most once a second, so that a busy page makes no object for each request. */
const MOVE_EVERY_MS = 1000

interface Waiting {
  readonly userId: string
  readonly at: number
}

export class SeenLogins {
  readonly #store: Store
  readonly #log: Logger
  readonly #waiting = new Map<string, Waiting>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor({ store, log }: { store: Store; log: Logger }) {
    this.#store = store
    this.#log = log
  }

  note(cached: CachedLogin, at: number): void {
    if (at - cached.login.lastSeenAt >= MOVE_EVERY_MS) cached.login = { ...cached.login, lastSeenAt: at }
    if (at - cached.notedAt < NOTE_EVERY_MS) return
    cached.notedAt = at
    this.#wait(cached.id, { userId: cached.userId, at })
    this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS).unref()
  }

  /** The time waiting to be written for this login; 0 when there is none. */
  pending(id: string): number {
    return this.#waiting.get(id)?.at ?? 0
  }

  /** Writes what is waiting; resolves when that is done or has failed. */
  async close(): Promise<void> {
    this.#flush()
    await this.#writing
    clearTimeout(this.#timer)
  }

  #wait(id: string, waiting: Waiting): void {
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size >= MAX_WAITING && oldest !== undefined) this.#waiting.delete(oldest)
    this.#waiting.set(id, waiting)
  }

  #flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#write())
  }

  async #write(): Promise<void> {
    while (this.#waiting.size > 0) {
      const some = firstOf(this.#waiting, AT_A_TIME)
      try {
        await this.#store.write(async ({ logins }) => {
          await logins.markSeen(
            'login_sessions',
            some.map(([id, { at }]) => ({ id, at })),
          )
          await logins.markSeen('login_users', latestOfUsers(some))
        })
      } catch (err) {
        this.#log.warn({ err, logins: this.#waiting.size }, 'last visits of users cannot be stored; retrying')
        this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS).unref()
        return
      }
      // A login that was updated meanwhile keeps waiting.
      for (const [id, waiting] of some) if (this.#waiting.get(id) === waiting) this.#waiting.delete(id)
    }
  }
}

function firstOf(waiting: ReadonlyMap<string, Waiting>, count: number): [string, Waiting][] {
  const some: [string, Waiting][] = []
  for (const each of waiting) if (some.push(each) >= count) break
  return some
}

function latestOfUsers(some: readonly (readonly [string, Waiting])[]): Seen[] {
  const latest = new Map<string, number>()
  for (const [, { userId, at }] of some) latest.set(userId, Math.max(at, latest.get(userId) ?? 0))
  return [...latest].map(([id, at]) => ({ id, at }))
}
