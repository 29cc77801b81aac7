/** Tunnels with labels at other nodes, as members of the tunnel groups that edges here use. */

import { Groups } from '../../lib/multi-map.ts'
import type { RemoteTunnel } from '../../link/planes/plane-calls.ts'
import type { TunnelGroup } from '../../model/dial.ts'
import { type LabelGroups, type LabelledTunnel, labelsKey, labelTexts } from '../../model/label-groups.ts'
import { isAlike, keepLast } from './address-cache.ts'
import { LastKnown } from './last-known.ts'
import { type Asking, type LookedUp, neverAsked, outdate } from './lookup-state.ts'

type Labels = Readonly<Record<string, string>>

export interface RemoteGroupsOptions {
  /** All tunnels with labels that are known here. */
  readonly groups: Pick<LabelGroups<LabelledTunnel>, 'add' | 'delete' | 'follow'>
  readonly lookUpGroup: (labels: Labels) => Promise<readonly RemoteTunnel[]>
  /** Whether a tunnel is online at this node. */
  readonly isHere: (tunnelId: string) => boolean
  /** Called when a tunnel is reached another way from now on. */
  readonly moved: (tunnelId: string) => void
  /** Whether a tunnel may still be at its node, although the database does not show it there. */
  readonly isUnsure: (tunnel: RemoteTunnel) => boolean
  readonly asking: Asking
  /** How long the last members of a group are remembered, in milliseconds. */
  readonly forgetMs: number
}

/** Most groups that are remembered of a tunnel that is gone. */
const MAX_FORMER_GROUPS = 8

/** Most members that are remembered of a group that has none; a visitor needs one. */
const MAX_FORMER_MEMBERS = 8

interface KnownGroup extends LookedUp {
  readonly labels: Labels
  followers: number
  members: ReadonlySet<string>
}

interface KnownMember {
  readonly tunnel: RemoteTunnel
  readonly listed: LabelledTunnel
  /** Keys of the groups that found it. */
  readonly groups: Set<string>
}

export class RemoteGroups {
  readonly #options: RemoteGroupsOptions
  readonly #groups = new Map<string, KnownGroup>()
  /** The groups by one of their labels. */
  readonly #byLabel = new Groups<KnownGroup>()
  readonly #members = new Map<string, KnownMember>()
  /** By tunnel that is gone from its node, the keys of its groups: a dial that is about to begin looks there. */
  readonly #lastKnown = new Map<string, readonly string[]>()
  /** The last members of groups that have none, by the key of the group. */
  readonly #former: LastKnown<readonly RemoteTunnel[]>

  constructor(options: RemoteGroupsOptions) {
    this.#options = options
    this.#former = new LastKnown({ now: options.asking.now, forgetMs: options.forgetMs })
  }

