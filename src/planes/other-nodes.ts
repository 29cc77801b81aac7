/**
 * What other nodes have online, as far as visitors here asked for it: looked up on first use and kept. What is kept may
 * be old, which harms nobody: the node that is dialled says whether it still serves that tunnel in that version, and if
 * not, one fresh look-up follows.
 */
import { setTimeout as pause } from 'node:timers/promises'
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { Logger } from '../lib/log/log.ts'
import { DialFault, type DialRequest, type FollowGroup, type TunnelGroup } from '../model/dial.ts'
import { type EdgeConfig, versioned } from '../model/edge-config.ts'
import { type LabelledTunnel, labelsKey, labelTexts } from '../model/label-groups.ts'
import type { Listener } from '../model/look-up.ts'
import {
  alikeVersions,
  isAdmitted,
  isAlike,
  isPort,
  isSame,
  type KnownName,
  type KnownPlace,
  keepLast,
  type Located,
  type LookedUp,
  MAX_FORMER_GROUPS,
  neverAsked,
  outdate,
  placesOf,
} from './known-places.ts'
import type { DistantPlace, DistantTunnel, OtherNode, PlaneCalls } from './port.ts'

type Labels = Readonly<Record<string, string>>

export interface OtherNodesOptions {
  readonly edges: {
    /** The id of what stands on exactly this name; undefined when nothing does. */
    exact(listener: Listener, name: string): string | undefined
    /** The same for a port. */
    onPort(port: number): string | undefined
    serveIdle(config: EdgeConfig): Promise<unknown>
    /** Other nodes do not have it any more; it may be served on for a tunnel of this node. */
    letGo(id: string): void
  }
  readonly groups: {
    add(tunnel: LabelledTunnel): void
    delete(tunnel: LabelledTunnel): void
  }
  readonly followGroup: FollowGroup
  readonly lookUpPlaces: (places: readonly string[]) => Promise<readonly DistantPlace[]>
  readonly lookUpGroup: (labels: Labels) => Promise<readonly DistantTunnel[]>
  /** Reaches a tunnel at a plane of another node. */
  readonly dial: (
    at: { readonly nodeId: string; readonly planeId: string },
    request: DialRequest,
  ) => Promise<ByteStream | DialFault>
  /** Whether a tunnel is online at this node. */
  readonly isHere: (tunnelId: string) => boolean
  /** Whether an endpoint is being opened at this plane, so that its tunnel will be here in a moment. */
  readonly isOpening?: (endpointId: string) => boolean
  /** A tunnel is reached in another way from now on; connections kept for the next request keep its former node waiting. */
  readonly moved: (tunnelId: string) => void
  readonly log: Logger
  /** Of a clock that never jumps, in milliseconds. */
  readonly now?: () => number
}

/** What was looked up less than this long ago is used as it is, in milliseconds. */
const FRESH_MS = 1000

/** What is older is used once more while it is looked up again; but when it is older than this, visitors wait for that. */
const OLD_MS = 5000

/**
 * How long to wait before a node that does not have a tunnel is asked again, in milliseconds. While an agent moves, its
 * address is given to the new node a moment before the tunnel is online there.
 */
const AGAIN_MS = [20, 40, 80, 160, 320]

/** How long what nobody asks for is kept, in milliseconds. */
const UNUSED_MS = 300_000

/** How often that is looked at, in milliseconds. */
const TIDY_MS = 30_000

/** How many names are kept, and how many visitors may wait for: strangers can make up any number. */
const MAX_NAMES = 20_000
const MAX_ASKED = 500

interface KnownGroup extends LookedUp {
  readonly labels: Labels
  followers: number
  members: ReadonlySet<string>
}

interface KnownMember {
  readonly tunnel: DistantTunnel
  readonly listed: LabelledTunnel
  /** Keys of the groups that found it. */
  readonly groups: Set<string>
}

/** An address of a tunnel, and what is served there. */
export type ServedHere = Pick<DistantPlace, 'place' | 'config'>

