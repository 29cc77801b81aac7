/** Finds edges and reservations whose names are those of the server itself: stored before it had them (D105). */
import { agentIngresses } from '../resources/agent-ingresses.ts'
import { EDGE_NAMES } from '../resources/hostports.ts'
import { RESERVED_NAMES } from '../resources/reserved-domains.ts'
import type { Store } from '../store/store.ts'

/** The scopes of claims from which names of the server are kept. */
export const KEPT_FROM: readonly string[] = [EDGE_NAMES, RESERVED_NAMES]

/** Each as `name of id`. */
export async function heldNames(store: Store, names: ReadonlySet<string>): Promise<string[]> {
  if (names.size === 0) return []
  return heldByOthers(await store.read((reader) => reader.holders(KEPT_FROM, [...names])))
}

/** Agent ingresses are names of the server too. */
export function heldByOthers(held: readonly { readonly key: string; readonly holderId: string }[]): string[] {
  const others = held.filter(({ holderId }) => !holderId.startsWith(agentIngresses.prefix))
  return [...new Set(others.map(({ key, holderId }) => `${key} of ${holderId}`))]
}
