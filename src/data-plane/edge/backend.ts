/** Turns the plan of a backend into targets: where the next connection or request goes, and what to try after that. */

import { flatText } from '../../lib/text/flat-text.ts'
import type { Dial, FollowGroup, GroupMember } from '../../model/dial.ts'
import type { BackendPlan, TunnelPlan } from '../../model/edge-config.ts'
import type { Backend, DialTarget, FixedTarget, Target } from './dial.ts'
import { dialStatic } from './dial.ts'

/** How targets are reached. */
export interface Reach {
  readonly dial: Dial
  readonly followGroup: FollowGroup
  /** At least 0 and less than 1. */
  readonly random: () => number
}

export function createBackend(plan: BackendPlan, reach: Reach): Backend {
  switch (plan.kind) {
    case 'tunnel':
      return single(tunnelTarget(plan, reach))
    case 'static':
      return single({
        kind: 'dial',
        // Includes the address, so that connections kept to an earlier address are not reused.
        key: `${plan.id} ${plan.tls ? 'tls' : 'tcp'}://${plan.host}:${plan.port}`,
        httpVersion: 1,
        proxyHeader: 0,
        open: () => dialStatic(plan),
      })
    case 'http_response':
      return single(fixedTarget(plan))
    case 'tunnel_group':
      return group(plan, reach)
    case 'failover':
      return failover(plan.children.map((child) => createBackend(child, reach)))
    case 'weighted':
      return pickByWeight(
        plan.children.map(({ weight, plan }) => ({ weight, backend: createBackend(plan, reach) })),
        reach.random,
      )
  }
}

/** A backend with a single target, which always counts as online; dialling shows whether it is. */
function single(target: Target): Backend {
  const targets = [target]
  return { targets: () => targets, isOnline: true, release() {} }
}

function tunnelTarget({ tunnelId, httpVersion, proxyHeader, version }: TunnelPlan, { dial }: Reach): DialTarget {
  return {
    kind: 'dial',
    key: tunnelId,
    // Reused only for visitors that the same version of an address admitted; see `TunnelPlan`.
    reuseKey: version === undefined ? tunnelId : flatText(`${tunnelId} @${version}`),
    httpVersion,
    proxyHeader,
    open: (visit) => dial(version === undefined ? { tunnelId, ...visit } : { tunnelId, version, ...visit }),
  }
}

const DEFAULT_TYPE = 'text/plain; charset=utf-8'

/** a fixed response has a text type by default. */
function fixedTarget({ status, headers, body }: Extract<BackendPlan, { kind: 'http_response' }>): FixedTarget {
  const pairs = Object.entries(headers)
  const hasType = pairs.some(([name]) => name.toLowerCase() === 'content-type')
  if (!hasType && body !== '') pairs.push(['content-type', DEFAULT_TYPE])
  return { kind: 'fixed', status, headers: pairs, body: Buffer.from(body) }
}

/**
 * strictly in turn, by age; when a member cannot be dialled the next is tried, each at most once. In a pool,
 * members at this node get two turns for each turn of a member at another node.
 */
function group({ labels, pool }: Extract<BackendPlan, { kind: 'tunnel_group' }>, reach: Reach): Backend {
  const followed = reach.followGroup(labels)
  const known = new WeakMap<GroupMember, DialTarget>()
  let members: readonly GroupMember[] = []
  let targets: readonly DialTarget[] = []
  /** The index of the first target, by turn. */
  let turns: readonly number[] = []
  let turn = 0
  const targetOf = (member: GroupMember): DialTarget => {
    let target = known.get(member)
    if (!target) {
      target = tunnelTarget({ kind: 'tunnel', proxyHeader: pool?.proxyHeader ?? 0, ...member }, reach)
      if (pool) target = { ...target, isPooled: true }
      known.set(member, target)
    }
    return target
  }
  const current = (): readonly DialTarget[] => {
    // The list is replaced, never changed, so targets are rebuilt only when it is another list.
    if (members !== followed.members) {
      members = followed.members
      targets = members.map(targetOf)
      turns = turnsOf(members, { isPool: pool !== undefined })
    }
    return targets
  }
  return {
    targets() {
      const all = current()
      return new Round(all, turns[turn++ % turns.length] ?? 0, current)
    },
    ...(followed.found && { found: () => followed.found?.() }),
    get isOnline() {
      return followed.members.length > 0
    },
    release: () => followed.release(),
  }
}

