/** What every part of a server is given. */
import type { Clock } from '../../lib/clock.ts'
import type { Descriptors } from '../../lib/files/descriptors.ts'
import type { IdSource } from '../../lib/ids.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Settings } from '../config/read-settings.ts'

export interface ServerContext {
  readonly settings: Settings
  readonly ids: IdSource
  readonly now: Clock
  readonly log: Logger
  readonly descriptors: Descriptors
  /** The version of the loaded code. */
  readonly version: string
}