export class OtherNodes {
  readonly #options: OtherNodesOptions
  readonly #now: () => number
  /** By listener and name, those that were asked for last at the end. */
  readonly #names = new Map<string, KnownName>()
  readonly #places = new Map<string, KnownPlace>()
  /** The same, by the ids of their endpoints and of their tunnels. */
  readonly #byEndpoint = new Map<string, KnownPlace>()
  readonly #byTunnel = new Map<string, KnownPlace>()
  readonly #groups = new Map<string, KnownGroup>()
  /** The same, by one of their labels. */
  readonly #byLabel = new Map<string, Set<KnownGroup>>()
  readonly #members = new Map<string, KnownMember>()
  /** What tunnels that moved away from this node served here, by tunnel. */
  readonly #left = new Map<string, ServedHere>()
  /** Keys of the groups of tunnels that are gone from another node, by tunnel: whoever is about to dial them asks there. */
  readonly #formerly = new Map<string, readonly string[]>()
  /** Ids of the nodes that are about to stop. */
  #leaving: ReadonlySet<string> = new Set()
  readonly #tidying: NodeJS.Timeout
  #asked = 0

  constructor(options: OtherNodesOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#tidying = setInterval(() => this.#tidy(), TIDY_MS).unref()
  }

  close(): void {
    clearInterval(this.#tidying)
  }

  /** Whether an endpoint that is served here is that of a tunnel at another node. */
  has(endpointId: string): boolean {
    return this.#byEndpoint.has(endpointId)
  }

  /** Undefined when it is known who serves a name; else resolves when it is, or cannot be. */
  lookUp(listener: Listener, name: string): Promise<void> | undefined {
    const holder = this.#options.edges.exact(listener, name)
    // No two nodes have one name.
    if (holder !== undefined && !this.#byEndpoint.has(holder)) return undefined
    const key = `${listener}:${name}`
    const known = this.#names.get(key)
    if (known) return this.#current(known, () => this.#askName(key, known))
    // What strangers make up is not found, and nobody waits for it.
    if (this.#asked >= MAX_ASKED) return undefined
    const fresh = { places: placesOf(listener, name), ...neverAsked }
    this.#names.set(key, fresh)
    for (const [oldest, each] of this.#names) {
      if (this.#names.size <= MAX_NAMES) break
      this.#forgetName(oldest, each)
    }
    return this.#current(fresh, () => this.#askName(key, fresh))
  }

  /** Follows a group with its members at other nodes. */
  follow(labels: Labels): TunnelGroup {
    const key = labelsKey(labels)
    const group = this.#groups.get(key) ?? this.#newGroup(key, labels)
    group.followers++
    const here = this.#options.followGroup(labels)
    let isReleased = false
    return {
      get members() {
        return here.members
      },
      found: () => {
        // With nobody to dial it is better to wait.
        if (here.members.length === 0 && this.#age(group) > FRESH_MS)
          return this.#ask(group, () => this.#askGroup(key, group))
        return this.#current(group, () => this.#askGroup(key, group))
      },
      release: () => {
        here.release()
        if (isReleased) return
        isReleased = true
        if (--group.followers > 0) return
        this.#groups.delete(key)
        const [label = ''] = labelTexts(labels)
        const alike = this.#byLabel.get(label)
        if (alike?.delete(group) && alike.size === 0) this.#byLabel.delete(label)
        for (const id of group.members) this.#leaveGroup(id, key)
      },
    }
  }

  /** Ports that tunnels at other nodes have. */
  async portsChanged({ taken, free, only }: Parameters<PlaneCalls['distantPorts']>[0]): Promise<void> {
    for (const place of free) this.#drop(place)
    if (only) {
      const kept = new Set(only)
      for (const place of this.#places.keys()) if (isPort(place) && !kept.has(place)) this.#drop(place)
    }
    await Promise.all(taken.map((place) => this.#use(place)))
  }

  /** Tunnels that were reached at another node are not there any more, or not as they were. */
  gone(tunnelIds: readonly string[]): void {
    for (const id of tunnelIds) {
      // Whom it would let in by former rules.
      this.#options.moved(id)
      for (const name of this.#byTunnel.get(id)?.names ?? []) outdate(name)
      for (const key of [...(this.#members.get(id)?.groups ?? [])]) {
        const group = this.#groups.get(key)
        if (group) outdate(group)
        this.#leaveGroup(id, key)
        keepLast(this.#formerly, id, [...(this.#formerly.get(id) ?? []), key].slice(-MAX_FORMER_GROUPS))
      }
    }
  }

  /** A tunnel of this node is gone; it may have moved to another, which its groups must ask before they know. */
  labelsGone(labels: Labels): void {
    for (const label of labelTexts(labels)) {
      for (const group of this.#byLabel.get(label) ?? []) {
        if (Object.entries(group.labels).every(([key, value]) => labels[key] === value)) outdate(group)
      }
    }
  }

  /** A tunnel that was at another node is online at this one, which serves its address itself. */
  cameHere(tunnelId: string): void {
    const place = this.#byTunnel.get(tunnelId)
    const member = this.#members.get(tunnelId)
    if (place) this.#forget(place)
    for (const key of [...(member?.groups ?? [])]) this.#leaveGroup(tunnelId, key)
    if (place || member) this.#options.moved(tunnelId)
  }

  /** A tunnel of this node, which is about to stop, has gone; another node may have it. */
  leftHere(tunnelId: string, served: ServedHere): void {
    keepLast(this.#left, tunnelId, served)
  }

  /** Whether a connection to a tunnel may be kept for the next request: not when its node is about to stop. */
  mayKeep(tunnelId: string): boolean {
    return this.#leaving.size === 0 || !this.#leaving.has(this.#nodeOf(tunnelId) ?? '')
  }

  /** The other nodes are these. */
  nodesChanged(nodes: Iterable<OtherNode>): void {
    const before = this.#leaving
    this.#leaving = new Set([...nodes].filter(({ isLeaving }) => isLeaving).map(({ nodeId }) => nodeId))
    const isNew = ({ tunnel }: { readonly tunnel: DistantTunnel }): boolean =>
      this.#leaving.has(tunnel.nodeId) && !before.has(tunnel.nodeId)
    for (const [id, place] of this.#byTunnel) if (isNew(place)) this.#options.moved(id)
    for (const [id, member] of this.#members) if (isNew(member)) this.#options.moved(id)
  }

  /** What is known of a node that is gone is looked up again before it is used. */
  nodeGone(nodeId: string): void {
    for (const { tunnel, names } of this.#places.values()) {
      if (tunnel.nodeId === nodeId) for (const name of names) outdate(name)
    }
    for (const group of this.#groups.values()) {
      const isThere = [...group.members].some((id) => this.#members.get(id)?.tunnel.nodeId === nodeId)
      if (isThere) outdate(group)
    }
  }

  /** Reaches a tunnel at another node; undefined when none is known to have it. */
  async dial(request: DialRequest): Promise<ByteStream | DialFault | undefined> {
    const { tunnelId } = request
    const groups = [...(this.#members.get(tunnelId)?.groups ?? this.#formerly.get(tunnelId) ?? [])]
    const first = this.#locate(request) ?? (await this.#followed(request, groups))
    if (!first) return undefined
    let at = first
    let outcome = await this.#dialAt(at, request)
    for (const waitMs of AGAIN_MS) {
      if (!(outcome instanceof DialFault) || !['offline', 'unreachable'].includes(outcome.reason)) return outcome
      if (!(await this.#lookAgain(tunnelId, groups))) return outcome
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

  /** Where a tunnel is that has left this node. */
  async #followed(request: DialRequest, groups: readonly string[]): Promise<Located | undefined> {
    const left = this.#left.get(request.tunnelId)
    if (this.#options.isHere(request.tunnelId)) return undefined
    if (left) await this.#asking(() => this.#answered([left.place]))
    else if (!(await this.#lookAgain(request.tunnelId, groups))) return undefined
    return this.#locate(request)
  }

  #dialAt({ tunnel, version }: Located, request: DialRequest): Promise<ByteStream | DialFault> {
    return this.#options.dial(tunnel, version === undefined ? request : { ...request, version })
  }

  /** Undefined as well when the visitor was let in by other rules than those that count now. */
  #locate({ tunnelId, version }: DialRequest): Located | undefined {
    const member = this.#members.get(tunnelId)
    // One of a pool may be known as its address too; whom the pool let in, each of its members lets in.
    if (member) return { tunnel: member.tunnel, version: member.tunnel.version }
    const place = this.#byTunnel.get(tunnelId)
    if (!place) return undefined
    // Without a version it was let in here, where the tunnel was a moment ago.
    const isIn = version === undefined ? this.#isAsHere(place) : isAdmitted(place, version)
    return isIn ? place : undefined
  }

  /** Whether another node serves what was served here. */
  #isAsHere({ tunnel, config }: DistantPlace): boolean {
    const left = this.#left.get(tunnel.tunnelId)
    return left !== undefined && JSON.stringify(left.config) === JSON.stringify(config)
  }

  #nodeOf(tunnelId: string): string | undefined {
    return (this.#byTunnel.get(tunnelId) ?? this.#members.get(tunnelId))?.tunnel.nodeId
  }

  /** Looks up afresh where a tunnel is; false when nobody could be asked, and all stays as it was. */
  async #lookAgain(tunnelId: string, keys: readonly string[]): Promise<boolean> {
    const place = this.#byTunnel.get(tunnelId)
    if (place) return this.#asking(() => this.#answered([place.place]))
    const groups = keys.flatMap((key) => {
      const group = this.#groups.get(key)
      return group ? [this.#ask(group, () => this.#askGroup(key, group))] : []
    })
    await Promise.all(groups)
    return groups.length > 0
  }

  /** Undefined when what is known is new enough. */
  #current(known: LookedUp, ask: () => Promise<void>): Promise<void> | undefined {
    const age = this.#age(known)
    known.usedAt = this.#now()
    if (age <= FRESH_MS) return undefined
    const asking = this.#ask(known, ask)
    return age > OLD_MS ? asking : undefined
  }

  #age({ at }: LookedUp): number {
    return at === undefined ? Number.POSITIVE_INFINITY : this.#now() - at
  }

  /** Asks once for all who wait. What cannot be asked stays as it was. */
  #ask(known: LookedUp, ask: () => Promise<void>): Promise<void> {
    known.asking ??= this.#asking(ask).then(() => {
      known.at = known.isOutdated ? undefined : this.#now()
      known.isOutdated = false
      known.asking = undefined
    })
    return known.asking
  }

  /** Whether it could be asked. */
  async #asking(ask: () => Promise<void>): Promise<boolean> {
    this.#asked++
    try {
      await ask()
      return true
    } catch (err) {
      this.#options.log.debug({ err }, 'other nodes cannot be looked up')
      return false
    } finally {
      this.#asked--
    }
  }

  async #askName(key: string, name: KnownName): Promise<void> {
    this.#names.delete(key)
    this.#names.set(key, name)
    await this.#answered(name.places)
    // It may have been forgotten meanwhile.
    if (this.#names.get(key) === name) for (const place of name.places) this.#places.get(place)?.names.add(name)
    else for (const place of name.places) this.#dropUnused(place)
  }

  async #answered(places: readonly string[]): Promise<void> {
    const found = await this.#options.lookUpPlaces(places)
    const there = new Set(found.map(({ place }) => place))
    for (const place of places) if (!there.has(place)) this.#drop(place)
    await Promise.all(found.map((place) => this.#use(place)))
  }

  async #askGroup(key: string, group: KnownGroup): Promise<void> {
    const found = await this.#options.lookUpGroup(group.labels)
    if (this.#groups.get(key) !== group) return
    const ids = new Set(found.map(({ tunnelId }) => tunnelId))
    for (const id of group.members) if (!ids.has(id)) this.#leaveGroup(id, key)
    for (const tunnel of found) this.#joinGroup(tunnel, key)
    group.members = ids
  }

  #newGroup(key: string, labels: Labels): KnownGroup {
    const group = { labels, ...neverAsked, followers: 0, members: new Set<string>() }
    this.#groups.set(key, group)
    const [label = ''] = labelTexts(labels)
    this.#byLabel.set(label, (this.#byLabel.get(label) ?? new Set()).add(group))
    return group
  }

  #joinGroup(tunnel: DistantTunnel, key: string): void {
    const { tunnelId: id, httpVersion, labels } = tunnel
    // What an old row says of a tunnel that has come here.
    if (this.#options.isHere(id)) return
    const before = this.#members.get(id)
    if (before && isAlike(before.tunnel, tunnel)) {
      before.groups.add(key)
      return
    }
    if (before) {
      this.#options.groups.delete(before.listed)
      this.#options.moved(id)
    }
    const listed = { id, httpVersion, labels, isDistant: true }
    this.#members.set(id, { tunnel, listed, groups: new Set([...(before?.groups ?? []), key]) })
    this.#options.groups.add(listed)
  }

  #leaveGroup(tunnelId: string, key: string): void {
    const member = this.#members.get(tunnelId)
    if (!member?.groups.delete(key) || member.groups.size > 0) return
    this.#members.delete(tunnelId)
    this.#options.groups.delete(member.listed)
  }

  /** Serves the address of a tunnel at another node. */
  async #use(place: DistantPlace): Promise<void> {
    const before = this.#places.get(place.place)
    if (before && isSame(before, place)) return
    if (this.#options.isHere(place.tunnel.tunnelId)) return
    // Somebody here has it by now, and the answer is older.
    const holder = this.#holderOf(place.place)
    if (holder !== undefined && holder !== place.config.id && !this.#byEndpoint.has(holder)) return
    const isSameVersion =
      before !== undefined && before.version === place.version && before.config.id === place.config.id
    if (before) {
      this.#unlist(before)
      this.#options.moved(before.tunnel.tunnelId)
    }
    const alike = isSameVersion ? before.alike : alikeVersions(before, place)
    const known: KnownPlace = { ...place, names: before?.names ?? new Set(), alike }
    this.#places.set(place.place, known)
    this.#byEndpoint.set(place.config.id, known)
    this.#byTunnel.set(place.tunnel.tunnelId, known)
    if (before && before.config.id !== place.config.id) this.#options.edges.letGo(before.config.id)
    if (!isSameVersion) await this.#options.edges.serveIdle(versioned(place.config, place.version))
  }

  /** The id of what stands at a place here. */
  #holderOf(place: string): string | undefined {
    const { edges } = this.#options
    const colon = place.indexOf(':')
    const address = place.slice(colon + 1)
    if (isPort(place)) return edges.onPort(Number(address))
    return edges.exact(place.startsWith('plain:') ? 'plain' : 'secure', address)
  }

  #forgetName(key: string, name: KnownName): void {
    this.#names.delete(key)
    for (const place of name.places) {
      this.#places.get(place)?.names.delete(name)
      this.#dropUnused(place)
    }
  }

  /** A place that no name leads to; others may share a wildcard. */
  #dropUnused(place: string): void {
    if (this.#places.get(place)?.names.size === 0) this.#drop(place)
  }

  /** Nobody at another node has this place. */
  #drop(place: string): void {
    const known = this.#places.get(place)
    // What this plane is about to have, the former node serves until then.
    if (known && !this.#options.isOpening?.(known.config.id)) this.#forget(known)
  }

  #forget(place: KnownPlace): void {
    this.#unlist(place)
    this.#options.edges.letGo(place.config.id)
  }

  #unlist(place: KnownPlace): void {
    this.#places.delete(place.place)
    this.#byEndpoint.delete(place.config.id)
    this.#byTunnel.delete(place.tunnel.tunnelId)
  }

  #tidy(): void {
    const before = this.#now() - UNUSED_MS
    for (const [key, name] of this.#names) {
      if (name.usedAt <= before && !name.asking) this.#forgetName(key, name)
    }
  }
}
