/** Who may see and own what (D21 to D24). */
import { Refusal } from '../../model/errors.ts'
import type { Resource } from '../resources/resource.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import type { Principal } from './find-caller.ts'

/** The id of a resource, and of its parent where the path names it. */
export interface ResourceTarget {
  readonly id: string
  readonly parentId?: string
}

/** D22: for a member, what it may not see does not exist. D29: nor does a route under another edge. */
export function visible(
  resource: Resource,
  principal: Principal,
  { parentId }: ResourceTarget,
  found: StoredResource | undefined,
): StoredResource {
  const isThere =
    found !== undefined &&
    (parentId === undefined || found.parentId === parentId) &&
    (!seesOnlyOwn(resource, principal) || found.ownerId === principal.id)
  if (!isThere) throw new Refusal('NOT_FOUND', `there is no ${resource.noun} with this id`)
  return found
}

export function seesOnlyOwn(resource: Resource, principal: Principal): boolean {
  return resource.access === 'owner' && principal.role !== 'admin'
}

/** D23: the caller, unless an admin names somebody else who exists. */
export async function ownerOf(reader: Reader, principal: Principal, named: unknown): Promise<string> {
  if (typeof named !== 'string' || named === '' || named === principal.id) return principal.id
  if (principal.role !== 'admin') throw new Refusal('OWNER_NOT_ALLOWED', undefined, { field: 'owner_id' })
  const kind = (await reader.kinds([named])).get(named)
  if (kind !== 'user' && kind !== 'bot_user') {
    throw new Refusal('UNKNOWN_OWNER', '`owner_id`: there is no user or bot with this id', { field: 'owner_id' })
  }
  return named
}