  /** All known members. */
  *tunnels(): Iterable<RemoteTunnel> {
    for (const { tunnel } of this.#members.values()) yield tunnel
  }

  tunnel(tunnelId: string): RemoteTunnel | undefined {
    return this.#members.get(tunnelId)?.tunnel
  }

  /** Keys of the groups that a tunnel is in, or was in before it was gone. */
  keysOf(tunnelId: string): readonly string[] {
    return [...(this.#members.get(tunnelId)?.groups ?? this.#lastKnown.get(tunnelId) ?? [])]
  }

  /** Follows a group, with its members at other nodes. */
  follow(labels: Labels): TunnelGroup {
    const { asking } = this.#options
    const key = labelsKey(labels)
    const group = this.#groups.get(key) ?? this.#newGroup(key, labels)
    group.followers++
    const here = this.#options.groups.follow(labels)
    let isReleased = false
    return {
      get members() {
        return here.members
      },
      found: () => asking.current(group, () => this.#ask(key, group), { isFound: here.members.length > 0 }),
      release: () => {
        here.release()
        if (isReleased) return
        isReleased = true
        if (--group.followers > 0) return
        this.#groups.delete(key)
        this.#keep(key, group)
        const [label = ''] = labelTexts(labels)
        this.#byLabel.delete(label, group)
        for (const id of group.members) this.#leave(id, key)
      },
    }
  }

  /** Looks up groups afresh; false when none is known, or no look-up was answered. */
  async lookAgain(keys: readonly string[]): Promise<boolean> {
    const asked = keys.flatMap((key) => {
      const group = this.#groups.get(key)
      return group ? [this.#options.asking.again(group, () => this.#ask(key, group))] : []
    })
    return (await Promise.all(asked)).includes(true)
  }

  /**
   * A tunnel that was reached at another node has left that node, or came back there. It stays a member until its groups are
   * looked up, before the next visitor: another node may have the tunnel by then. While the database is down, dials still go to
   * its last node.
   */
  gone(tunnelId: string): void {
    for (const key of this.#members.get(tunnelId)?.groups ?? []) {
      const group = this.#groups.get(key)
      if (group) outdate(group)
    }
  }

  /** A tunnel of this node is gone. It may have moved to another node, so its groups must be looked up again. */
  goneHere(tunnelId: string, labels: Labels): void {
    const groups = labelTexts(labels)
      .flatMap((label) => [...this.#byLabel.get(label)])
      .filter((group) => Object.entries(group.labels).every(([key, value]) => labels[key] === value))
    for (const group of groups) outdate(group)
    this.#remember(
      tunnelId,
      groups.map((group) => labelsKey(group.labels)),
    )
  }

  /** A tunnel is online at this node; returns whether it was known to be at another. */
  cameHere(tunnelId: string): boolean {
    const member = this.#members.get(tunnelId)
    for (const key of [...(member?.groups ?? [])]) this.#leave(tunnelId, key)
    return member !== undefined
  }

  /** A node is gone: groups with members there are looked up again before they are used. */
  nodeGone(nodeId: string): void {
    for (const group of this.#groups.values()) {
      if ([...group.members].some((id) => this.tunnel(id)?.nodeId === nodeId)) outdate(group)
    }
  }

  /** Forgets what has been gone for long. */
  tidy(): void {
    this.#former.tidy()
  }

  async #ask(key: string, group: KnownGroup): Promise<void> {
    let found: readonly RemoteTunnel[]
    try {
      found = await this.#options.lookUpGroup(group.labels)
    } catch (error) {
      if (this.#groups.get(key) === group && this.#isEmpty(group)) this.#use(key, group, this.#former.get(key) ?? [])
      throw error
    }
    if (this.#groups.get(key) !== group) return
    const ids = new Set(found.map(({ tunnelId }) => tunnelId))
    const unsure = this.#tunnelsOf(group).filter((each) => !ids.has(each.tunnelId) && this.#options.isUnsure(each))
    this.#use(key, group, [...found, ...unsure])
  }

  #use(key: string, group: KnownGroup, tunnels: readonly RemoteTunnel[]): void {
    if (tunnels.length === 0) this.#keep(key, group)
    else this.#former.delete(key)
    const ids = new Set(tunnels.map(({ tunnelId }) => tunnelId))
    for (const id of group.members) if (!ids.has(id)) this.#leave(id, key)
    for (const tunnel of tunnels) this.#join(tunnel, key)
    group.members = ids
  }

  /** Remembers the members of a group that is about to have none. */
  #keep(key: string, group: KnownGroup): void {
    const tunnels = this.#tunnelsOf(group)
    if (tunnels.length > 0) this.#former.add(key, tunnels.slice(0, MAX_FORMER_MEMBERS))
  }

  #tunnelsOf({ members }: KnownGroup): RemoteTunnel[] {
    return [...members].flatMap((id) => this.tunnel(id) ?? [])
  }

  /** Whether a group has no member at this node either. */
  #isEmpty({ labels }: KnownGroup): boolean {
    const followed = this.#options.groups.follow(labels)
    const isEmpty = followed.members.length === 0
    followed.release()
    return isEmpty
  }

  #newGroup(key: string, labels: Labels): KnownGroup {
    const group = { labels, ...neverAsked, followers: 0, members: new Set<string>() }
    this.#groups.set(key, group)
    const [label = ''] = labelTexts(labels)
    this.#byLabel.add(label, group)
    return group
  }

  #join(tunnel: RemoteTunnel, key: string): void {
    const { groups, moved, isHere } = this.#options
    const { tunnelId: id, httpVersion, labels } = tunnel
    // An old row of a tunnel that has come here.
    if (isHere(id)) return
    const before = this.#members.get(id)
    if (before && isAlike(before.tunnel, tunnel)) {
      before.groups.add(key)
      return
    }
    if (before) {
      groups.delete(before.listed)
      moved(id)
    }
    const listed = { id, httpVersion, labels, isRemote: true }
    this.#members.set(id, { tunnel, listed, groups: new Set([...(before?.groups ?? []), key]) })
    groups.add(listed)
  }

  #leave(tunnelId: string, key: string): void {
    const member = this.#members.get(tunnelId)
    if (!member?.groups.delete(key) || member.groups.size > 0) return
    this.#members.delete(tunnelId)
    this.#options.groups.delete(member.listed)
  }

  #remember(tunnelId: string, keys: readonly string[]): void {
    if (keys.length === 0) return
    keepLast(this.#lastKnown, tunnelId, [...(this.#lastKnown.get(tunnelId) ?? []), ...keys].slice(-MAX_FORMER_GROUPS))
  }
}
