/** The tools that every request works with. */
import type { Clock } from '../../../lib/clock.ts'
import type { AgeList } from '../../../lib/limits/age-list.ts'
import type { Logger } from '../../../lib/log/create-log.ts'
import type { LookUp } from '../../../model/look-up.ts'
import type { Peer } from '../../../modules/phases.ts'
import type { AccessRecord } from '../../requests/access-record.ts'
import type { EdgeCaptures } from '../../requests/running-captures.ts'
import type { BodyMemory } from '../body-memory.ts'
import type { Sweep } from '../deadlines.ts'
import type { ErrorPages } from '../pages/error-page.ts'
import type { UpstreamPool } from '../upstream-pool.ts'
import type { FindEdge } from './pick-edge.ts'
import type { ProxiedRequest } from './proxied-request.ts'

export interface ProxyTools {
  readonly edges: FindEdge
  /** Requests that have begun and are not over. */
  readonly open: AgeList<ProxiedRequest>
  /** Asks other nodes who serves a name; undefined when that is known. Left out when there are no other nodes. */
  readonly lookUp?: LookUp | undefined
  readonly pool: UpstreamPool
  /** Ends requests that wait too long. */
  readonly sweep: Sweep
  /** The memory for bodies that modules read. */
  readonly bodyMemory: BodyMemory
  /** The current error pages for visitors. */
  readonly pages: () => ErrorPages
  readonly log: Logger
  readonly now: Clock
  readonly newRequestId: () => string
  /** The port shown in URLs of the TLS listener. */
  readonly publicHttpsPort: () => number
  /** Whether the IP restriction of public addresses admits a visitor. */
  readonly admits: (peer: Peer) => boolean
  /** How long a request may go without a byte in either direction, in milliseconds. */
  readonly idleMs: number
  /** The same while the service does not take what the visitor sends: the visitor may have left. Not longer than `idleMs`. */
  readonly uploadMs: number
  /** Called for requests of an address that describe their visit as a trusted proxy would. */
  readonly onProxied?: ((ip: string) => void) | undefined
  readonly onRequest: ((record: AccessRecord) => void) | undefined
  /** The edges whose heads and bodies are kept. */
  readonly captures: EdgeCaptures
}
