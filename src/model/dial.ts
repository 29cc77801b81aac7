/** The port through which the data plane reaches the service behind a tunnel, whoever holds the agent's session. */
import type { ByteStream } from '../lib/bytes/byte-stream.ts'

export interface DialRequest {
  readonly tunnelId: string
  /** Address and port of the visitor; both are sent to the agent. */
  readonly ip: string
  readonly port: number
  readonly proto: 'http' | 'https' | 'tcp' | 'tls'
  /** The kind of edge that the traffic comes through; `none` for an endpoint of the agent itself. */
  readonly edge: 'none' | 'tcp' | 'tls' | 'https'
  /** Whether the bytes are still encrypted: the service ends TLS itself. */
  readonly passthroughTls: boolean
  /** The log's id of the request that the connection is opened for; absent where the edge sees no requests. */
  readonly requestId?: string | undefined
  /** The version of the address under which another node admitted the visitor; see `ServedEndpoint`. */
  readonly version?: string | undefined
}

/** The most characters of a `DialRequest.version`. */
export const VERSION_CHARACTERS = 64

/** Opens one connection; never rejects. */
export type Dial = (request: DialRequest) => Promise<ByteStream | DialFault>

/**
 * `offline`: no agent serves the tunnel. `busy`: the agent accepts no more connections. `timeout`: no answer in time.
 * `refused`: the service cannot be reached. `unreachable`: the node that holds the agent's session cannot be reached.
 */
export type DialReason = 'offline' | 'busy' | 'timeout' | 'refused' | 'unreachable'

/** Dialling failed before anything was sent to the service, so another tunnel may be tried. */
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
  /** Whether it is at another node. */
  readonly isRemote?: boolean | undefined
}

/** The tunnels that carry all of a group's labels at this moment, oldest first; the list is replaced, never changed. */
export interface TunnelGroup {
  readonly members: readonly GroupMember[]
  /** Undefined when the members are known; else resolves when other nodes have reported theirs. */
  found?(): Promise<void> | undefined
  /** Stops following the group for this caller. */
  release(): void
}

/** Follows a tunnel group and keeps its members current, so that no connection has to search for them. */
export type FollowGroup = (labels: Readonly<Record<string, string>>) => TunnelGroup
