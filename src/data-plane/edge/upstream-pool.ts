/** Keeps connections to upstreams between requests, so that most requests need no dial. */

import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { type Aged, AgeList } from '../../lib/limits/age-list.ts'
import type { Ends } from '../../lib/net/proxy-protocol.ts'
import { DialFault } from '../../model/dial.ts'
import type { UpstreamConnection } from '../requests/http-exchange.ts'
import type { DialTarget, Visit } from './dial.ts'
import { dialTarget } from './dial.ts'
import type { Http2Upstream } from './http2/http2-upstream.ts'

export interface UpstreamPoolOptions {
  /** Speaks HTTP/1.1 over a stream. It closes on its own after being free for long. */
  readonly http1: (stream: ByteStream) => UpstreamConnection
  /** Speaks HTTP/2 over a stream. It closes on its own after being idle for long. */
  readonly http2: (stream: ByteStream) => Http2Upstream
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number
  /** Whether connections to a target are worth keeping at the moment. */
  readonly mayKeep?: (targetKey: string) => boolean
  readonly maxKept?: number
  readonly maxKeptPerTarget?: number
}

/** Free connections in all; over that, the one that has been free longest is closed. */
const MAX_KEPT = 4096
/** Free connections to one target. */
const MAX_KEPT_PER_TARGET = 256
/**
 * How long a connection may have been free and still carry a request that must not be sent twice, in milliseconds. Upstreams wait
 * longer than this before they close: a request that crosses with the close is lost.
 */
const FRESH_MS = 1000

/** The open connections to one target; exists while there is one. */
interface Rack {
  readonly key: string
  /** The key of the target. */
  readonly target: string
  /** Free connections, most recently used last. */
  readonly free: Kept[]
  /** Open connections, free or not. */
  open: number
  /** Its connections must not be reused. */
  isRetired: boolean
}

interface Kept extends Aged<Kept> {
  readonly connection: UpstreamConnection
  readonly rack: Rack
  /** When it last became free. */
  freeSince: number
  /** It must not be reused. */
  isRetired: boolean
}

/** A shared connection, and the slot on it for the request that dialled. */
interface Opened {
  readonly shared: Http2Upstream
  readonly own: UpstreamConnection
}

export class UpstreamPool {
  readonly #options: UpstreamPoolOptions
  readonly #now: () => number
  readonly #racks = new Map<string, Rack>()
  /** Free connections, by when they became free. */
  readonly #free = new AgeList<Kept>()
  /** Open connections. */
  readonly #kept = new WeakMap<UpstreamConnection, Kept>()
  readonly #shared = new Map<string, Http2Upstream[]>()
  readonly #opening = new Map<string, Promise<Opened | DialFault>>()
  /** How often connections of a target were retired: a connection dialled meanwhile is not kept. */
  #retirements = 0
  #isClosed = false

  constructor(options: UpstreamPoolOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
  }

  /** How many connections wait for a request. */
  get size(): number {
    return this.#free.size
  }

  /** How many HTTP/1.1 targets have an open connection. */
  get targetCount(): number {
    return this.#racks.size
  }

