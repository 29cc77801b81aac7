/** Sessions and tunnels as the registry keeps them, whichever listener they came through. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { DialFault, DialRequest } from '../../model/dial.ts'
import type { LabelledTunnel } from '../../model/label-groups.ts'
import type { AgentCommand, PresentSession } from '../../model/presence.ts'
import type { EndpointRequest, OpenEndpoint } from './interfaces.ts'
import type { TunnelTable } from './tunnel-table.ts'

/** One agent's live connection. */
export interface LiveSession {
  readonly id: string
  readonly credentialId: string
  /** The SSH certificate that it logged in with, if any. */
  readonly certificateId?: string | undefined
  readonly present: PresentSession
  readonly tunnels: TunnelTable
  readonly isEnded: boolean
  /** Open connections of visitors. */
  readonly connections: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Asks the agent for a sign of life, and ends the session when none comes; concurrent calls share one ping. */
  proveAlive(): Promise<void>
  open(tunnel: Tunnel, request: DialRequest): ByteStream | DialFault | Promise<ByteStream | DialFault>
  /** Resolves once the agent has acknowledged it; throws a `Refusal` otherwise. */
  command(command: AgentCommand): Promise<void>
  /** Tells the agent that one of its tunnels is over, if it can be told. */
  tellStopped(tunnel: Tunnel, why: { readonly message: string; readonly ngrok: number }): void
  /**
   * Asks the agent to reconnect, to one of these nodes if any are given, and to close this connection when its tunnels are served
   * there. False when the agent does not support that.
   */
  tellToMove?(nodes?: readonly string[]): boolean
  /** Tells the agent where other nodes accept agents, if it supports that. */
  tellNodes?(addresses: readonly string[]): void
  /** Ends the session at once and releases everything it holds; the reason is logged. */
  end(reason: string): void
}

/** One thing a session serves. */
export interface Tunnel {
  /** `tn_…` */
  readonly id: string
  /** The id that the agent uses; unique in its session. */
  readonly wireId: string
  readonly session: LiveSession
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly forwardsTo: string
  /** The HTTP version for streams that carry HTTP. */
  readonly httpVersion: 1 | 2
  /** Set when it has an address of its own. */
  readonly endpoint?: {
    readonly id: string
    readonly proto: EndpointRequest['proto']
    /** A key that no two endpoints share. */
    readonly place: string
    readonly open: OpenEndpoint
  }
  /** Its entry in the pool at its address, if it is in one. */
  readonly poolMember?: LabelledTunnel | undefined
  /** Its labels, if tunnel groups find it by them. */
  readonly labels?: Readonly<Record<string, string>>
  /** Fields that the agent may change while the tunnel is online. */
  metadata: string
  name: string
  description: string
  updatedAt: number
  /** Releases its address. Either this or `handOver` is called, once, when it leaves the registry. */
  close(): void
  /** Leaves its address to another data plane, which has it now. */
  handOver(): void
}
