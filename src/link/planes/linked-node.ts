/** The links to one other node, at most one to each of its planes. */
import { setTimeout as pause } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { Logger } from '../../lib/log/create-log.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { streamTypes } from '../wire/stream-types.ts'
import { type ConnectNodeOptions, connectNode } from './connect-node.ts'
import { LEAVE_TYPE } from './dial-header.ts'
import { LinkKeepalive } from './link-keepalive.ts'
import { LinkTable } from './link-table.ts'
import { CALL_TYPE, NodeCalls } from './node-calls.ts'
import { readGone } from './reached-tunnels.ts'
import { RelayLink } from './relay-link.ts'
import { relaySession } from './relay-session.ts'

export interface LinkedNodeOptions extends Pick<ConnectNodeOptions, 'identity' | 'nodeId'> {
  readonly addressOf: (nodeId: string) => ConnectNodeOptions['address'] | undefined
  /** Called with the ids of tunnels that were reached there and are gone. */
  readonly onGone?: ((tunnelIds: readonly string[]) => void) | undefined
  readonly log: Logger
  /** How long a connection may take, in milliseconds. */
  readonly connectMs: number
  /** Instead of the limits below, for tests. */
  readonly retryMs?: number | undefined
  readonly othersMs?: number | undefined
  readonly idleMs?: number | undefined
  /** See `LinkKeepalive`, for tests. */
  readonly lookMs?: number | undefined
}

/** Pause after a failed connection before the next try, in milliseconds. */
const RETRY_MS = 100

/** How long a dial waits for a connection that another dial has begun to a node that failed before, in milliseconds. */
const OTHERS_MS = 250

/** How long a link may be without streams, in milliseconds. */
const IDLE_MS = 10 * 60_000

/** Most links to planes of one node; the oldest makes room for a new one. */
const MAX_LINKS = 64

/**
 * Connections tried for each known plane of a node in order to reach one that has no link. Among four planes, 24 tries reach
 * a given one in 999 of 1000 cases.
 */
const TRIES_PER_PLANE = 6

/**
 * The pause before each further try while dials still ask for the plane, in milliseconds. It is short at first, since chance
 * probably missed the plane, and then half as long again each time, since the plane may be gone.
 */
const SEEK_SOONEST_MS = 200
const SEEK_LATEST_MS = 30_000
const SEEK_GROWTH = 1.5

/** Most planes without a link that are remembered. */
const MAX_SOUGHT = 256

interface Search {
  tries: number
  triedAt: number
  pauseMs: number
}

/**
 * The planes of a node share one address, and the system chooses which of them a connection reaches. The certificate of the other
 * end says which plane that was. Connections are tried one at a time.
 */
export class LinkedNode {
  readonly #options: LinkedNodeOptions
  readonly #book = new LinkTable()
  readonly #sought = new Map<string, Search>()
  readonly #given = new AbortController()
  readonly #calls: NodeCalls
  readonly #unreached: MinuteLog<{ readonly node: string; readonly err: unknown }>
  readonly #lost: MinuteLog<{ readonly node: string; readonly plane: string; readonly err: Error | undefined }>
  #connecting: Promise<RelayLink | Error> | undefined
  #failure: { readonly at: number; readonly error: Error } | undefined

