/** What every request is given to work with. */
import type { Clock } from '../../lib/clock.ts'
import type { Logger } from '../../lib/log/log.ts'
import type { Peer } from '../../modules/phases.ts'
import type { BodyMemory } from '../body-memory.ts'
import type { Sweep } from '../sweep.ts'
import type { UpstreamPool } from '../upstream-pool.ts'
import type { AccessRecord } from './access-record.ts'
import type { FindEdge } from './pick-edge.ts'

export interface ProxyTools {
  readonly edges: FindEdge
  readonly pool: UpstreamPool
  readonly sweep: Sweep
  /** What bodies that modules read may take. */
  readonly bodyMemory: BodyMemory
  readonly log: Logger
  readonly now: Clock
  readonly newRequestId: () => string
  /** What stands in URLs of the TLS listener. */
  readonly publicHttpsPort: () => number
  /** Whether the restriction of all public addresses lets a visitor in. */
  readonly admits: (peer: Peer) => boolean
  /** How long no byte may move in either direction while a service is asked, in milliseconds. */
  readonly idleMs: number
  readonly onRequest: ((record: AccessRecord) => void) | undefined
}