/** All members once, then those at this node once more, unless all are at this node. */
function turnsOf(members: readonly GroupMember[], { isPool }: { readonly isPool: boolean }): readonly number[] {
  const all = [...members.keys()]
  const near = isPool ? all.filter((i) => members[i]?.isRemote !== true) : []
  return near.length === all.length ? all : [...all, ...near]
}

/**
 * Gives each of `targets` once, starting with the one whose turn it is, and then the targets that were added meanwhile. An agent
 * that moves may leave its former place just before its turn. Not a generator: a generator would cost more than anything else in
 * a request.
 */
class Round implements IterableIterator<DialTarget, undefined> {
  readonly #current: () => readonly DialTarget[]
  #targets: readonly DialTarget[]
  #next: number
  #end: number
  #isLate = false

  constructor(targets: readonly DialTarget[], turn: number, current: () => readonly DialTarget[]) {
    this.#current = current
    this.#targets = targets
    this.#next = turn
    this.#end = turn + targets.length
  }

  next(): IteratorResult<DialTarget, undefined> {
    if (this.#next === this.#end && !this.#isLate) this.#addLate()
    const target = this.#next < this.#end ? this.#targets[this.#next++ % this.#targets.length] : undefined
    return target ? { done: false, value: target } : { done: true, value: undefined }
  }

  [Symbol.iterator](): this {
    return this
  }

  /** Only once, so that a visit ends even while members come and go all the time. */
  #addLate(): void {
    this.#isLate = true
    const now = this.#current()
    if (now === this.#targets) return
    const tried = new Set(this.#targets)
    this.#targets = now.filter((target) => !tried.has(target))
    this.#next = 0
    this.#end = this.#targets.length
  }
}

/** A child fails only when it cannot be dialled. An error that a service answers with is its answer. */
function failover(children: readonly Backend[]): Backend {
  return {
    *targets() {
      for (const child of children) yield* child.targets()
    },
    ...foundAmong(children),
    get isOnline() {
      return children.some((child) => child.isOnline)
    },
    release: () => releaseAll(children),
  }
}

/** shares by weight among those that are online; a weight of 0 is never drawn. */
function pickByWeight(children: readonly { weight: number; backend: Backend }[], random: () => number): Backend {
  const drawable = children.filter(({ weight }) => weight > 0)
  return {
    *targets() {
      let left = drawable.filter(({ backend }) => backend.isOnline)
      while (left.length > 0) {
        const drawn = draw(left, random)
        if (!drawn) return
        yield* drawn.backend.targets()
        left = left.filter((child) => child !== drawn)
      }
    },
    ...foundAmong(drawable.map(({ backend }) => backend)),
    get isOnline() {
      return drawable.some(({ backend }) => backend.isOnline)
    },
    release: () => releaseAll(children.map(({ backend }) => backend)),
  }
}

function draw<T extends { weight: number }>(children: readonly T[], random: () => number): T | undefined {
  let at = random() * children.reduce((sum, { weight }) => sum + weight, 0)
  return children.find(({ weight }) => {
    at -= weight
    return at < 0
  })
}

/** Has `found` only if targets of a child may be at other nodes. */
function foundAmong(children: readonly Backend[]): Pick<Backend, 'found'> {
  const unsure = children.filter((child) => 'found' in child)
  if (unsure.length === 0) return {}
  return {
    found() {
      const pending = unsure.flatMap((child) => child.found?.() ?? [])
      return pending.length > 0 ? Promise.all(pending) : undefined
    },
  }
}

function releaseAll(backends: readonly Backend[]): void {
  for (const backend of backends) backend.release()
}
