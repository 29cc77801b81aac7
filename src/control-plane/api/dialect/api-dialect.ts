/** The type of a dialect: the same API, spelled as the clients of one vendor read and write it. */
import type { Refusal } from '../../../model/errors.ts'
import type { ApiRoute } from '../routes.ts'

/** The parts of a refusal that select its error code. */
export type Refused = Pick<Refusal, 'code' | 'field' | 'reason'>

export interface Dialect {
  /** Response headers that carry the operation id. */
  readonly operationHeaders: readonly string[]
  /** Names of query parameters that stand for one of ours. */
  readonly queryAliases: ReadonlyMap<string, string>
  /** Whether a query parameter without a value, such as `?before_id=`, counts as left out. */
  readonly ignoresEmptyQuery: boolean
  /** The `error_code` of a refusal; `route` is undefined where none was reached. */
  readonly errorCode: (refusal: Refused, route: ApiRoute | undefined) => string
  /** Converts a body as sent, without the ids of the path, to the form of the route's schema. */
  readonly readBody: (route: ApiRoute, body: Readonly<Record<string, unknown>>) => unknown
  /** Whether edges and routes show their modules in all spellings. */
  readonly showsSpellings: boolean
  /** The body of an answer, undefined for none, as these clients need it. A 204 that gets a body is sent as a 200. */
  readonly answer: (route: ApiRoute, answer: unknown, userAgent: string) => unknown
}
