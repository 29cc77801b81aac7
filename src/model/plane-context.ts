/** What most parts of a data plane are given; each picks what it needs. */
import type { Clock } from '../lib/clock.ts'
import type { Descriptors } from '../lib/files/descriptors.ts'
import type { IdSource } from '../lib/ids.ts'
import type { Logger } from '../lib/log/create-log.ts'
import type { ConnectionCaps } from '../lib/net/connection-caps.ts'
import type { MeetVisitor } from '../lib/net/trusted-hop.ts'

export interface PlaneContext {
  readonly now: Clock
  readonly log: Logger
  readonly ids: IdSource
  /** Shown in sessions, tunnels and endpoints. */
  readonly region: string
  /** The domain of random names, and the host in URLs of TCP endpoints. */
  readonly domain: string
  /** Finds the address of a peer behind a load balancer; by default, that of the connection. */
  readonly meet?: MeetVisitor | undefined
  /** Limits on connections; none by default. */
  readonly caps?: ConnectionCaps | undefined
  readonly descriptors?: Descriptors | undefined
  /** Whether an IP restriction admits an address; by default all are admitted. */
  readonly admits?: ((peer: { readonly ip: string }) => boolean) | undefined
}
