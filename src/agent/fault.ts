/** Why an agent is not online or a tunnel not open, in words for people. */
import type { WireError } from '../wire/wire-error.ts'

/**
 * `unreachable`: no connection. `untrusted`: a certificate that we do not take. `refused`: the server said no.
 * `lost`: the session ended. `closed`: we ended it ourselves.
 */
export type AgentFaultCode = 'unreachable' | 'untrusted' | 'refused' | 'lost' | 'closed'

export class AgentFault extends Error {
  readonly code: AgentFaultCode
  /** Code of the server's own, such as `ERR_NGROK_105`; `''` when it gave none. */
  readonly serverCode: string

  constructor(
    code: AgentFaultCode,
    message: string,
    { serverCode = '', cause }: { serverCode?: string; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'AgentFault'
    this.code = code
    this.serverCode = serverCode
  }

  /** Whether trying the same again can help: a server may come back, a wrong authtoken does not become right. */
  get mayPass(): boolean {
    if (this.code === 'refused') return passing.has(this.serverCode)
    return this.code !== 'untrusted' && this.code !== 'closed'
  }
}

/** Refusals of a server that is busy with itself: too many sessions, an inner fault, shutting down. */
const passing: ReadonlySet<string> = new Set(['ERR_NGROK_108', 'ERR_NGROK_802', 'ERR_NGROK_803', 'ERR_NGROK_810'])

/** What ended a session; `undefined` is a farewell. */
export function lostSession(error: WireError | undefined): AgentFault {
  if (error === undefined) return new AgentFault('lost', 'the server ended the session')
  return new AgentFault('lost', words(error), { cause: error })
}

function words({ code, message }: WireError): string {
  if (code === 'dead_peer') return 'the server gave no sign of life'
  if (code === 'timed_out') return 'the server did not answer in time'
  return code === 'peer_eof' || code === 'session_closed' ? 'the connection ended' : message
}
