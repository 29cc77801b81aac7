/** The answer while logins can be neither read nor stored: visitors are asked to retry, and nobody is let in. */
import { Refusal } from '../../model/errors.ts'
import type { Refuse } from '../phases.ts'

/** The database does not answer, or others changed the same logins meanwhile. */
const temporary: ReadonlySet<string> = new Set(['STORE_UNAVAILABLE', 'CONFLICT'])

/** The refusal for an error that `LoginSessions` threw; rethrows any other error. */
export function storeDown(error: unknown, headers: NonNullable<Refuse['headers']> = []): Refuse {
  if (!(error instanceof Refusal) || !temporary.has(error.code)) throw error
  return { refuse: 'LOGIN_STORE_DOWN', headers: [['Retry-After', error.headers['retry-after'] ?? '1'], ...headers] }
}
