/** Shares a bounded number of places or bytes among owners: while others want room, an owner has at most a quarter (D104). */

/** An owner with more than this part of the room gets no more while there is none left. */
const MOST = 1 / 4

/**
 * Only counts: a table or queue asks it who must give way, takes away something of that owner, and reports what is held.
 *
 * @example
 * for (let giver = shares.giver(owner); giver !== undefined; giver = shares.giver(owner)) {
 *   if (giver === owner) return refuse()
 *   removeOneOf(giver) // calls shares.add(giver, -1)
 * }
 * shares.add(owner, 1)
 */
export class Shares {
  /** What all owners hold together. */
  used = 0
  readonly #room: number
  /** One thing is every owner's share. */
  readonly #share: number
  readonly #held = new Map<string, number>()
  #largest = ''
  /** Whether the largest owner has given up something, so that another may be larger by now. */
  #isStale = false
  /** Calls until the owners are compared again, so that it costs no more than the calls between. */
  #rest = 0

  constructor(room: number) {
    this.#room = room
    this.#share = Math.max(1, room * MOST)
  }

  heldBy(owner: string): number {
    return this.#held.get(owner) ?? 0
  }

  /** Whether an owner has its share or more. */
  hasShare(owner: string): boolean {
    return this.heldBy(owner) >= this.#share
  }

  /** Who must give up something before `owner` can have this much more: nobody, or the owner itself, when it has its share. */
  giver(owner: string, amount = 1): string | undefined {
    if (this.used + amount <= this.#room) return undefined
    const own = this.heldBy(owner) + amount
    if (own > this.#share) return owner
    const largest = this.#findLargest()
    return this.heldBy(largest) >= own ? largest : owner
  }

  /** Counts what an owner has taken; a negative amount is given back. */
  add(owner: string, amount: number): void {
    const held = this.heldBy(owner) + amount
    this.used += amount
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
    if (owner === this.#largest) this.#isStale ||= amount < 0
    else if (held > this.heldBy(this.#largest)) this.#largest = owner
  }

  #findLargest(): string {
    if (!this.#isStale || --this.#rest > 0) return this.#largest
    for (const [owner, held] of this.#held) if (held > this.heldBy(this.#largest)) this.#largest = owner
    this.#isStale = false
    this.#rest = this.#held.size
    return this.#largest
  }
}
