/**
 * What other nodes have online, as far as visitors here asked for it: looked up on first use and kept.
 *
 * One thing: one cache, and all that makes its entries stale.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import type { OtherNode, PlaneCalls, RemoteAddress, RemoteTunnel } from '../../link/planes/plane-calls.ts'
import { DialFault, type DialRequest, type TunnelGroup } from '../../model/dial.ts'
import { type EdgeConfig, withVersion } from '../../model/edge-config.ts'
import type { Listener } from '../../model/look-up.ts'
import {
  addressesOf,
  addressesServed,
  alikeVersions,
  type CachedAddress,
  type CachedName,
  isAdmitted,
  isPort,
  isSame,
  keepLast,
  type Located,
} from './address-cache.ts'
import { LastKnown } from './last-known.ts'
import { Asking, neverAsked, outdate } from './lookup-state.ts'
import { RemoteGroups, type RemoteGroupsOptions } from './remote-groups.ts'

type Labels = Readonly<Record<string, string>>

interface OtherNodesOptions extends Omit<RemoteGroupsOptions, 'asking' | 'isUnsure' | 'forgetMs'> {
  readonly edges: {
    /** The id of the edge that is served at exactly this name, if any. */
    exact(listener: Listener, name: string): string | undefined
    /** The same for a port. */
    onPort(port: number): string | undefined
    /** Whether an edge serves a name, perhaps by a wildcard. */
    serves(listener: Listener, name: string): boolean
    serveIdle(config: EdgeConfig): Promise<unknown>
    /** Stops serving an endpoint that other nodes no longer have, unless a tunnel of this node has it. */
    letGo(id: string): void
  }
  readonly lookUpAddresses: (addresses: readonly string[]) => Promise<readonly RemoteAddress[]>
  /** Dials a tunnel at a plane of another node. */
  readonly dial: (
    at: { readonly nodeId: string; readonly planeId: string },
    request: DialRequest,
  ) => Promise<ByteStream | DialFault>
  /** Whether an endpoint is just being opened at this plane. */
  readonly isOpening?: (endpointId: string) => boolean
  readonly log: Logger
  /** A clock that never jumps, in milliseconds. */
  readonly now?: () => number
}

/**
 * Pauses before a node that does not have a tunnel is dialled again, in milliseconds. While an agent moves, the new node gets
 * its address a moment before the tunnel is online there.
 */
const AGAIN_MS = [20, 40, 80, 160, 320]

/** How long an unused name is kept, and an address that nobody has any more, in milliseconds. */
const UNUSED_MS = 300_000

/** How often unused names are removed, in milliseconds. */
const TIDY_MS = 30_000

/** Most names that are kept of those that somebody has, and of those that nobody has: strangers can make up any number. */
const MAX_NAMES = 20_000

/** An address of a tunnel of this node, and what is served there. */
type ServedHere = Pick<RemoteAddress, 'place' | 'config'>

/**
 * A stale entry does no harm: the node that is dialled says whether it still serves that tunnel in that version, and if not, one
 * fresh look-up follows. That nobody has a name is not kept.
 */
export class NodeTunnels {
  readonly #options: OtherNodesOptions
  readonly #asking: Asking
  readonly #groups: RemoteGroups
  /** Names that somebody has, by listener and name, in the order in which they were last looked up. */
  readonly #found = new Map<string, CachedName>()
  /** The same of names that nobody has, so that made-up ones do not push out those in use. */
  readonly #missed = new Map<string, CachedName>()
  readonly #addresses = new Map<string, CachedAddress>()
  /** Places by the ids of their endpoints and of their tunnels. */
  readonly #byEndpoint = new Map<string, CachedAddress>()
  readonly #byTunnel = new Map<string, CachedAddress>()
  /** Ports of tunnels at other nodes that this node still holds itself; it opens them for those tunnels once it lets go. */
  readonly #awaited = new Map<string, RemoteAddress>()
  /** What tunnels that moved away served here, by tunnel. */
  readonly #left = new Map<string, ServedHere>()
  /** Places that nobody has any more. */
  readonly #former: LastKnown<RemoteAddress>
  /** Ids of the nodes that are about to stop. */
  #leaving: ReadonlySet<string> = new Set()
  /** Ids of the nodes that may or may not be alive. */
  #unsure: ReadonlySet<string> = new Set()
  readonly #tidying: NodeJS.Timeout

