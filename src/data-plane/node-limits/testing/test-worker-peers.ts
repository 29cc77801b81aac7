/** For tests: planes in one process. Messages are copied as between processes, and delivered when the test asks for it. */
import { createLog } from '../../../lib/log/create-log.ts'
import { Peers } from '../../../link/calls/peers.ts'
import type { Channel } from '../../../link/calls/plane-channel.ts'
import type { WorkerCalls } from '../worker-peers.ts'

const log = createLog({ level: 'silent' })

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
    this.planes.delete(plane)
    for (const each of this.planes.values()) each.changed()
  }

  /** A channel on which `from` asks another plane; undefined when that is gone. */
  channel(from: TestPlane, id: string): Channel | undefined {
    const to = this.planes.get(id)
    if (!to) return undefined
    const asking: LetterChannel = new LetterChannel((message) => this.#post(from, to, message, answering))
    const answering: LetterChannel = new LetterChannel((message) => this.#post(to, from, message, asking))
    asking.other = answering
    answering.other = asking
    to.accept(answering)
    return asking
  }

  #post(from: TestPlane, to: TestPlane, message: unknown, end: LetterChannel): void {
    const isAlive = (plane: TestPlane): boolean => this.planes.get(plane.self) === plane
    if (!isAlive(from)) return
    const [, name] = message as [number, unknown]
    const deliver = (): void => {
      if (!isAlive(from) || !isAlive(to)) return
      if (typeof name === 'string') this.delivered.set(name, (this.delivered.get(name) ?? 0) + 1)
      end.events?.message(message)
    }
    this.#letters.push({ from: from.self, to: to.self, deliver })
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

export class TestPlane extends Peers<WorkerCalls> {
  readonly #node: TestNode

  constructor(self: string, node: TestNode) {
    super({ self, log, channelTo: (id) => node.channel(this, id) })
    this.#node = node
  }

  changed(): void {
    this.use([...this.#node.planes.keys()].filter((id) => id !== this.self))
  }
}

/** One end of a channel between two planes; what it sends becomes a letter. */
class LetterChannel implements Channel {
  readonly #post: (message: unknown) => void
  other: LetterChannel | undefined
  events: Parameters<Channel['open']>[0] | undefined

  constructor(post: (message: unknown) => void) {
    this.#post = post
  }

  send(message: unknown): void {
    this.#post(JSON.parse(JSON.stringify(message)))
  }

  open(events: Parameters<Channel['open']>[0]): void {
    this.events = events
  }

  close(): void {
    for (const end of [this, this.other]) {
      end?.events?.closed()
      if (end) end.events = undefined
    }
  }
}
