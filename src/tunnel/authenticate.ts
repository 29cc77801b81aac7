/** Who an agent is: its authtoken, the version it speaks, and the session that it may be returning to. */
import type { Clock } from '../lib/clock.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Logger } from '../lib/log/log.ts'
import { type AuthRequest, chooseVersion } from '../wire/messages/auth.ts'
import type { AgentCredential, BindRefusal, Credentials } from './ports.ts'
import { refusals } from './refusals.ts'
import { type Cookie, findReturn } from './resume.ts'
import type { Seal } from './sealed.ts'
import { MAX_METADATA_BYTES } from './tunnel-bounds.ts'

export interface Authenticating {
  readonly credentials: Credentials
  readonly seal: Seal
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
}

export interface Authenticated extends Cookie {
  /** The protocol version. */
  readonly version: string
  readonly isResumed: boolean
}

/** The form of an authtoken; those chosen by operators have 32 or more characters. */
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
    return refusals.storeAway()
  }
  if (!credential) return refusals.tokenUnknown()
  const { clientId, leg } = request
  const credentialId = credential.id
  const former = findReturn(seal, { clientId, cookie: request.cookie.reveal(), leg, credentialId })
  if (former) return { ...former, version, isResumed: true }
  return { sessionId: ids.next('ts_'), credentialId, startedAt: now(), version, isResumed: false }
}
