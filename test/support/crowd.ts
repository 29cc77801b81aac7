/** Visitors of one node that send requests repeatedly, over new and over kept connections. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ClusterNode } from './cluster.ts'
import { until } from './until.ts'
import { type WayToAsk, waysToAskWeb, wayToAskTcp } from './ways-to-ask.ts'

/** Requests of one visitor per second. */
const PER_VISITOR = 10

/** Requests that must be answered to every visitor after a change before it counts as survived. */
const ENOUGH = 6

/** The addresses that are visited at each node; every service answers `served`. */
export interface Visited {
  /** Visited with every version of HTTP. */
  readonly webs: readonly string[]
  readonly tcps: readonly string[]
}

export interface CrowdOptions {
  readonly ca: string
  /** Requests of all visitors per second, if the machine keeps up; by default 10 for each. */
  readonly perSecond?: number
  /** How many visitors there are for each way, except for new TLS connections; one by default. */
  readonly ofEach?: number
  /** Whether a visitor may make a request again that a server has refused unread, as clients of HTTP do; never by default. */
  readonly mayRepeat?: () => boolean
}

/** A connection that was closed, or about to be, when the request came. */
const UNREAD = /NGHTTP2_REFUSED_STREAM|socket hang up/

interface Visitor {
  readonly name: string
  served: number
}

export class Crowd {
  readonly failed: string[] = []
  /** How many requests were made again. */
  repeated = 0
  readonly #mayRepeat: () => boolean
  readonly #node: ClusterNode
  readonly #visitors: Visitor[] = []
  readonly #running: Promise<void>[]
  readonly #betweenMs: number
  #isStopped = false

  constructor(node: ClusterNode, { webs, tcps }: Visited, options: CrowdOptions) {
    const { ca, perSecond, ofEach = 1, mayRepeat = () => false } = options
    this.#mayRepeat = mayRepeat
    this.#node = node
    const waysOfOne = (isFirst: boolean): readonly WayToAsk[] => [
      // New TLS connections cost so much more than the rest that only one visitor of each name opens them.
      ...webs.flatMap((url) => waysToAskWeb(node.at(url), ca).slice(isFirst ? 0 : 1)),
      ...tcps.map((tcp) => wayToAskTcp(node.at(tcp), 'served')),
    ]
    const ways = Array.from({ length: ofEach }, (_, i) => waysOfOne(i === 0)).flat()
    this.#betweenMs = (1000 * ways.length) / (perSecond ?? PER_VISITOR * ways.length)
    this.#running = ways.map((way) => this.#loop(way))
  }

  /** The number of requests with the expected answer. */
  get served(): number {
    return this.#visitors.reduce((sum, { served }) => sum + served, 0)
  }

  /** Resolves when all have been served for a while, or a request has failed. */
  async goOn(): Promise<void> {
    const enough = this.#visitors.map((visitor) => ({ visitor, served: visitor.served + ENOUGH }))
    const isEnough = (): boolean => enough.every(({ visitor, served }) => visitor.served >= served)
    await until(`visitors of ${this.#node.name} are served`, () => this.failed.length > 0 || isEnough())
  }

  /** Stops sending requests; those that were sent are answered. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#running)
  }

  async #loop(way: WayToAsk): Promise<void> {
    const { name } = way
    const visitor: Visitor = { name, served: 0 }
    this.#visitors.push(visitor)
    while (!this.#isStopped) {
      const begun = performance.now()
      const { status, text } = await way.ask().catch((error: Error) => ({ status: 0, text: error.message }))
      if (status === 200 && text === 'served') visitor.served++
      else if (status === 0 && UNREAD.test(text) && this.#mayRepeat()) {
        this.repeated++
        continue
      } else this.failed.push(`${this.#node.name}, ${name}: ${status} ${text.slice(0, 300)}`)
      await pause(Math.max(0, begun + this.#betweenMs - performance.now()))
    }
    way.close()
  }
}
