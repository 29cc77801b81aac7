/** For tests: planes in one process. Messages are copied as between processes, and delivered when the test asks for it. */
import { deserialize, serialize } from 'node:v8'
import type { Neighbours } from '../worker-peers.ts'

type Handler = (argument: unknown, from: string) => unknown

interface Letter {
  readonly from: string
  readonly to: string
  readonly deliver: () => void
}

/** All planes of a test, and the messages under way between them. */
export class TestNode {
  readonly planes = new Map<string, TestPlane>()
  readonly #letters: Letter[] = []
  /** Planes that receive no messages for now. */
  readonly stalled = new Set<string>()
  /** Messages delivered so far, by name. */
  readonly delivered = new Map<string, number>()

  /** A new plane; `join` makes it known to the others. */
  plane(self: string): TestPlane {
    return new TestPlane(self, this)
  }

  /** All planes learn of the new one at once; with `isQuiet`, each when the test calls its `changed`. */
  join(plane: TestPlane, { isQuiet = false } = {}): void {
    this.planes.set(plane.self, plane)
    if (!isQuiet) for (const each of this.planes.values()) each.changed()
  }

  /** Removes a plane with all messages from it and to it, and tells the others. */
  kill(plane: string): void {
    this.planes.get(plane)?.die()
    this.planes.delete(plane)
    for (const each of this.planes.values()) each.changed()
  }

  post(from: string, to: string, deliver: () => void): void {
    this.#letters.push({ from, to, deliver })
  }

  count(name: string): void {
    this.delivered.set(name, (this.delivered.get(name) ?? 0) + 1)
  }

  /**
   * Delivers the oldest message between two planes, which `pick` chooses; false when there is none.
   * Only messages between the same two planes keep their order.
   */
  deliverOne(pick = 0): boolean {
    const seen = new Set<string>()
    const next = this.#letters.filter(({ from, to }) => {
      const way = `${from} ${to}`
      if (this.stalled.has(to) || seen.has(way)) return false
      seen.add(way)
      return true
    })
    const letter = next[pick % Math.max(1, next.length)]
    if (!letter) return false
    this.#letters.splice(this.#letters.indexOf(letter), 1)
    letter.deliver()
    return true
  }

  /** Delivers all messages, and those that follow from them. */
  async settle(): Promise<void> {
    // Some answers and batches need a turn of the event loop.
    for (let quiet = 0; quiet < 4; ) {
      quiet = this.deliverOne() ? 0 : quiet + 1
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
}

export class TestPlane implements Neighbours {
  readonly self: string
  readonly #node: TestNode
  readonly #handlers = new Map<string, Handler>()
  readonly #heard: (() => void)[] = []
  readonly #asked = new Map<string, Set<(error: Error) => void>>()
  #isDead = false
  #others: readonly string[] = []

  constructor(self: string, node: TestNode) {
    this.self = self
    this.#node = node
  }

  others(): readonly string[] {
    return this.#others
  }

  whenChanged(heard: () => void): void {
    this.#heard.push(heard)
  }

  serve(name: string, handler: Handler): void {
    this.#handlers.set(name, handler)
  }

  tell(planeId: string, name: string, argument: unknown): void {
    const copy: unknown = deserialize(serialize(argument))
    this.#post(planeId, (to) => void to.#run(name, copy, this.self))
  }

  ask(planeId: string, name: string, argument: unknown): Promise<unknown> {
    const copy: unknown = deserialize(serialize(argument))
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    if (!this.#node.planes.has(planeId)) reject(new Error(`${planeId} is gone`))
    const asked = this.#asked.get(planeId) ?? new Set()
    this.#asked.set(planeId, asked.add(reject))
    this.#post(planeId, async (to) => {
      const answer: unknown = deserialize(serialize(await to.#run(name, copy, this.self)))
      to.#post(this.self, () => resolve(answer))
    })
    return promise
  }

  changed(): void {
    const others = [...this.#node.planes.keys()].filter((id) => id !== this.self)
    if (others.join() === this.#others.join()) return
    const gone = this.#others.filter((id) => !others.includes(id))
    this.#others = others
    for (const id of gone) for (const reject of this.#asked.get(id) ?? []) reject(new Error(`${id} is gone`))
    for (const heard of this.#heard) heard()
  }

  die(): void {
    this.#isDead = true
  }

  #post(to: string, deliver: (to: TestPlane) => unknown): void {
    if (this.#isDead) return
    this.#node.post(this.self, to, () => {
      const plane = this.#node.planes.get(to)
      if (plane && !this.#isDead) deliver(plane)
    })
  }

  #run(name: string, argument: unknown, from: string): unknown {
    this.#node.count(name)
    const handler = this.#handlers.get(name)
    if (!handler) throw new Error(`${this.self} does not know ${name}`)
    return handler(argument, from)
  }
}
