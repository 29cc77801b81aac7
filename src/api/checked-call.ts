/** A call of the API after its caller, path, query and body were checked. */
import type { ResourceTarget } from '../control/ownership.ts'
import type { Principal } from '../control/principal.ts'
import type { Showing } from '../control/show.ts'
import type { Fields } from '../resources/resource.ts'
import type { Page } from './query.ts'
import type { ApiRoute } from './routes.ts'

export interface CheckedCall extends Showing {
  readonly route: ApiRoute
  readonly principal: Principal
  readonly target: ResourceTarget
  readonly parentId: string | null
  readonly page: Page
  readonly body: Fields
}
