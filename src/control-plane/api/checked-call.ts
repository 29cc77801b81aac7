/** A call of the API after its caller, path, query and body were checked. */

import type { Principal } from '../records/find-caller.ts'
import type { ResourceTarget } from '../records/ownership.ts'
import type { Showing } from '../records/show-resource.ts'
import type { Fields } from '../resources/resource.ts'
import type { Page } from './query.ts'
import type { ApiRoute } from './routes.ts'

export interface CheckedCall extends Showing {
  readonly route: ApiRoute
  readonly principal: Principal
  /** The caller's address. */
  readonly ip: string
  /** Checks the caller again; undefined when its key is no longer valid. */
  readonly recognise: () => Promise<Principal | undefined>
  /** Waits for the caller's turn at a large answer, once a call. Rejects with `Refusal`. */
  readonly turn: () => Promise<void>
  readonly target: ResourceTarget
  readonly parentId: string | null
  readonly page: Page
  readonly body: Fields
}
