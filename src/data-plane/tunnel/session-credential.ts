/** Looks up the present credential of a session: its ACL may have changed since the agent connected. */
import type { Logger } from '../../lib/log/create-log.ts'
import { type Control, LOOKUP_MS } from '../../link/planes/control-link.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { AgentCredential, BindRefusal } from './interfaces.ts'
import type { LiveSession } from './session-types.ts'

export async function sessionCredential(
  session: LiveSession,
  { control, log }: { readonly control: Control; readonly log: Logger },
): Promise<AgentCredential | BindRefusal> {
  let credential: AgentCredential | undefined
  try {
    credential = await control.ask('currentCredential', { id: session.credentialId }, { withinMs: LOOKUP_MS })
  } catch (error) {
    log.warn({ session: session.id, error }, 'credential cannot be looked up')
    return refusals.storeAway()
  }
  if (session.isEnded) return refusals.stopping()
  return credential ?? refusals.credentialGone()
}
