/** How the data plane reaches the service behind a tunnel, without knowing who holds the agent's session. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'

export interface DialRequest {
  readonly tunnelId: string
  /** The visitor, who is told to the agent. */
  readonly ip: string
  readonly port: number
  readonly proto: 'http' | 'https' | 'tcp' | 'tls'
  /** The kind of edge that the traffic comes through; `none` for an endpoint of the agent itself. */
  readonly edge: 'none' | 'tcp' | 'tls' | 'https'
  /** The bytes are still TLS. */
  readonly passthroughTls: boolean
  /** The request that the connection is opened for, as it stands in the log; left out where no requests are seen. */
  readonly requestId?: string | undefined
}

/** Opens one connection; never rejects. */
export type Dial = (request: DialRequest) => Promise<ByteStream | DialFault>

/** `offline`: nobody serves the tunnel (any more). `busy`: the agent takes no more connections. `timeout`: no answer in time. */
export type DialReason = 'offline' | 'busy' | 'timeout' | 'refused'

/** Nothing was sent to the service: another tunnel may be tried. */
export class DialFault extends Error {
  readonly reason: DialReason

  constructor(reason: DialReason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'DialFault'
    this.reason = reason
  }
}

/** One of the tunnels of a group. */
export interface GroupMember {
  readonly tunnelId: string
  readonly httpVersion: 1 | 2
}

/** The tunnels that carry all of a group's labels at this moment, oldest first; the list is replaced, never changed. */
export interface TunnelGroup {
  readonly members: readonly GroupMember[]
  /** Nobody asks for this group any more. */
  release(): void
}

/** Keeps the members of a group current, so that no connection looks for them. */
export type FollowGroup = (labels: Readonly<Record<string, string>>) => TunnelGroup
