/** What a data plane keeps of addresses at other nodes. */

import type { RemoteAddress, RemoteTunnel } from '../../link/planes/plane-calls.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { Listener } from '../../model/look-up.ts'
import type { LookedUp } from './lookup-state.ts'

/** How many levels above a name wildcards are looked up. */
const MAX_DEPTH = 10

/** Most earlier versions of an address that are kept as equal to the present one. */
const MAX_ALIKE = 8

export interface CachedName extends LookedUp {
  /** Its listener and itself. */
  readonly key: string
  /** The name itself, and the wildcards above it. */
  readonly addresses: readonly string[]
}

export interface CachedAddress extends RemoteAddress {
  /** Names whose look-ups found it; none for a port. */
  readonly names: Set<CachedName>
  /** Earlier versions with the same configuration: visitors whom they let in are let in by this one too. */
  readonly alike: ReadonlySet<string>
}

export function isAdmitted({ version, alike }: CachedAddress, by: string): boolean {
  return by === version || alike.has(by)
}

/** Earlier versions whose visitors a place lets in as well, since its agent came back and asked for the same. */
export function alikeVersions(before: CachedAddress | undefined, { config }: RemoteAddress): ReadonlySet<string> {
  if (!before || JSON.stringify(before.config) !== JSON.stringify(config)) return new Set()
  return new Set([...before.alike, before.version].slice(-MAX_ALIKE))
}

/** Where a tunnel is, and the version in which its address is served. */
export interface Located {
  readonly tunnel: RemoteTunnel
  readonly version: string | undefined
}

export function isSame(one: Located, other: Located): boolean {
  return one.version === other.version && isAlike(one.tunnel, other.tunnel)
}

export function isAlike(one: RemoteTunnel, other: RemoteTunnel): boolean {
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

/** The places that may serve a name: its own, and wildcards above it. A plain request may be redirected to TLS. */
export function addressesOf(listener: Listener, name: string): string[] {
  const labels = name.split('.')
  const above = labels.slice(1, 1 + MAX_DEPTH).map((_, i) => `*.${labels.slice(i + 1).join('.')}`)
  const listeners = listener === 'plain' ? ['plain', 'secure'] : ['secure']
  return listeners.flatMap((each) => [name, ...above].map((one) => `${each}:${one}`))
}

/** The places that a configuration serves. */
export function addressesServed({ kind, names, ports }: EdgeConfig): string[] {
  const listener = kind === 'http' ? 'plain' : 'secure'
  return [...names.map((name) => `${listener}:${name}`), ...ports.map((port) => `:${port}`)]
}

/** Most tunnels, addresses and groups that are remembered after they are gone. */
const MAX_KEPT = 10_000

/** Remembers `what` about something that is gone, and forgets the oldest entry when there are too many. */
export function keepLast<T>(kept: Map<string, T>, key: string, what: T): void {
  kept.delete(key)
  kept.set(key, what)
  const [oldest] = kept.keys()
  if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest)
}
