/** Decides which addresses may reach the listeners for agents and for visitors, by the IP restrictions in force (D64). */
import { compileIpRules } from '../../lib/net/ip-rules.ts'
import type { RefusedAddresses } from '../../lib/net/refused-addresses.ts'
import type { PartRestriction } from '../../link/planes/plane-calls.ts'

/** Parts whose listeners are in the data plane. */
type LivePart = 'agent' | 'endpoints'

/** Where a connection comes from. */
interface Peer {
  readonly ip: string
}

/** Not a `MirroredMap`: the few restrictions are sent together, and compiled into tests that take effect at once. */
export class Restrictions {
  readonly #refused: RefusedAddresses
  readonly #heard: (() => void)[] = []
  readonly #first = Promise.withResolvers<void>()
  /** Resolves when the restrictions are known for the first time. */
  readonly known = this.#first.promise
  #tests: ReadonlyMap<string, (peer: Peer) => boolean> = new Map()

  constructor({ refused }: { refused: RefusedAddresses }) {
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

  use(restrictions: readonly PartRestriction[]): void {
    this.#tests = new Map(restrictions.map((each) => [each.part, this.#testOf(each)]))
    for (const heard of this.#heard) heard()
    this.#first.resolve()
  }

  #testOf({ part, isEnforced, rules }: PartRestriction): (peer: Peer) => boolean {
    const admits = compileIpRules(rules)
    const known = new WeakMap<Peer, boolean>()
    return (peer) => {
      let passes = known.get(peer)
      if (passes === undefined) {
        const isAdmitted = admits(peer.ip)
        if (!isAdmitted) this.#refused.note(part, peer.ip, { isEnforced })
        passes = isAdmitted || !isEnforced
        known.set(peer, passes)
      }
      return passes
    }
  }
}
