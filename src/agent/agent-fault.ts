/** Why an agent is not online or a tunnel is not open, with a message for people. */
import { WireError } from '../link/wire/wire-error.ts'

/**
 * `unreachable`: no connection. `untrusted`: the certificate is not accepted. `refused`: the server said no.
 * `lost`: the session ended. `closed`: the agent ended it itself.
 */
export type AgentFaultCode = 'unreachable' | 'untrusted' | 'refused' | 'lost' | 'closed'

export class AgentFault extends Error {
  readonly code: AgentFaultCode
  /** The error code that the server gave, such as `ERR_NGROK_105`; `''` when it gave none. */
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

  /** Whether the server fell silent; other connections to it may be cut as well. */
  get isSilence(): boolean {
    return this.cause instanceof WireError && this.cause.code === 'dead_peer'
  }

  /** Whether a retry can help: a server may come back, but a wrong authtoken stays wrong. */
  get mayPass(): boolean {
    if (this.code === 'refused') return passing.has(this.serverCode)
    return this.code !== 'untrusted' && this.code !== 'closed'
  }
}

/** Refusals that pass: too many sessions, an internal error, a server that is shutting down. */
const passing: ReadonlySet<string> = new Set(['ERR_NGROK_108', 'ERR_NGROK_802', 'ERR_NGROK_803', 'ERR_NGROK_810'])

/** Whatever was thrown, as a fault. */
export function asFault(error: unknown): AgentFault {
  if (error instanceof AgentFault) return error
  const text = error instanceof Error ? error.message : String(error)
  return new AgentFault('unreachable', text, { cause: error })
}

/** The fault for what ended a session; `undefined` means that the server closed it in order. */
export function lostSession(error: WireError | undefined): AgentFault {
  if (error === undefined) return new AgentFault('lost', 'the server ended the session')
  return new AgentFault('lost', words(error), { cause: error })
}

function words({ code, message }: WireError): string {
  if (code === 'dead_peer') return 'the server stopped responding'
  if (code === 'timed_out') return 'the server did not answer in time'
  return code === 'peer_eof' || code === 'session_closed' ? 'the connection ended' : message
}
