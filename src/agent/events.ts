/** What happens to an agent, for whoever shows it. */
import type { Command } from './commands.ts'
import type { AgentFault } from './fault.ts'
import type { ConnectionEnd, Visitor } from './forward.ts'
import type { AgentTunnel } from './tunnel.ts'

export type AgentEvent =
  | {
      readonly type: 'online'
      /** The id that the API shows. */
      readonly session: string
      readonly region: string
      readonly serverVersion: string
      readonly isResumed: boolean
    }
  | { readonly type: 'offline'; readonly fault: AgentFault; readonly retryMs: number }
  /** It has an address, for the first time or another one. */
  | { readonly type: 'tunnel-online'; readonly tunnel: AgentTunnel }
  /** The server does not give it back its address; it is asked again. */
  | { readonly type: 'tunnel-refused'; readonly tunnel: AgentTunnel; readonly fault: AgentFault }
  /** The server ended it for good. */
  | { readonly type: 'tunnel-stopped'; readonly tunnel: AgentTunnel; readonly message: string }
  | { readonly type: 'connection-opened'; readonly tunnel: AgentTunnel; readonly visitor: Visitor }
  | { readonly type: 'connection-closed'; readonly tunnel: AgentTunnel; readonly end: ConnectionEnd }
  /** The service behind it does not answer; told once for each reason. */
  | { readonly type: 'service-down'; readonly tunnel: AgentTunnel; readonly reason: string }
  | { readonly type: 'service-up'; readonly tunnel: AgentTunnel }
  | { readonly type: 'command'; readonly name: Command; readonly error: string }
  /** A request was seen; see `Figures`. */
  | { readonly type: 'request' }
