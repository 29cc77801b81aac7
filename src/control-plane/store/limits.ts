/** How long the database may take before the store counts as unavailable (D67). */
import { inTime } from '../../lib/in-time.ts'

/** All in milliseconds. */
export interface StoreLimits {
  /** To connect, and to wait for a free connection or for a lock. */
  readonly connectionMs: number
  /** For one statement. */
  readonly statementMs: number
  /** For one statement of a migration, which may rewrite a table or wait for the migration of another node. */
  readonly migrationMs: number
  /** Between two polls for changes that no notification announced. */
  readonly pollMs: number
}

export const storeLimits: StoreLimits = {
  connectionMs: 5000,
  statementMs: 10_000,
  migrationMs: 600_000,
  pollMs: 5000,
}

/** The database took longer than its limit. The statement may still take effect. */
export class Overdue extends Error {
  /** The same code as a socket timeout, so that one code means a database that does not answer. */
  readonly code = 'ETIMEDOUT'

  constructor(what: string, limitMs: number, options?: ErrorOptions) {
    super(`${what} took longer than ${limitMs / 1000} s`, options)
    this.name = 'Overdue'
  }
}

/** Waits for `answer`, at most `limitMs`; a later answer is ignored. */
export function within<T>(limitMs: number, what: string, answer: Promise<T>): Promise<T> {
  return inTime(answer, limitMs, () => new Overdue(what, limitMs))
}
