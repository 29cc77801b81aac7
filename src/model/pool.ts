/** Pools: several tunnels of one owner behind one address, all with the same guards (D59). */
import type { EdgeConfig } from './edge-config.ts'

/** What a tunnel brings into the pool at its address. */
export interface PoolMember {
  /** The owner who may add tunnels. */
  readonly ownerId: string
  /** The version of this tunnel's service; members may differ in it. */
  readonly httpVersion: 1 | 2
}

/** What decides whether a bind may share its address with the tunnels there. */
interface PoolTerms {
  readonly tunnelId: string
  /** In a pool, the `poolVersion` of its configuration. */
  readonly version: string
  readonly pool?: Pick<PoolMember, 'ownerId'> | undefined
}

/**
 * Why two tunnels cannot share an address: the new one or the present one wants it alone, or the part in which they
 * differ.
 */
export type PoolDifference = 'asks alone' | 'is alone' | 'owner' | 'protocol' | 'policy' | 'guards'

/** The parts of a version, in their order. */
const parts = ['protocol', 'policy', 'guards'] as const satisfies readonly PoolDifference[]

/** Length of each part: 120 bits, and short enough that all fit in `VERSION_CHARACTERS`. */
const PART_CHARACTERS = 20

/**
 * The version that all endpoints with the same configuration have. The digest must have a key: guards contain
 * passwords, and versions are stored.
 */
export function poolVersion({ kind, modules, routes }: EdgeConfig, digest: (text: string) => string): string {
  const all = [modules, ...routes.map((route) => route.modules)]
  const texts = {
    protocol: sortedJson({ kind, backends: all.map(({ backend }) => backend) }),
    policy: sortedJson(all.map(({ policy }) => policy)),
    guards: sortedJson(all.map((each) => ({ ...each, backend: undefined, policy: undefined }))),
  }
  return parts.map((part) => digest(`${part} ${texts[part]}`).slice(0, PART_CHARACTERS)).join('.')
}

/** Undefined when a tunnel may share the address of another one. */
export function poolDifference(asking: PoolTerms, there: PoolTerms): PoolDifference | undefined {
  if (!asking.pool) return 'asks alone'
  if (!there.pool) return 'is alone'
  if (asking.pool.ownerId !== there.pool.ownerId) return 'owner'
  if (asking.version === there.version) return undefined
  const [asked, had] = [asking.version.split('.'), there.version.split('.')]
  return parts.find((_, i) => asked[i] !== had[i]) ?? 'guards'
}

/**
 * The label by which the members of a pool are found, as those of a tunnel group are. No agent and no tunnel group can
 * use it, since their labels must have a key.
 */
export function poolLabels(edgeId: string): Readonly<Record<string, string>> {
  return { '': edgeId }
}

/** The labels under which planes list a tunnel that has an address: none, unless it is in a pool. */
export function memberLabels({
  pool,
  config,
}: {
  readonly pool?: PoolMember | undefined
  readonly config: EdgeConfig
}): Readonly<Record<string, string>> | undefined {
  return pool && poolLabels(config.id)
}

/** A key that only one tunnel can hold: an address, or one tunnel's slot in the pool at an address. */
export function slotOf({ place, tunnelId, pool }: Omit<PoolTerms, 'version'> & { readonly place: string }): string {
  // No address contains a space.
  return pool ? `${place} ${tunnelId}` : place
}

/** JSON with the keys of all objects sorted, since two agents may write one policy in different orders. */
function sortedJson(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  )
}