  constructor(options: LinkedNodeOptions) {
    this.#options = options
    const { log, onGone } = options
    this.#calls = new NodeCalls({
      answer: async (_from, value) => {
        const gone = readGone(value)
        if (!gone) throw new Error('unknown kind of message')
        onGone?.(gone)
      },
      log,
    })
    this.#unreached = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'cannot reach another node'))
    this.#lost = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'link to another node lost'))
  }

  /** Number of the node's planes that have a link. */
  get links(): number {
    return this.#book.size
  }

  /** Open streams on all links to the node. */
  get streams(): number {
    return this.#book.streams
  }

  /**
   * Gives the link to a plane; else one to any plane of the node, while the right one is sought; else a new one, as soon as
   * it is made. Undefined means any plane. Gives an error when the node cannot be reached. Never rejects.
   */
  reach(planeId: string | undefined): RelayLink | Promise<RelayLink | Error> | Error {
    const right = planeId === undefined ? undefined : this.#book.to(planeId)
    const link = right ?? this.#book.leastBusy()
    if (link && !right && planeId !== undefined) this.#seek(planeId)
    return link ?? this.#reachAnew()
  }

  /** The links take no new streams, and each closes with its last open stream. */
  retire(): void {
    this.#given.abort()
    this.#book.retireAll()
    this.#closeLogs()
  }

  /** Closes all links and their open streams. */
  close(): void {
    this.#given.abort()
    this.#book.close()
    this.#closeLogs()
  }

  #closeLogs(): void {
    this.#unreached.close()
    this.#lost.close()
    this.#calls.close()
  }

  /**
   * Keeps a node that failed from costing visitors much time. Now and then a visitor's dial tries to connect, and visitors who
   * come meanwhile wait a moment for that.
   */
  #reachAnew(): Promise<RelayLink | Error> | Error {
    const { retryMs = RETRY_MS, othersMs = OTHERS_MS } = this.#options
    const failure = this.#failure
    if (!failure) return this.#connect()
    if (this.#connecting) return Promise.race([this.#connecting, pause(othersMs, failure.error, { ref: false })])
    return performance.now() - failure.at < retryMs ? failure.error : this.#connect()
  }

  /** Tries to connect to a plane in the background. */
  #seek(planeId: string): void {
    if (this.#connecting) return
    if (!this.#sought.has(planeId) && this.#sought.size >= MAX_SOUGHT) this.#sought.clear()
    const search = this.#sought.get(planeId) ?? { tries: 0, triedAt: 0, pauseMs: SEEK_SOONEST_MS }
    this.#sought.set(planeId, search)
    const known = this.#book.size + this.#sought.size
    const now = performance.now()
    if (search.tries >= TRIES_PER_PLANE * known) {
      if (now - search.triedAt < search.pauseMs) return
      search.pauseMs = Math.min(search.pauseMs * SEEK_GROWTH, SEEK_LATEST_MS)
    }
    search.tries++
    search.triedAt = now
    void this.#connect()
  }

  #connect(): Promise<RelayLink | Error> {
    this.#connecting ??= this.#tryOnce().finally(() => {
      this.#connecting = undefined
    })
    return this.#connecting
  }

  async #tryOnce(): Promise<RelayLink | Error> {
    const { identity, nodeId, addressOf, connectMs } = this.#options
    const address = addressOf(nodeId)
    const { signal } = this.#given
    if (!address || signal.aborted) return this.#failed(new Error(`the node ${nodeId} is not known`))
    try {
      const { socket, peer } = await connectNode({ identity, nodeId, address, withinMs: connectMs, signal })
      if (!signal.aborted) return this.#use(socket, peer.planeId)
      socket.destroy()
      return this.#failed(new Error(`the node ${nodeId} is not known`))
    } catch (cause) {
      return this.#failed(new Error(`the node ${nodeId} cannot be reached`, { cause }))
    }
  }

  #failed(error: Error): Error {
    this.#failure = { at: performance.now(), error }
    const { nodeId } = this.#options
    if (!this.#given.signal.aborted) this.#unreached.note({ node: nodeId, err: error })
    return error
  }

  #use(socket: TLSSocket, planeId: string): RelayLink {
    this.#failure = undefined
    this.#sought.delete(planeId)
    const known = this.#book.to(planeId)
    // A link with streams is known to live, and is kept; one without may have died unnoticed, and is replaced.
    if (known && known.streams > 0) {
      socket.destroy()
      return known
    }
    const { nodeId, log, idleMs = IDLE_MS, lookMs } = this.#options
    const fields = { node: nodeId, plane: planeId }
    const session = relaySession(socket, {
      opens: true,
      isFar: true,
      onStream: (stream, type) => {
        if (type === streamTypes.heartbeat) pulse.answer(stream)
        else if (type === LEAVE_TYPE) {
          stream.close()
          if (this.#book.to(planeId) === link) this.#book.retire(planeId)
        } else if (type === CALL_TYPE) this.#calls.accept(stream, { nodeId, planeId })
        else stream.reset()
      },
      onClosed: (err) => {
        pulse.stop()
        this.#book.remove(planeId, link)
        // The other end verifies us after we have verified it; when it refuses us, it closes without a word.
        if (err && session.bytesIn === 0)
          this.#failed(new Error(`node ${nodeId} refused the connection of this node`, { cause: err }))
        else if (err) this.#lost.note({ ...fields, err }, planeId)
      },
    })
    const pulse = new LinkKeepalive(session, {
      idleMs,
      lookMs,
      onIdle: () => session.close(),
      onDead: ({ wasInUse }) => {
        const err = new Error(`the node ${nodeId} has fallen silent`)
        this.#lost.note({ ...fields, err }, planeId)
        // Visitors who used the link have waited long enough: they do not wait for a new connection as well.
        if (wasInUse) this.#failure = { at: performance.now(), error: err }
        session.close('remote_gone_away')
      },
    })
    const link = new RelayLink({
      session,
      name: `the plane ${planeId} of the node ${nodeId}`,
      lostReason: 'unreachable',
      pulse,
    })
    if (!known && this.#book.size >= MAX_LINKS) this.#book.retire(this.#book.oldest ?? '')
    this.#book.add(planeId, link)
    log.debug(fields, 'link to another node opened')
    return link
  }
}
