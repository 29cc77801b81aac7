/** The IP restrictions of agents and endpoints, compiled when they change, so that listeners need not wait (D64). */
import type { RestrictedPart } from '../resources/ip-restrictions.ts'
import type { Change } from '../store/feed.ts'
import type { Store } from '../store/store.ts'
import type { Followed } from './follower.ts'
import type { RefusedLog } from './refused-log.ts'
import { readRestrictions } from './restrictions.ts'

/** Parts whose listeners are in the data plane. */
type LivePart = Extract<RestrictedPart, 'agent' | 'endpoints'>

/** Where a connection comes from. */
interface Peer {
  readonly ip: string
}

/** A change of one of these may change a restriction; a change of a rule is filed under its policy. */
const followedKinds: ReadonlySet<string> = new Set(['ip_restriction', 'ip_policy'])

export class LiveRestrictions implements Followed {
  readonly #store: Store
  readonly #refused: RefusedLog
  readonly #heard: (() => void)[] = []
  #tests: ReadonlyMap<RestrictedPart, (peer: Peer) => boolean> = new Map()

  constructor({ store, refused }: { store: Store; refused: RefusedLog }) {
    this.#store = store
    this.#refused = refused
  }

  /** Whether `peer` may reach `part`. The answer is cached with the peer, so a connection is judged once per change. */
  admits(part: LivePart, peer: Peer): boolean {
    const test = this.#tests.get(part)
    return test === undefined || test(peer)
  }

  /** Calls `heard` after the rules may have changed. */
  whenChanged(heard: () => void): void {
    this.#heard.push(heard)
  }

  async load(): Promise<void> {
    const restrictions = await this.#store.read(readRestrictions)
    const tests = [...restrictions].map(([part, { isEnforced, admits }]) => {
      const known = new WeakMap<Peer, boolean>()
      const test = (peer: Peer): boolean => {
        let passes = known.get(peer)
        if (passes === undefined) {
          const isAdmitted = admits(peer.ip)
          if (!isAdmitted) this.#refused.note(part, peer.ip, { isEnforced })
          passes = isAdmitted || !isEnforced
          known.set(peer, passes)
        }
        return passes
      }
      return [part, test] as const
    })
    this.#tests = new Map(tests)
    for (const heard of this.#heard) heard()
  }

  async apply(changes: readonly Change[]): Promise<void> {
    if (changes.some(({ kind }) => followedKinds.has(kind))) await this.load()
  }
}
