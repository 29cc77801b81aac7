/** What most parts of a control plane work with: each names those that it takes. */
import type { Clock } from '../../lib/clock.ts'
import type { IdSource } from '../../lib/ids.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Sealer } from '../../lib/secrets/seal.ts'
import type { Store } from './store.ts'

export interface ControlTools {
  readonly store: Store
  readonly sealer: Sealer
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
}
