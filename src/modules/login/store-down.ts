/** What visitors are told while logins can be neither read nor stored: to come again, and never to come in. */
import { Refusal } from '../../model/errors.ts'
import type { Refuse } from '../phases.ts'

/** The refusal for what a call of `LoginSessions` threw; throws it on when it is something else. */
export function storeDown(error: unknown, headers: NonNullable<Refuse['headers']> = []): Refuse {
  if (!(error instanceof Refusal) || error.code !== 'STORE_UNAVAILABLE') throw error
  return { refuse: 'LOGIN_STORE_DOWN', headers: [['Retry-After', error.headers['retry-after'] ?? '1'], ...headers] }
}
