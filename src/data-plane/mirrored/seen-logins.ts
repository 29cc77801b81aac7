/** Records when users of logins were last seen: at once in memory, and in batches where logins are stored. */
import type { Logger } from '../../lib/log/create-log.ts'
import type { LoginRows, SeenLogin } from '../../link/planes/login-store.ts'
import type { CachedLogin } from './login-cache.ts'

/** How often one login is written at most, in milliseconds. */
const NOTE_EVERY_MS = 60_000

/** How long writes are collected, in milliseconds. */
const GATHER_MS = 5000

/** Logins written at once, in one transaction. */
const AT_A_TIME = 200

/** Most logins that wait to be written. Beyond that the oldest is dropped, which only makes that login look idle for longer. */
const MAX_WAITING = 50_000

/** In memory a login is updated at most once a second, so that a busy page makes no object for each request. */
const MOVE_EVERY_MS = 1000

export class SeenLogins {
  readonly #rows: Pick<LoginRows, 'seenLogins'>
  readonly #log: Logger
  readonly #waiting = new Map<string, SeenLogin>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor({ rows, log }: { rows: Pick<LoginRows, 'seenLogins'>; log: Logger }) {
    this.#rows = rows
    this.#log = log
  }

  note(cached: CachedLogin, at: number): void {
    if (at - cached.login.lastSeenAt >= MOVE_EVERY_MS) cached.login = { ...cached.login, lastSeenAt: at }
    if (at - cached.notedAt < NOTE_EVERY_MS) return
    cached.notedAt = at
    this.#wait({ id: cached.id, userId: cached.userId, at })
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

  #wait(seen: SeenLogin): void {
    const [oldest] = this.#waiting.keys()
    if (this.#waiting.size >= MAX_WAITING && oldest !== undefined) this.#waiting.delete(oldest)
    this.#waiting.set(seen.id, seen)
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
        await this.#rows.seenLogins(some)
      } catch (err) {
        this.#log.warn({ err, logins: this.#waiting.size }, 'cannot store the last visits of logged-in users; retrying')
        this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS).unref()
        return
      }
      // A login that was updated meanwhile keeps waiting.
      for (const seen of some) if (this.#waiting.get(seen.id) === seen) this.#waiting.delete(seen.id)
    }
  }
}

function firstOf(waiting: ReadonlyMap<string, SeenLogin>, count: number): SeenLogin[] {
  const some: SeenLogin[] = []
  for (const each of waiting.values()) if (some.push(each) >= count) break
  return some
}
