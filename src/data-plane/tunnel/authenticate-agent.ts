/** Authenticates an agent: its authtoken, its protocol version, and the session that it may be returning to. */

import { type AuthRequest, chooseVersion } from '../../link/wire/messages/auth.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { PlaneContext } from '../../model/plane-context.ts'
import type { AgentCredential, BindRefusal, Credentials } from './interfaces.ts'
import { MAX_LEG } from './leg-table.ts'
import { type Cookie, findReturn } from './resume.ts'
import { openFacts, type Seal } from './sealed.ts'
import { MAX_METADATA_BYTES } from './tunnel-bounds.ts'

export interface Authenticating extends Pick<PlaneContext, 'ids' | 'now' | 'log'> {
  readonly credentials: Credentials
  /** Seals tokens, which must survive a restart. */
  readonly seal: Seal
}

export interface Authenticated extends Cookie {
  /** The protocol version. */
  readonly version: string
  readonly isResumed: boolean
  /** The role of the connection: a session, a leg of a session that is online elsewhere, or a standby. */
  readonly as: 'session' | 'leg' | 'standby'
}

/** The form of an authtoken; operators may choose their own, of 32 characters or more. */
const authtoken = /^[A-Za-z0-9_]{32,256}$/

export async function authenticate(
  request: AuthRequest,
  { credentials, seal, ids, now, log }: Authenticating,
): Promise<Authenticated | BindRefusal> {
  const version = chooseVersion(request.versions)
  if (version === undefined) return refusals.noCommonVersion()
  if (Buffer.byteLength(request.metadata) > MAX_METADATA_BYTES) return refusals.sessionMetadata(MAX_METADATA_BYTES)
  if (!authtoken.test(request.authtoken.reveal())) return refusals.tokenMalformed()
  let credential: AgentCredential | undefined
  try {
    credential = await credentials.find(request.authtoken)
  } catch (error) {
    log.warn({ error }, 'credential cannot be looked up')
    // An agent that was here a moment ago may come back; others wait.
    credential = await recallSession(request, { credentials, seal })
    if (!credential) return refusals.storeAway()
  }
  if (!credential) return refusals.tokenUnknown()
  const { clientId, leg, heldPlanes } = request
  const credentialId = credential.id
  if (heldPlanes) {
    // A leg proves itself like a session that returns, but without proof it does not become a session.
    const of = await findReturn(seal, { clientId, cookie: request.cookie.reveal(), leg: 0, credentialId })
    if (!of || leg < 1 || leg > MAX_LEG) return refusals.legUnknown()
    return { ...of, version, isResumed: true, as: 'leg' }
  }
  if (request.standbyOf) {
    const { clientId: sessionId, cookie } = request.standbyOf
    const of = await findReturn(seal, { clientId: sessionId, cookie: cookie.reveal(), leg: 0, credentialId })
    return of ? { ...of, version, isResumed: true, as: 'standby' } : refusals.standbyUnknown()
  }
  const former = await findReturn(seal, { clientId, cookie: request.cookie.reveal(), leg, credentialId })
  if (former) return { ...former, version, isResumed: true, as: 'session' }
  return { sessionId: ids.next('ts_'), credentialId, startedAt: now(), version, isResumed: false, as: 'session' }
}

/** The remembered credential of an agent whose cookie proves that it was here. */
async function recallSession(
  { authtoken: token, cookie }: AuthRequest,
  { credentials, seal }: Pick<Authenticating, 'credentials' | 'seal'>,
): Promise<AgentCredential | undefined> {
  const facts = await openFacts(seal, 'session', cookie.reveal())
  if (typeof facts?.sessionId !== 'string') return undefined
  const credential = await credentials.recall?.(token, facts.sessionId).catch(() => undefined)
  return credential?.id === facts.credentialId ? credential : undefined
}
