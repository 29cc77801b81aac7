/** Who is connected and what they serve, whatever carries it: what the registry keeps. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { DialFault, DialRequest } from '../model/dial.ts'
import type { AgentCommand, PresentSession } from '../model/presence.ts'
import type { EndpointRequest, OpenEndpoint } from './ports.ts'
import type { TunnelTable } from './tunnel-table.ts'

/** One agent's live connection. */
export interface LiveSession {
  readonly id: string
  readonly credentialId: string
  /** Of the SSH certificate that it was let in by, if it was. */
  readonly certificateId?: string | undefined
  readonly present: PresentSession
  readonly tunnels: TunnelTable
  readonly isEnded: boolean
  /** Connections of visitors that are open. */
  readonly connections: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** Asks its agent for a sign of life, and ends it when none comes; many may ask at once. */
  proveAlive(): Promise<void>
  open(tunnel: Tunnel, request: DialRequest): ByteStream | DialFault | Promise<ByteStream | DialFault>
  /** Resolves once the agent acknowledged; throws a `Refusal`. */
  command(command: AgentCommand): Promise<void>
  /** Tells the agent that a tunnel of its is over, where it can be told. */
  tellStopped(tunnel: Tunnel, why: { readonly message: string; readonly ngrok: number }): void
  /** Ends it now and gives back all that it holds; what it is for is logged. */
  end(reason: string): void
}

/** One thing a session serves. */
export interface Tunnel {
  /** `tn_…` */
  readonly id: string
  /** How the agent calls it; unique in its session. */
  readonly wireId: string
  readonly session: LiveSession
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly forwardsTo: string
  /** What to speak over a stream that carries HTTP. */
  readonly httpVersion: 1 | 2
  /** Agent-initiated: it has a URL of its own. */
  readonly endpoint?: {
    readonly id: string
    readonly proto: EndpointRequest['proto']
    /** No other endpoint can be there. */
    readonly place: string
    readonly open: OpenEndpoint
  }
  /** Backend: tunnel groups find it by these. */
  readonly labels?: Readonly<Record<string, string>>
  /** What the agent may change while the tunnel is online. */
  metadata: string
  name: string
  description: string
  updatedAt: number
  /** Gives back its address. Called once, when it leaves the registry. */
  close(): void
}
