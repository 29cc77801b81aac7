/** What every step of opening the management API is given. */

import type { Listeners } from '../config/listeners.ts'
import type { ControlGiven } from '../supervisor/control-child.ts'
import type { WorkerAddresses } from '../supervisor/process-messages.ts'
import type { ControlPlane } from './open-control-plane.ts'
import type { ServerContext } from './server-context.ts'

export interface ManagementOptions extends ServerContext {
  readonly listeners: Pick<Listeners, 'api' | 'metrics'>
  readonly control: ControlPlane
  /** The port that hostports of HTTPS and TLS edges have. */
  readonly publicHttpsPort: number
  /** Where the data planes listen, as `host:port`. */
  readonly planeAddresses: WorkerAddresses
  /** Counts of the supervisor, when there are several processes. */
  readonly supervisor?: Pick<ControlGiven, 'restarts' | 'lostLines'>
}

export type OpeningApi = ReturnType<typeof beginApi>

/** `opened` takes how to close what each step opens. */
export function beginApi(options: ManagementOptions, opened: AsyncDisposableStack) {
  return { ...options, opened, live: options.control.live }
}
