/** What is known of addresses at other nodes. */
import type { Listener } from '../model/look-up.ts'
import type { LookedUp } from './looked-up.ts'
import type { DistantPlace, DistantTunnel } from './port.ts'

/** Labels of a name for which a wildcard is looked up. */
const MAX_DEPTH = 10

/** Earlier versions of an address that are known to be like the present one. */
const MAX_ALIKE = 8

export interface KnownName extends LookedUp {
  /** The name itself, and the wildcards above it. */
  readonly places: readonly string[]
}

export interface KnownPlace extends DistantPlace {
  /** Names that were looked up and found it; none for a port. */
  readonly names: Set<KnownName>
  /** Earlier versions that differ in nothing but that: whom they let in, this one lets in too. */
  readonly alike: ReadonlySet<string>
}

export function isAdmitted({ version, alike }: KnownPlace, by: string): boolean {
  return by === version || alike.has(by)
}

/** Earlier versions whose visitors a place would let in as well: its agent came back, and asked for the same. */
export function alikeVersions(before: KnownPlace | undefined, { config }: DistantPlace): ReadonlySet<string> {
  if (!before || JSON.stringify(before.config) !== JSON.stringify(config)) return new Set()
  return new Set([...before.alike, before.version].slice(-MAX_ALIKE))
}

/** Where a tunnel is, and in which version its address is served. */
export interface Located {
  readonly tunnel: DistantTunnel
  readonly version: string | undefined
}

export function isSame(one: Located, other: Located): boolean {
  return one.version === other.version && isAlike(one.tunnel, other.tunnel)
}

export function isAlike(one: DistantTunnel, other: DistantTunnel): boolean {
  return (
    one.tunnelId === other.tunnelId &&
    one.nodeId === other.nodeId &&
    one.planeId === other.planeId &&
    one.sessionId === other.sessionId &&
    one.httpVersion === other.httpVersion &&
    one.version === other.version
  )
}

export function isPort(place: string): boolean {
  return place.startsWith(':')
}

/** The places that may serve a name: its own, and wildcards above it. Who asks in plain text may be sent to TLS. */
export function placesOf(listener: Listener, name: string): string[] {
  const labels = name.split('.')
  const above = labels.slice(1, 1 + MAX_DEPTH).map((_, i) => `*.${labels.slice(i + 1).join('.')}`)
  const listeners = listener === 'plain' ? ['plain', 'secure'] : ['secure']
  return listeners.flatMap((each) => [name, ...above].map((one) => `${each}:${one}`))
}

/** Tunnels that are gone, and may be dialled for requests that came before. */
const MAX_KEPT = 10_000

/** Remembers something of a tunnel that is gone; the oldest are forgotten. */
export function keepLast<T>(kept: Map<string, T>, tunnelId: string, what: T): void {
  kept.delete(tunnelId)
  kept.set(tunnelId, what)
  const [oldest] = kept.keys()
  if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest)
}
