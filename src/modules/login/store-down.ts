/** The answer while logins can be neither read nor stored: visitors are asked to retry, and nobody is let in. */
import { Refusal } from '../../model/errors.ts'
import type { Refuse } from '../phases.ts'

/** The refusal for an error that `LoginSessions` threw; rethrows any other error. */
export function storeDown(error: unknown, headers: NonNullable<Refuse['headers']> = []): Refuse {
  if (!(error instanceof Refusal) || error.code !== 'STORE_UNAVAILABLE') throw error
  return { refuse: 'LOGIN_STORE_DOWN', headers: [['Retry-After', error.headers['retry-after'] ?? '1'], ...headers] }
}
