/** The links to other planes: those that take new streams, and retired ones that live until their last stream ends. */
import type { RelayLink } from './relay-link.ts'

/** How often to check whether a link that takes no new streams has lost its last, in milliseconds. */
const RETIRED_LOOK_MS = 1000

export class LinkTable {
  readonly #current = new Map<string, RelayLink>()
  readonly #retired = new Set<RelayLink>()
  #timer: NodeJS.Timeout | undefined

  /** Planes with a link that takes new streams. */
  get size(): number {
    return this.#current.size
  }

  /** Open streams of all links. */
  get streams(): number {
    let sum = 0
    for (const { streams } of this.#current.values()) sum += streams
    for (const { streams } of this.#retired) sum += streams
    return sum
  }

  /** The link to a plane, if it takes new streams. */
  to(planeId: string): RelayLink | undefined {
    const link = this.#current.get(planeId)
    return link?.isUsedUp ? undefined : link
  }

  /** The link with the fewest streams, whichever plane it leads to. */
  leastBusy(): RelayLink | undefined {
    let best: RelayLink | undefined
    for (const link of this.#current.values()) {
      if (!link.isUsedUp && (!best || link.streams < best.streams)) best = link
    }
    return best
  }

  /** The plane that has had a link for the longest time. */
  get oldest(): string | undefined {
    return this.#current.keys().next().value
  }

  /** New streams to a plane go through this link from now on; its former link is retired. */
  add(planeId: string, link: RelayLink): void {
    this.retire(planeId)
    this.#current.set(planeId, link)
  }

  /** The link to a plane takes no new streams, and closes with its last open stream. */
  retire(planeId: string): void {
    const link = this.#current.get(planeId)
    if (!link) return
    this.#current.delete(planeId)
    if (link.streams === 0) {
      link.session.close()
      return
    }
    this.#retired.add(link)
    this.#timer ??= setInterval(() => this.#closeEmpty(), RETIRED_LOOK_MS).unref()
  }

  retireAll(): void {
    for (const planeId of [...this.#current.keys()]) this.retire(planeId)
  }

  /** Removes a closed link. */
  remove(planeId: string, link: RelayLink): void {
    this.#retired.delete(link)
    if (this.#current.get(planeId) === link) this.#current.delete(planeId)
  }

  /** Closes all links and their open streams. */
  close(): void {
    clearInterval(this.#timer)
    for (const { session } of [...this.#current.values(), ...this.#retired]) session.close()
  }

  #closeEmpty(): void {
    for (const link of [...this.#retired]) if (link.streams === 0) link.session.close()
    if (this.#retired.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
