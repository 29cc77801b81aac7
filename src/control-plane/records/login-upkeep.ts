/** Removes ended logins, logins beyond the limits, and expired used answers: in the background, a few at a time. */
import { MAX_IDLE_MS } from '../../link/planes/login-store.ts'
import { shared } from '../../model/shared.ts'
import { applicationSessions } from '../resources/application-sessions.ts'
import { applicationUsers } from '../resources/application-users.ts'
import type { ControlTools } from '../store/control-tools.ts'
import type { LoginWriter } from '../store/login-writer.ts'

/** Pause between two rounds, in milliseconds. */
const EVERY_MS = 60_000

/** Rows removed per transaction: few enough that nobody waits for it. */
const AT_A_TIME = 200

/** Used answers removed per transaction; their rows are small. */
const ANSWERS_AT_A_TIME = 2000

/** Transactions per round, of each kind; the rest is left to the next round. */
const BATCHES = 50

/**
 * Most logins, and most users. A row takes 1 to 2 KiB, so this is half a gigabyte of disk, and counting takes the database a tenth of
 * a second. The longest absent at the edges with most logins go first, and have to log in again.
 */
const MAX_KEPT = shared.storedLogins.most

/** How many edges give up logins in one round: for each the database reads the table once. */
const EDGES_A_ROUND = 10

export interface LoginUpkeepOptions extends Pick<ControlTools, 'store' | 'now' | 'log'> {
  /** Smaller ones are for tests. */
  readonly maxKept?: number
  readonly everyMs?: number
}

/** One transaction of a round: removes at most `limit` and announces them where others must know. */
type Share = (logins: LoginWriter, limit: number) => Promise<readonly string[]>

export class LoginUpkeep {
  readonly #options: Required<LoginUpkeepOptions>
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(options: LoginUpkeepOptions) {
    this.#options = { maxKept: MAX_KEPT, everyMs: EVERY_MS, ...options }
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#round = this.tidy().then(() => {
        if (!this.#isStopped) this.start()
      })
    }, this.#options.everyMs).unref()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#round
  }

  /** One round. Failures are retried in the next. */
  async tidy(): Promise<void> {
    const { store, maxKept, log } = this.#options
    const now = this.#options.now()
    try {
      // These need no announcement: each node knows by itself that they have expired.
      await this.#remove(Infinity, null, (logins, limit) => logins.removeEnded(now, limit))
      await this.#remove(Infinity, null, (logins, limit) => logins.removeUnseen(now - MAX_IDLE_MS, limit))
      await this.#remove(Infinity, null, (logins, limit) => logins.removeAnswers(now, limit), ANSWERS_AT_A_TIME)
      const sessions = await store.read(({ logins }) => logins.count('login_sessions'))
      if (sessions > maxKept) await this.#shareOut(sessions - maxKept)
      const users = await store.read(({ logins }) => logins.count('login_users'))
      // There are no more users with logins than logins; the others only stand in lists.
      await this.#remove(users - maxKept, applicationUsers.kind, (logins, limit) => logins.removeUnusedUsers(limit))
    } catch (err) {
      log.warn({ err }, 'cannot remove expired logins; retrying')
    }
  }

  /** Removes that many logins, of the edges with most of them (D104). */
  async #shareOut(excess: number): Promise<void> {
    const { store } = this.#options
    const edges = await store.read(({ logins }) => logins.largestEdges(EDGES_A_ROUND + 1))
    const level = levelOf(
      edges.map(({ count }) => count),
      Math.min(excess, BATCHES * AT_A_TIME),
    )
    for (const { edgeId, count } of edges.slice(0, EDGES_A_ROUND)) {
      if (count <= level) return
      const ids = await store.read(({ logins }) => logins.longestUnseen(edgeId, Math.min(count - level, excess)))
      for (let i = 0; i < ids.length && !this.#isStopped; i += AT_A_TIME) {
        const some = ids.slice(i, i + AT_A_TIME)
        await this.#remove(some.length, applicationSessions.kind, (logins) => logins.removeSessions(some))
      }
    }
  }

  /** Removes up to `count` rows; other nodes learn of them as changes of `kind`. */
  async #remove(count: number, kind: string | null, share: Share, atATime = AT_A_TIME): Promise<void> {
    let left = count
    for (let batch = 0; batch < BATCHES && left > 0 && !this.#isStopped; batch++) {
      const limit = Math.min(left, atATime)
      const gone = await this.#options.store.write(async (writer) => {
        const ids = await share(writer.logins, limit)
        if (kind !== null) for (const id of ids) writer.changed(kind, id)
        return ids
      })
      left -= gone.length
      if (gone.length < limit) return
    }
  }
}

/** How many each may keep so that all give up `excess` together: those with more give up the rest. `counts` fall. */
function levelOf(counts: readonly number[], excess: number): number {
  let sum = 0
  for (const [i, count] of counts.entries()) {
    sum += count
    const level = Math.floor((sum - excess) / (i + 1))
    if (level >= (counts[i + 1] ?? 0)) return Math.max(0, level)
  }
  return 0
}
