/** Streams exchanges to watchers as they happen. */
import { SharedSlots } from '../../lib/limits/shared-slots.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { Refusal } from '../../model/errors.ts'
import { type ExchangeFilter, isThrough, type SeenExchange } from '../../model/exchange.ts'
import { shared } from '../../model/shared.ts'
import type { Principal } from '../records/find-caller.ts'
import { type ExchangeNode, maySee } from './listed-exchanges.ts'

interface ExchangeStreamsOptions {
  readonly nodes: () => readonly ExchangeNode[]
  readonly log: Logger
  readonly everyMs?: number
}

interface FollowingReader {
  /** The watcher; read at each poll, since a role may change. */
  readonly principal: () => Principal
  readonly filter: ExchangeFilter
  /** Called when every later exchange will be reported, so that a list read after this misses none. */
  readonly follows: () => void
  /** `missed`: how many more exchanges there were; some of them may not pass the filter. */
  readonly saw: (exchanges: readonly SeenExchange[], missed: number) => void
  /** The stream is over. */
  readonly end: () => void
}

/** Pause between two polls, in milliseconds. */
const LOOK_MS = 500

/** While there are watchers, nodes are polled once for all of them. Nothing is buffered for a watcher that does not read. */
export class ExchangeStreams {
  readonly #options: ExchangeStreamsOptions
  readonly #watchers = new SharedSlots<FollowingReader>(shared.eventStreams.most)
  /** By node, the next number of each of its data planes. */
  readonly #seen = new Map<string, Readonly<Record<string, number>>>()
  readonly #asking = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  /** The first poll, which finds out where each node begins. */
  #firstLook: Promise<unknown> = Promise.resolve()

  constructor(options: ExchangeStreamsOptions) {
    this.#options = options
  }

  /** Returns a function that stops watching. Throws `Refusal` when the owner has its share of all watchers. */
  watch(watcher: FollowingReader): () => void {
    const owner = watcher.principal().id
    if (this.#watchers.isShareTaken(owner)) {
      const msg = 'too many streams of exchanges are open, and you have your share of them; close one'
      throw new Refusal('SERVER_BUSY', msg, { headers: { 'retry-after': '5' } })
    }
    this.#watchers.take(watcher, owner)?.end()
    if (this.#timer === undefined) {
      this.#firstLook = this.#look()
      this.#timer = setInterval(() => void this.#look(), this.#options.everyMs ?? LOOK_MS).unref()
    }
    void this.#firstLook.then(() => {
      if (this.#watchers.has(watcher)) watcher.follows()
    })
    return () => this.#forget(watcher)
  }

  /** Ends all streams. */
  close(): void {
    for (const watcher of this.#watchers.holders) watcher.end()
    for (const watcher of this.#watchers.holders) this.#forget(watcher)
  }

  #forget(watcher: FollowingReader): void {
    this.#watchers.leave(watcher)
    if (this.#watchers.isEmpty) this.#rest()
  }

  #rest(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#seen.clear()
  }

  /** Polls every node that has answered the previous poll. */
  #look(): Promise<unknown> {
    const nodes = this.#options.nodes()
    for (const id of this.#seen.keys()) if (!nodes.some((node) => node.id === id)) this.#seen.delete(id)
    return Promise.all(nodes.filter(({ id }) => !this.#asking.has(id)).map((node) => this.#lookAt(node)))
  }

  async #lookAt({ id, ask }: ExchangeNode): Promise<void> {
    this.#asking.add(id)
    try {
      const before = this.#seen.get(id)
      const news = await ask({ kind: 'news', seen: before ?? {}, isFirst: before === undefined })
      if (this.#watchers.isEmpty) return
      this.#seen.set(id, Object.fromEntries(Object.entries(news).map(([plane, { next }]) => [plane, next])))
      const all = Object.values(news)
      const exchanges = all.flatMap((each) => each.exchanges).toSorted((a, b) => (a.id < b.id ? -1 : 1))
      const missed = all.reduce((sum, each) => sum + each.missed, 0)
      if (exchanges.length > 0 || missed > 0) this.#tell(exchanges, missed)
    } catch (err) {
      this.#options.log.debug({ err, node: id }, 'cannot fetch new exchanges from a node')
    } finally {
      this.#asking.delete(id)
    }
  }

  #tell(exchanges: readonly SeenExchange[], missed: number): void {
    for (const { principal, filter, saw } of this.#watchers.holders) {
      const who = principal()
      const shown = exchanges.filter((exchange) => maySee(who, exchange) && passes(exchange, filter))
      if (shown.length > 0 || missed > 0) saw(shown, missed)
    }
  }
}

function passes(exchange: SeenExchange, { edgeId, tunnelId, method, path, status, since }: ExchangeFilter): boolean {
  return (
    (edgeId === undefined || isThrough(edgeId, exchange)) &&
    (tunnelId === undefined || exchange.target === tunnelId) &&
    (method === undefined || exchange.method === method) &&
    (path === undefined || exchange.path.startsWith(path)) &&
    (status === undefined || exchange.status === status) &&
    (since === undefined || exchange.startedAt >= since)
  )
}
