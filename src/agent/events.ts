/** The events of an agent, for displays. */
import type { Command } from './agent-commands.ts'
import type { AgentFault } from './agent-fault.ts'
import type { ConnectionEnd, Visitor } from './forward.ts'
import type { ServerAddress } from './server-address.ts'
import type { AgentTunnel } from './tunnel.ts'

/** Where an agent is connected. */
export interface Connected {
  /** Not always the address that the agent was told to connect to: other nodes serve the session too. */
  readonly server: ServerAddress
  /** The id that the API shows. */
  readonly session: string
  readonly region: string
}

export type AgentEvent =
  | (Connected & { readonly type: 'online'; readonly serverVersion: string; readonly isResumed: boolean })
  /** The agent has a new connection; its tunnels stayed online. */
  | (Connected & { readonly type: 'moved'; readonly serverVersion: string })
  | { readonly type: 'offline'; readonly fault: AgentFault; readonly retryMs: number }
  /** Pooled tunnels are served through a second node as well. */
  | (Connected & { readonly type: 'second-online' })
  /** Only one node serves them again. */
  | { readonly type: 'second-offline'; readonly fault: AgentFault }
  /** A standby waits at another node, in case this connection is lost. */
  | { readonly type: 'standby'; readonly server: ServerAddress; readonly region: string }
  /** The tunnel has its first address, or another one than before. */
  | { readonly type: 'tunnel-online'; readonly tunnel: AgentTunnel }
  /** The server did not give the tunnel its address back; the agent will ask again. */
  | { readonly type: 'tunnel-refused'; readonly tunnel: AgentTunnel; readonly fault: AgentFault }
  /** The server closed the tunnel for good. */
  | { readonly type: 'tunnel-stopped'; readonly tunnel: AgentTunnel; readonly message: string }
  | { readonly type: 'connection-opened'; readonly tunnel: AgentTunnel; readonly visitor: Visitor }
  | { readonly type: 'connection-closed'; readonly tunnel: AgentTunnel; readonly end: ConnectionEnd }
  /** The service behind the tunnel does not answer; reported once for each reason. */
  | { readonly type: 'service-down'; readonly tunnel: AgentTunnel; readonly reason: string }
  | { readonly type: 'service-up'; readonly tunnel: AgentTunnel }
  | { readonly type: 'command'; readonly name: Command; readonly error: string }
  /** A request was seen; see `TunnelFigures`. */
  | { readonly type: 'request' }
