/** Limits of weighted and failover backends: which backends they may hold, and how many. */
import type { Mention } from '../../modules/module.ts'

/** The most children; split more of them into nested backends. */
export const MAX_CHILDREN = 100

/** Backends that hold other backends. */
export const NESTING_KINDS: readonly string[] = ['weighted_backend', 'failover_backend']

const childKinds = ['tunnel_group_backend', 'http_response_backend', 'static_backend', ...NESTING_KINDS]

/** The children as references: they must exist, and cannot be deleted while they are in use. */
export function childMentions(ids: readonly string[]): Mention[] {
  return ids.map((id) => ({ field: 'backends', id, kinds: childKinds }))
}