  constructor(options: OtherNodesOptions) {
    this.#options = options
    this.#asking = new Asking(options.log, options.now ?? (() => performance.now()))
    const isUnsure = ({ nodeId }: RemoteTunnel): boolean => this.#unsure.has(nodeId)
    this.#groups = new RemoteGroups({ ...options, asking: this.#asking, isUnsure, forgetMs: UNUSED_MS })
    this.#former = new LastKnown({ now: this.#asking.now, forgetMs: UNUSED_MS })
    this.#tidying = setInterval(() => this.#tidy(), TIDY_MS).unref()
  }

  /** Number of look-ups. */
  get lookUps(): Asking['counted'] {
    return this.#asking.counted
  }

  close(): void {
    clearInterval(this.#tidying)
  }

  /** Whether an endpoint that is served here belongs to a tunnel at another node. */
  has(endpointId: string): boolean {
    return this.#byEndpoint.has(endpointId)
  }

  /** The session of a tunnel at another node, if it is known here. */
  sessionOf(tunnelId: string): string | undefined {
    return this.#knownTunnel(tunnelId)?.sessionId
  }

  /**
   * Finds out who serves a name, for a visitor from `ip`. Undefined when that is known; else resolves when it is, or the look-up
   * failed. `busy`: nobody knows, since no look-up began in time, or the last one failed.
   */
  lookUp(
    listener: Listener,
    name: string,
    { hasWaited = false }: { readonly hasWaited?: boolean } = {},
    ip = '',
  ): Promise<void> | 'busy' | undefined {
    const holder = this.#options.edges.exact(listener, name)
    // A name that this node serves itself is at no other node.
    if (holder !== undefined && !this.#byEndpoint.has(holder)) return undefined
    const key = `${listener}:${name}`
    const known = this.#found.get(key) ?? this.#missed.get(key) ?? this.#newName(key, listener, name)
    // An old answer is better than none.
    if (hasWaited && known.isRefused) return this.#isFound(known) ? undefined : 'busy'
    // A name below a wildcard here is not looked up again at once: a busy wildcard would keep the database busy.
    const isServedHere = this.#options.edges.serves(listener, name)
    const pending = this.#current(known, { mayBeOld: hasWaited || isServedHere, ip })
    if (pending || known.isAnswered || isServedHere || this.#isFound(known)) return pending
    return 'busy'
  }

  /** Follows a group with its members at other nodes. */
  follow(labels: Labels): TunnelGroup {
    return this.#groups.follow(labels)
  }

  /** Opens the ports of tunnels at other nodes, and closes those that are free. */
  async portsChanged({ taken, free, only }: Parameters<PlaneCalls['distantPorts']>[0]): Promise<void> {
    const kept = only && new Set(only)
    const known = kept ? [...this.#addresses.keys(), ...this.#awaited.keys()].filter(isPort) : []
    for (const place of [...free, ...known.filter((each) => !kept?.has(each) && !this.#isUnsure(each))]) {
      this.#awaited.delete(place)
      this.#drop(place)
    }
    await Promise.all(taken.map((place) => this.#usePort(place)))
  }

  /** This plane has stopped serving an edge, so a port that others have may be free here. */
  async edgeRemoved(): Promise<void> {
    await Promise.all([...this.#awaited.values()].map((place) => this.#usePort(place)))
  }

  /** Tunnels that were reached at another node have ended there or changed. */
  gone(tunnelIds: readonly string[]): void {
    for (const id of tunnelIds) {
      // Kept connections would let visitors in by the former rules.
      this.#options.moved(id)
      for (const name of this.#byTunnel.get(id)?.names ?? []) outdate(name)
      this.#groups.gone(id)
    }
  }

  /** A tunnel of this node is gone. It may have moved to another node, so its groups must be looked up again. */
  labelsGone(tunnelId: string, labels: Labels): void {
    this.#groups.goneHere(tunnelId, labels)
  }

  /** Whether nothing can be looked up at the moment, so that nodes may have come back unnoticed. */
  get isBlind(): boolean {
    return this.#asking.isFailing
  }

  /** A tunnel is online at this node, which serves its address itself; it may have been at another. */
  cameHere(tunnelId: string, config?: EdgeConfig): void {
    for (const place of config ? addressesServed(config) : []) this.#former.delete(place)
    const place = this.#byTunnel.get(tunnelId)
    if (place) this.#forget(place)
    const wasMember = this.#groups.cameHere(tunnelId)
    if (place || wasMember) this.#options.moved(tunnelId)
  }

  /** A tunnel has left this node, which is about to stop; another node may have it. */
  leftHere(tunnelId: string, served: ServedHere): void {
    keepLast(this.#left, tunnelId, served)
  }

  /** Whether a connection to a tunnel may be kept for the next request: not when the tunnel's node is about to stop. */
  mayKeep(tunnelId: string): boolean {
    return this.#leaving.size === 0 || !this.#leaving.has(this.#knownTunnel(tunnelId)?.nodeId ?? '')
  }

  /** Takes the list of the other nodes. */
  nodesChanged(nodes: Iterable<OtherNode>): void {
    const before = this.#leaving
    const all = [...nodes]
    this.#leaving = new Set(all.filter(({ isLeaving }) => isLeaving).map(({ nodeId }) => nodeId))
    this.#unsure = new Set(all.filter(({ isUnsure }) => isUnsure).map(({ nodeId }) => nodeId))
    const known = [...[...this.#byTunnel.values()].map(({ tunnel }) => tunnel), ...this.#groups.tunnels()]
    for (const { tunnelId, nodeId } of known) {
      if (this.#leaving.has(nodeId) && !before.has(nodeId)) this.#options.moved(tunnelId)
    }
  }

  /** A node is gone: everything that it had is looked up again before the next use. */
  nodeGone(nodeId: string): void {
    for (const { tunnel, names } of this.#addresses.values()) {
      if (tunnel.nodeId === nodeId) for (const name of names) outdate(name)
    }
    this.#groups.nodeGone(nodeId)
  }

  /** Dials a tunnel at another node; undefined when none is known to have it. */
  async dial(request: DialRequest): Promise<ByteStream | DialFault | undefined> {
    const { tunnelId } = request
    const groups = this.#groups.keysOf(tunnelId)
    const first = this.#locate(request) ?? (await this.#followed(request, groups))
    if (!first) return undefined
    let at = first
    let outcome = await this.#dialAt(at, request)
    for (const waitMs of AGAIN_MS) {
      if (!(outcome instanceof DialFault) || !['offline', 'unreachable'].includes(outcome.reason)) return outcome
      if (!(await this.#lookAgain(tunnelId, groups))) {
        // It may be at another node by now.
        if (outcome.reason === 'offline') outcome = new DialFault('unreachable', 'it left, and cannot be looked up')
        return outcome
      }
      const next = this.#locate(request)
      if (!next) return outcome
      if (isSame(at, next)) {
        if (outcome.reason === 'unreachable') return outcome
        await pause(waitMs, undefined, { ref: false })
      }
      at = next
      outcome = await this.#dialAt(at, request)
    }
    return outcome
  }

  /** Finds a tunnel that has left this node. */
  async #followed(request: DialRequest, groups: readonly string[]): Promise<Located | undefined> {
    const left = this.#left.get(request.tunnelId)
    if (this.#options.isHere(request.tunnelId)) return undefined
    if (left) await this.#asking.once(() => this.#refresh([left.place]))
    else if (!(await this.#lookAgain(request.tunnelId, groups))) return undefined
    return this.#locate(request)
  }

  #dialAt({ tunnel, version }: Located, request: DialRequest): Promise<ByteStream | DialFault> {
    return this.#options.dial(tunnel, version === undefined ? request : { ...request, version })
  }

  /** Where a tunnel is; undefined too when the visitor was let in by rules other than those in force now. */
  #locate({ tunnelId, version }: DialRequest): Located | undefined {
    const member = this.#groups.tunnel(tunnelId)
    // A member of a pool may also be known by its address; a visitor whom the pool let in may use any member.
    if (member) return { tunnel: member, version: member.version }
    const place = this.#byTunnel.get(tunnelId)
    if (!place) return undefined
    // Without a version, the visitor was let in here, where the tunnel was a moment ago.
    const isIn = version === undefined ? this.#isAsHere(place) : isAdmitted(place, version)
    return isIn ? place : undefined
  }

  /** Whether another node serves the same as was served here. */
  #isAsHere({ tunnel, config }: RemoteAddress): boolean {
    const left = this.#left.get(tunnel.tunnelId)
    return left !== undefined && JSON.stringify(left.config) === JSON.stringify(config)
  }

  /** What is known of a tunnel, without a look-up. */
  #knownTunnel(tunnelId: string): RemoteTunnel | undefined {
    return this.#byTunnel.get(tunnelId)?.tunnel ?? this.#groups.tunnel(tunnelId)
  }

  /** Looks up afresh where a tunnel is; false when that failed, and what was known stays. */
  async #lookAgain(tunnelId: string, keys: readonly string[]): Promise<boolean> {
    const place = this.#byTunnel.get(tunnelId)
    if (place) return this.#asking.once(() => this.#refresh([place.place]))
    return this.#groups.lookAgain(keys)
  }

  /** `mayBeOld`: an earlier answer that nobody has the name is good enough. */
  #current(
    name: CachedName,
    { mayBeOld, ip }: { readonly mayBeOld: boolean; readonly ip: string },
  ): Promise<void> | undefined {
    const isFound = (): boolean => this.#isFound(name)
    const ask = (): Promise<void> => this.#askName(name)
    if (mayBeOld || isFound()) return this.#asking.current(name, ask, { isFound: isFound(), ip })
    return this.#asking.afresh(name, ask, isFound, ip)
  }

  #isFound({ addresses }: CachedName): boolean {
    return addresses.some((place) => this.#addresses.has(place))
  }

  #newName(key: string, listener: Listener, name: string): CachedName {
    const fresh = { key, addresses: addressesOf(listener, name), ...neverAsked }
    this.#keepName(fresh)
    return fresh
  }

  /** Keeps a name as the latest, and forgets others when there are too many. */
  #keepName(name: CachedName): void {
    this.#found.delete(name.key)
    this.#missed.delete(name.key)
    const kept = this.#isFound(name) ? this.#found : this.#missed
    kept.set(name.key, name)
    const [oldest] = kept.values()
    if (kept.size > MAX_NAMES && oldest) this.#forgetName(this.#mostUsed(name) ?? oldest)
  }

  /** The oldest name below a wildcard that has more than a quarter of all names: strangers can make up those too. */
  #mostUsed({ addresses }: CachedName): CachedName | undefined {
    for (const place of addresses) {
      const names = this.#addresses.get(place)?.names
      const [oldest] = names ?? []
      if (names && names.size > MAX_NAMES / 4) return oldest
    }
    return undefined
  }

  async #askName(name: CachedName): Promise<void> {
    this.#keepName(name)
    try {
      await this.#refresh(name.addresses)
    } catch (error) {
      await this.#restore(name)
      throw error
    } finally {
      // The name may have been forgotten meanwhile.
      if ((this.#found.get(name.key) ?? this.#missed.get(name.key)) === name) {
        for (const place of name.addresses) this.#addresses.get(place)?.names.add(name)
        this.#keepName(name)
      } else for (const place of name.addresses) this.#dropUnused(place)
    }
  }

  /** While look-ups fail, serves a name as before a look-up found nobody, unless a wildcard serves it. */
  async #restore({ key, addresses }: CachedName): Promise<void> {
    const [listener, name = ''] = key.split(':')
    if (this.#options.edges.serves(listener === 'plain' ? 'plain' : 'secure', name)) return
    const former = addresses.flatMap((place) => this.#former.get(place) ?? [])
    await Promise.all(former.map((place) => this.#use(place)))
  }

  async #refresh(addresses: readonly string[]): Promise<void> {
    const found = await this.#options.lookUpAddresses(addresses)
    const there = new Set(found.map(({ place }) => place))
    for (const place of addresses) {
      const known = this.#addresses.get(place)
      if (!known || there.has(place) || this.#isUnsure(place)) continue
      const { config, version, tunnel } = known
      this.#former.add(place, { place, config, version, tunnel })
      this.#drop(place)
    }
    for (const { place } of found) this.#former.delete(place)
    await Promise.all(found.map((place) => this.#use(place)))
  }

  /** Whether a place may still be at its node, although the database shows nobody there. */
  #isUnsure(place: string): boolean {
    const known = this.#addresses.get(place) ?? this.#awaited.get(place)
    return known !== undefined && this.#unsure.has(known.tunnel.nodeId)
  }

  /** Ports are never looked up, so one that this node still holds itself is remembered. */
  async #usePort(place: RemoteAddress): Promise<void> {
    this.#awaited.delete(place.place)
    if (this.#isHeldHere(place)) this.#awaited.set(place.place, place)
    else await this.#use(place)
  }

  /** Whether this node has the tunnel, or an edge here has taken its address since the answer. */
  #isHeldHere({ place, tunnel, config }: RemoteAddress): boolean {
    if (this.#options.isHere(tunnel.tunnelId)) return true
    const holder = this.#holderOf(place)
    return holder !== undefined && holder !== config.id && !this.#byEndpoint.has(holder)
  }

  /** Serves the address of a tunnel at another node. */
  async #use(place: RemoteAddress): Promise<void> {
    const before = this.#addresses.get(place.place)
    if (before && isSame(before, place)) return
    if (this.#isHeldHere(place)) return
    const isSameVersion =
      before !== undefined && before.version === place.version && before.config.id === place.config.id
    if (before) {
      this.#unlist(before)
      this.#options.moved(before.tunnel.tunnelId)
    }
    const alike = isSameVersion ? before.alike : alikeVersions(before, place)
    const known: CachedAddress = { ...place, names: before?.names ?? new Set(), alike }
    this.#addresses.set(place.place, known)
    this.#byEndpoint.set(place.config.id, known)
    this.#byTunnel.set(place.tunnel.tunnelId, known)
    if (before && before.config.id !== place.config.id) this.#options.edges.letGo(before.config.id)
    if (!isSameVersion) await this.#options.edges.serveIdle(withVersion(place.config, place.version))
  }

  /** The id of the edge that is served at a place here. */
  #holderOf(place: string): string | undefined {
    const { edges } = this.#options
    const colon = place.indexOf(':')
    const address = place.slice(colon + 1)
    if (isPort(place)) return edges.onPort(Number(address))
    return edges.exact(place.startsWith('plain:') ? 'plain' : 'secure', address)
  }

  #forgetName(name: CachedName): void {
    this.#found.delete(name.key)
    this.#missed.delete(name.key)
    for (const place of name.addresses) {
      this.#addresses.get(place)?.names.delete(name)
      this.#dropUnused(place)
    }
  }

  /** Drops a place that no name leads to; several names may share a wildcard. */
  #dropUnused(place: string): void {
    if (this.#addresses.get(place)?.names.size === 0) this.#drop(place)
  }

  /** Forgets a place that no other node has. */
  #drop(place: string): void {
    const known = this.#addresses.get(place)
    // A place that is just being opened here stays, served by its former node, until it is open.
    if (known && !this.#options.isOpening?.(known.config.id)) this.#forget(known)
  }

  #forget(place: CachedAddress): void {
    this.#unlist(place)
    this.#options.edges.letGo(place.config.id)
  }

  #unlist(place: CachedAddress): void {
    this.#addresses.delete(place.place)
    this.#byEndpoint.delete(place.config.id)
    this.#byTunnel.delete(place.tunnel.tunnelId)
  }

  #tidy(): void {
    const before = this.#asking.now() - UNUSED_MS
    this.#former.tidy()
    this.#groups.tidy()
    for (const name of [...this.#found.values(), ...this.#missed.values()]) {
      if (name.usedAt <= before && !name.asking) this.#forgetName(name)
    }
  }
}
