/** The cookie of a session: with it an agent that lost its connection comes back as the same session (D46). */
import { isId } from '../../lib/ids.ts'
import { openFacts, type Seal, sealFacts } from './sealed.ts'

export interface Cookie {
  readonly sessionId: string
  readonly credentialId: string
  /** When the session first connected, in milliseconds since 1970. */
  readonly startedAt: number
}

export function sealCookie(seal: Seal, cookie: Cookie): string {
  return sealFacts(seal, 'session', { ...cookie })
}

/** What an agent says about its previous session; `leg` numbers the connections of one session, from 0. */
interface Return {
  readonly clientId: string
  readonly cookie: string
  readonly leg: number
  readonly credentialId: string
}

/**
 * The session that an agent returns to; undefined for a new one. Cookies never expire, since an agent may have been away for any
 * time. An invalid cookie means a new session, never an error, since agents repeat it for ever.
 */
export async function findReturn(
  seal: Seal,
  { clientId, cookie, leg, credentialId }: Return,
): Promise<Cookie | undefined> {
  // A further leg asks for an additional connection, not for a replacement.
  if (clientId === '' || leg !== 0) return undefined
  const facts = await openFacts(seal, 'session', cookie)
  if (facts?.sessionId !== clientId || facts.credentialId !== credentialId) return undefined
  if (!isId(clientId, 'ts_') || typeof facts.startedAt !== 'number') return undefined
  return { sessionId: clientId, credentialId, startedAt: facts.startedAt }
}
