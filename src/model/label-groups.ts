/** Knows which tunnels carry which labels, and updates the groups that follow them. */
import { Groups } from '../lib/multi-map.ts'
import type { GroupMember, TunnelGroup } from './dial.ts'

type Labels = Readonly<Record<string, string>>

/** What groups need to know of a tunnel. */
export interface LabelledTunnel {
  readonly id: string
  readonly httpVersion: 1 | 2
  readonly labels?: Labels | undefined
  /** Whether it is at another node. */
  readonly isRemote?: boolean | undefined
}

/** A followed group; equal label sets share one. */
interface Followed {
  readonly labels: Labels
  members: readonly GroupMember[]
  followers: number
}

export class LabelGroups<Tunnel extends LabelledTunnel> {
  /** Tunnels by each of their labels: the cost of a change depends on tunnels with the same label, not on all. */
  readonly #tunnels = new Groups<Tunnel>()
  readonly #followed = new Map<string, Followed>()
  /** Followed groups by one of their labels, which every member must carry. */
  readonly #followedBy = new Groups<Followed>()

  /** Tunnels that carry all of `labels`, oldest first. */
  find(labels: Labels): Tunnel[] {
    const sets = Object.entries(labels).map(([key, value]) => this.#tunnels.get(labelText(key, value)))
    const smallest = sets.reduce((least, set) => (set.size < least.size ? set : least), sets[0] ?? new Set())
    return [...smallest].filter((tunnel) => carries(tunnel, labels)).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  follow(labels: Labels): TunnelGroup {
    const key = labelsKey(labels)
    const group = this.#followed.get(key) ?? this.#begin(key, labels)
    group.followers++
    let isReleased = false
    return {
      get members() {
        return group.members
      },
      release: () => {
        if (isReleased) return
        isReleased = true
        if (--group.followers > 0) return
        this.#followed.delete(key)
        this.#followedBy.delete(firstLabel(labels), group)
      },
    }
  }

  add(tunnel: Tunnel): void {
    for (const label of labelTexts(tunnel.labels ?? {})) this.#tunnels.add(label, tunnel)
    for (const group of this.#groupsOf(tunnel)) {
      const { id: tunnelId } = tunnel
      const after = group.members.findIndex((member) => member.tunnelId > tunnelId)
      // The newest usually goes at the end; a tunnel that returns goes back to its place.
      const index = after === -1 ? group.members.length : after
      group.members = group.members.toSpliced(index, 0, memberOf(tunnel))
    }
  }

  delete(tunnel: Tunnel): void {
    const texts = labelTexts(tunnel.labels ?? {})
    if (!this.#tunnels.get(texts[0] ?? '').has(tunnel)) return
    for (const label of texts) this.#tunnels.delete(label, tunnel)
    for (const group of this.#groupsOf(tunnel)) {
      const gone = memberOf(tunnel)
      // Only the member at this node: while a tunnel moves it is listed twice under one id, once for each node.
      const index = group.members.findIndex(
        ({ tunnelId, httpVersion, isRemote }) =>
          tunnelId === gone.tunnelId && httpVersion === gone.httpVersion && isRemote === gone.isRemote,
      )
      if (index !== -1) group.members = group.members.toSpliced(index, 1)
    }
  }

  #begin(key: string, labels: Labels): Followed {
    const members = this.find(labels).map(memberOf)
    const group = { labels, members, followers: 0 }
    this.#followed.set(key, group)
    this.#followedBy.add(firstLabel(labels), group)
    return group
  }

  #groupsOf(tunnel: LabelledTunnel): Followed[] {
    return labelTexts(tunnel.labels ?? {}).flatMap((label) =>
      [...this.#followedBy.get(label)].filter((group) => carries(tunnel, group.labels)),
    )
  }
}

function memberOf({ id: tunnelId, httpVersion, isRemote = false }: LabelledTunnel): GroupMember {
  return isRemote ? { tunnelId, httpVersion, isRemote } : { tunnelId, httpVersion }
}

/** A key for a label set, whatever its order. */
export function labelsKey(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function carries({ labels }: LabelledTunnel, wanted: Labels): boolean {
  if (!labels) return false
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value)
}

/** Unambiguous, because neither part contains `=`. */
function labelText(key: string, value: string): string {
  return `${key}=${value}`
}

/** Labels, each as one text. */
export function labelTexts(labels: Labels): string[] {
  return Object.entries(labels).map(([key, value]) => labelText(key, value))
}

function firstLabel(labels: Labels): string {
  return labelTexts(labels).sort()[0] ?? ''
}
