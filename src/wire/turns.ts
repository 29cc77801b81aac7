/** A queue of those who take turns: each stands in it once at most, and coming and going makes no garbage, as a Set does. */

export interface Standing {
  /** The queues it stands in, a bit for each. */
  queues: number
}

/** Slots of a queue that never was long; a power of two. */
const FEW_SLOTS = 16

/** Slots that a queue may keep while nobody stands in it: one that was long once lets go of its memory. */
const KEPT_SLOTS = 1024

export class Turns<T extends Standing> {
  readonly #bit: number
  /** A ring; its length is a power of two. A free slot is undefined, so that nobody is held who has left. */
  #slots = new Array<T | undefined>(FEW_SLOTS).fill(undefined)
  #first = 0
  #size = 0

  /** `bit` stands for this queue in `queues`; two queues that somebody may stand in at once need two. */
  constructor(bit: number) {
    this.#bit = bit
  }

  get size(): number {
    return this.#size
  }

  /** Puts `one` at the back; who stands in the queue keeps its place, and false is given. */
  add(one: T): boolean {
    if ((one.queues & this.#bit) !== 0) return false
    one.queues |= this.#bit
    if (this.#size === this.#slots.length) this.#grow()
    this.#slots[this.#slotOf(this.#size)] = one
    this.#size++
    return true
  }

  /** Takes out who stands in front. */
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

  /** Takes out all of them, in order. */
  takeAll(): T[] {
    const all: T[] = []
    for (let one = this.shift(); one !== undefined; one = this.shift()) all.push(one)
    return all
  }

  /** Takes out `one` wherever it stands; those behind it move up. */
  remove(one: T): void {
    if ((one.queues & this.#bit) === 0) return
    one.queues &= ~this.#bit
    let place = 0
    while (place < this.#size && this.#slots[this.#slotOf(place)] !== one) place++
    for (; place < this.#size - 1; place++) {
      this.#slots[this.#slotOf(place)] = this.#slots[this.#slotOf(place + 1)]
    }
    this.#size--
    this.#slots[this.#slotOf(this.#size)] = undefined
    if (this.#size === 0) this.#shrink()
  }

  #slotOf(place: number): number {
    return (this.#first + place) & (this.#slots.length - 1)
  }

  #grow(): void {
    const slots = new Array<T | undefined>(this.#size * 2).fill(undefined)
    for (let place = 0; place < this.#size; place++) slots[place] = this.#slots[this.#slotOf(place)]
    this.#slots = slots
    this.#first = 0
  }

  #shrink(): void {
    this.#first = 0
    if (this.#slots.length > KEPT_SLOTS) this.#slots = new Array<T | undefined>(FEW_SLOTS).fill(undefined)
  }
}
