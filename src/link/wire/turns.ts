/**
 * A queue for taking turns: each member is in it at most once, as in a Set, but adding and removing makes no garbage.
 */

export interface QueueMember {
  /** The queues it is in, one bit each. */
  queues: number
}

/** Initial slots of a queue; a power of two. */
const FEW_SLOTS = 16

/** Most slots that an empty queue keeps; after it was longer, it releases the memory. */
const KEPT_SLOTS = 1024

export class Turns<T extends QueueMember> {
  readonly #bit: number
  /** A ring whose length is a power of two. Free slots are undefined, so that they keep no member alive. */
  #slots = new Array<T | undefined>(FEW_SLOTS).fill(undefined)
  #first = 0
  #size = 0

  /** `bit` marks this queue in `queues`; two queues with common members need different bits. */
  constructor(bit: number) {
    this.#bit = bit
  }

  get size(): number {
    return this.#size
  }

  /** Adds `one` at the back; false when it is in the queue already, and then it keeps its place. */
  add(one: T): boolean {
    if ((one.queues & this.#bit) !== 0) return false
    one.queues |= this.#bit
    if (this.#size === this.#slots.length) this.#grow()
    this.#slots[this.#slotOf(this.#size)] = one
    this.#size++
    return true
  }

  /** Removes and returns the first. */
  shift(): T | undefined {
    const one = this.#slots[this.#first]
    if (one === undefined) return undefined
    this.#slots[this.#first] = undefined
    this.#first = this.#slotOf(1)
    this.#size--
    one.queues &= ~this.#bit
    if (this.#size === 0) this.#shrink()
    return one
  }

  /** Removes and returns all, in order. */
  takeAll(): T[] {
    const all: T[] = []
    for (let one = this.shift(); one !== undefined; one = this.shift()) all.push(one)
    return all
  }

  /** Removes `one` from wherever it is; those after it move up. */
  remove(one: T): void {
    if ((one.queues & this.#bit) === 0) return
    one.queues &= ~this.#bit
    let index = 0
    while (index < this.#size && this.#slots[this.#slotOf(index)] !== one) index++
    for (; index < this.#size - 1; index++) {
      this.#slots[this.#slotOf(index)] = this.#slots[this.#slotOf(index + 1)]
    }
    this.#size--
    this.#slots[this.#slotOf(this.#size)] = undefined
    if (this.#size === 0) this.#shrink()
  }

  #slotOf(index: number): number {
    return (this.#first + index) & (this.#slots.length - 1)
  }

  #grow(): void {
    const slots = new Array<T | undefined>(this.#size * 2).fill(undefined)
    for (let index = 0; index < this.#size; index++) slots[index] = this.#slots[this.#slotOf(index)]
    this.#slots = slots
    this.#first = 0
  }

  #shrink(): void {
    this.#first = 0
    if (this.#slots.length > KEPT_SLOTS) this.#slots = new Array<T | undefined>(FEW_SLOTS).fill(undefined)
  }
}
