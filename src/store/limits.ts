/** How long the database may take before the store counts as away (D67). All in milliseconds. */

export interface StoreLimits {
  /** To connect, and to wait for a free connection or for a lock. */
  readonly connectionMs: number
  /** For one statement. */
  readonly statementMs: number
  /** For one statement of a migration, which may rewrite a table or wait for the migration of another node. */
  readonly migrationMs: number
  /** Between two looks for changes that no notice told of. */
  readonly pollMs: number
}

export const storeLimits: StoreLimits = {
  connectionMs: 5000,
  statementMs: 10_000,
  migrationMs: 600_000,
  pollMs: 5000,
}

/** The database took longer than its limit. What was asked of it may still happen. */
export class Overdue extends Error {
  /** As sockets have it, so that one word stands for a database that does not answer. */
  readonly code = 'ETIMEDOUT'

  constructor(what: string, limitMs: number, options?: ErrorOptions) {
    super(`${what} took longer than ${limitMs / 1000} s`, options)
    this.name = 'Overdue'
  }
}

/** Waits for `answer`, at most this long; whoever is late is ignored. */
export async function within<T>(limitMs: number, what: string, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Overdue(what, limitMs)), limitMs)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}
