/** A bounded number of slots, shared by owners: when all are taken, the oldest holder of the owner with most gives way. */
import { Shares } from './shares.ts'

/**
 * @example
 * slots.take(socket, source)?.destroy()
 * socket.once('close', () => slots.leave(socket))
 */
export class SharedSlots<Holder> {
  readonly #shares: Shares
  readonly #owners = new Map<Holder, string>()
  /** Oldest first. */
  readonly #held = new Map<string, Set<Holder>>()

  constructor(most: number) {
    this.#shares = new Shares(most)
  }

  /** All who hold a slot. */
  get holders(): Holder[] {
    return [...this.#owners.keys()]
  }

  get isEmpty(): boolean {
    return this.#owners.size === 0
  }

  /** Whether one more slot of this owner would cost it one of its own. */
  isShareTaken(owner: string): boolean {
    return this.#shares.giver(owner) === owner
  }

  has(holder: Holder): boolean {
    return this.#owners.has(holder)
  }

  /** Takes a slot; returns the holder that has lost its own for it, if any. */
  take(holder: Holder, owner: string): Holder | undefined {
    const giver = this.#shares.giver(owner)
    const [oldest] = (giver !== undefined && this.#held.get(giver)) || []
    if (oldest !== undefined) this.leave(oldest)
    const same = this.#held.get(owner)
    if (same) same.add(holder)
    else this.#held.set(owner, new Set([holder]))
    this.#owners.set(holder, owner)
    this.#shares.add(owner, 1)
    return oldest
  }

  /** Gives the slot back; a second call does nothing. */
  leave(holder: Holder): void {
    const owner = this.#owners.get(holder)
    if (owner === undefined) return
    this.#owners.delete(holder)
    const same = this.#held.get(owner)
    same?.delete(holder)
    if (same?.size === 0) this.#held.delete(owner)
    this.#shares.add(owner, -1)
  }
}