  /** A connection that is ready. `mayRepeat`: the request can be sent again if this connection fails. */
  take(target: DialTarget, ends: Ends, { mayRepeat }: { mayRepeat: boolean }): UpstreamConnection | undefined {
    const key = keyOf(target, ends)
    if (target.httpVersion === 2) return this.#shared.get(key)?.find(hasRoom)?.connection()
    const kept = this.#racks.get(key)?.free.at(-1)
    if (!kept) return undefined
    if (!mayRepeat && this.#now() - kept.freeSince > FRESH_MS) return undefined
    this.#unfree(kept)
    return kept.connection
  }

  /** A new connection; never rejects. */
  async open(target: DialTarget, visit: Visit, ends: Ends): Promise<UpstreamConnection | DialFault> {
    const key = keyOf(target, ends)
    if (target.httpVersion === 2) return this.#openShared(key, target, visit, ends)
    const round = this.#retirements
    const stream = await dialTarget(target, visit, ends)
    if (stream instanceof DialFault) return stream
    const connection = this.#options.http1(stream)
    // The stream may have closed before it was handed over; there is no second event.
    if (connection.isClosed) return new DialFault('refused', 'the service closed the connection at once')
    this.#enter(connection, key, target.key)
    // The connection may use the former way.
    if (round !== this.#retirements) this.retire(connection)
    return connection
  }

  /** Takes back a connection that was not used. */
  give(connection: UpstreamConnection): void {
    const kept = this.#kept.get(connection)
    if (kept) this.#changed(kept)
  }

  /** Closes a connection after its current request, so that it is not reused. */
  retire(connection: UpstreamConnection): void {
    const kept = this.#kept.get(connection)
    if (kept) kept.isRetired = true
  }

  /** The target is reached another way from now on: closes its former connections, after their requests. */
  retireAll(targetKey: string): void {
    this.#retirements++
    for (const rack of [...this.#racks.values()]) {
      if (rack.target !== targetKey) continue
      rack.isRetired = true
      this.#racks.delete(rack.key)
      for (const kept of [...rack.free]) {
        this.#unfree(kept)
        kept.connection.close()
      }
    }
    for (const [key, all] of [...this.#shared]) {
      if (key === targetKey || key.startsWith(`${targetKey} `)) for (const shared of all) shared.close()
    }
  }

  /** Closes free connections and keeps none from here on; those in use may finish. */
  close(): void {
    this.#isClosed = true
    for (let kept = this.#free.oldest; kept; kept = this.#free.oldest) {
      this.#unfree(kept)
      kept.connection.close()
    }
    for (const shared of [...this.#shared.values()].flat()) shared.close()
  }

  #enter(connection: UpstreamConnection, key: string, target: string): void {
    let rack = this.#racks.get(key)
    if (!rack) {
      rack = { key, target, free: [], open: 0, isRetired: false }
      this.#racks.set(key, rack)
    }
    rack.open++
    const kept: Kept = { connection, rack, freeSince: 0, isRetired: false, older: undefined, newer: undefined }
    this.#kept.set(connection, kept)
    connection.onChange = () => this.#changed(kept)
  }

  #changed(kept: Kept): void {
    const { connection } = kept
    if (connection.isClosed) this.#leave(kept)
    else if (connection.isFree && !this.#free.has(kept)) this.#keep(kept)
  }

  #keep(kept: Kept): void {
    const { maxKept = MAX_KEPT, maxKeptPerTarget = MAX_KEPT_PER_TARGET, mayKeep } = this.#options
    const { free, target, isRetired } = kept.rack
    const isWanted = !this.#isClosed && !isRetired && !kept.isRetired && mayKeep?.(target) !== false
    if (!isWanted || free.length >= maxKeptPerTarget) {
      kept.connection.close()
      return
    }
    kept.freeSince = this.#now()
    free.push(kept)
    this.#free.add(kept)
    if (this.#free.size > maxKept) this.#free.oldest?.connection.close()
  }

  #unfree(kept: Kept): void {
    if (!this.#free.delete(kept)) return
    const { free } = kept.rack
    if (free.at(-1) === kept) free.pop()
    else free.splice(free.indexOf(kept), 1)
  }

  #leave(kept: Kept): void {
    const { connection, rack } = kept
    if (!this.#kept.delete(connection)) return
    this.#unfree(kept)
    if (--rack.open === 0 && !rack.isRetired) this.#racks.delete(rack.key)
  }

  /** One dial serves all requests that wait for the same target, as far as there is room. */
  async #openShared(
    key: string,
    target: DialTarget,
    visit: Visit,
    ends: Ends,
  ): Promise<UpstreamConnection | DialFault> {
    for (;;) {
      const opening = this.#opening.get(key)
      if (!opening) break
      const opened = await opening
      if (opened instanceof DialFault) return opened
      // Taken at once, before the next waiter looks.
      if (opened.shared.hasRoom) return opened.shared.connection()
    }
    const opening = this.#dialShared(key, target, visit, ends)
    this.#opening.set(key, opening)
    const opened = await opening
    return opened instanceof DialFault ? opened : opened.own
  }

  async #dialShared(key: string, target: DialTarget, visit: Visit, ends: Ends): Promise<Opened | DialFault> {
    try {
      const round = this.#retirements
      const stream = await dialTarget(target, visit, ends)
      if (stream instanceof DialFault) return stream
      const shared = this.#options.http2(stream)
      await shared.ready
      if (round !== this.#retirements) {
        // The connection may use the former way, and would be shared for long.
        shared.close()
        return await this.#dialShared(key, target, visit, ends)
      }
      // A connection that is not shared may still be used by those who wait, and closes when idle.
      if (!this.#isClosed && !shared.isClosed) this.#share(key, shared)
      return { shared, own: shared.connection() }
    } finally {
      this.#opening.delete(key)
    }
  }

  #share(key: string, shared: Http2Upstream): void {
    const all = this.#shared.get(key) ?? []
    all.push(shared)
    this.#shared.set(key, all)
    shared.onClosed = () => {
      const rest = (this.#shared.get(key) ?? []).filter((each) => each !== shared)
      if (rest.length > 0) this.#shared.set(key, rest)
      else this.#shared.delete(key)
    }
  }
}

/** a connection that begins with a PROXY header serves one visitor's connection only. */
function keyOf(target: DialTarget, { ip, port, serverIp, serverPort }: Ends): string {
  const { key, reuseKey = key, proxyHeader } = target
  return proxyHeader === 0 ? reuseKey : `${reuseKey} v${proxyHeader} ${ip} ${port} ${serverIp} ${serverPort}`
}

function hasRoom(shared: Http2Upstream): boolean {
  return shared.hasRoom
}
