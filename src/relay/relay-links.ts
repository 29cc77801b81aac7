/** Reaches tunnels whose sessions other planes hold: one session to each plane, opened when it is first needed. */
import { connect } from 'node:net'
import type { ByteStream } from '../lib/bytes/byte-stream.ts'
import type { Logger } from '../lib/log/log.ts'
import { MinuteLog } from '../lib/log/minute-log.ts'
import { DialFault, type DialRequest } from '../model/dial.ts'
import type { Mux } from '../wire/mux.ts'
import { WireError } from '../wire/wire-error.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { buildPreamble, parseFault, readPart } from './preamble.ts'
import { relaySession } from './relay-session.ts'

export interface RelayLinksOptions {
  /** The socket at which a plane's `RelayDoor` listens; undefined for a plane that is not known. */
  readonly pathOf: (planeId: string) => string | undefined
  readonly log: Logger
  /** Instead of `ANSWER_MS`, for tests. */
  readonly answerMs?: number
  /** Instead of `SESSION_STREAMS`, for tests. */
  readonly sessionStreams?: number
}

/** How long the other plane may take to answer, in milliseconds. Dialling some agents may wait for a second there. */
const ANSWER_MS = 5000

/** Streams opened in the life of a session before another takes over: a quarter of the ids that it has. */
const SESSION_STREAMS = 2 ** 28

/** How often to check whether a session that takes no new streams has lost its last, in milliseconds. */
const RETIRED_LOOK_MS = 1000

interface Link {
  readonly session: Mux
  /** Streams opened so far. */
  opened: number
}

export class RelayLinks {
  readonly #pathOf: RelayLinksOptions['pathOf']
  readonly #log: Logger
  readonly #answerMs: number
  readonly #sessionStreams: number
  readonly #lost: MinuteLog<{ readonly plane: string; readonly err: Error }>
  readonly #links = new Map<string, Link>()
  /** Sessions that take no new streams and still have open ones. */
  readonly #retired = new Set<Mux>()
  #retiredTimer: NodeJS.Timeout | undefined
  #dialled = 0
  #isClosed = false

  constructor({ pathOf, log, answerMs = ANSWER_MS, sessionStreams = SESSION_STREAMS }: RelayLinksOptions) {
    this.#pathOf = pathOf
    this.#log = log
    this.#answerMs = answerMs
    this.#sessionStreams = sessionStreams
    this.#lost = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'relay session to another plane lost'))
  }

  /** How often a tunnel at another plane was to be reached. */
  get dialled(): number {
    return this.#dialled
  }

  /** Reaches a tunnel at another plane. Never rejects. */
  dial(planeId: string, request: DialRequest): Promise<ByteStream | DialFault> {
    this.#dialled++
    const head = buildPreamble(request)
    if (!head) return Promise.resolve(new DialFault('refused', 'the request is too long to be relayed'))
    const link = this.#linkTo(planeId)
    if (!link) return Promise.resolve(new DialFault('offline', `the plane ${planeId} is not known`))
    const stream = link.session.open(head)
    if (stream instanceof WireError) {
      const reason = stream.code === 'too_many_streams' ? 'busy' : 'offline'
      return Promise.resolve(new DialFault(reason, `no stream to the plane ${planeId}`, { cause: stream }))
    }
    link.opened++
    return this.#answer(planeId, stream)
  }

  /** The plane is gone: its session takes no new streams, and closes with the last that is open. */
  forget(planeId: string): void {
    const link = this.#links.get(planeId)
    if (!link) return
    this.#links.delete(planeId)
    this.#retire(link.session)
  }

  /** Breaks off what is open. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#retiredTimer)
    for (const { session } of [...this.#links.values()]) session.close()
    for (const session of [...this.#retired]) session.close()
    this.#lost.close()
  }

  #answer(planeId: string, stream: WireStream): Promise<ByteStream | DialFault> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        resolve(new DialFault('timeout', `the plane ${planeId} did not answer in ${this.#answerMs} ms`))
        stream.reset()
      }, this.#answerMs)
      readPart(stream, (bytes) => {
        clearTimeout(timer)
        if (bytes?.length === 0) {
          resolve(stream)
          return
        }
        resolve((bytes && parseFault(bytes)) ?? new DialFault('offline', `the plane ${planeId} cannot be reached`))
        if (bytes) stream.close()
        else stream.reset()
      })
    })
  }

  #linkTo(planeId: string): Link | undefined {
    const found = this.#links.get(planeId)
    if (found && found.opened < this.#sessionStreams) return found
    if (this.#isClosed) return undefined
    const path = this.#pathOf(planeId)
    if (path === undefined) return undefined
    this.forget(planeId)
    // What is written before the connection is there waits for it.
    const session = relaySession(connect({ path, allowHalfOpen: true }), {
      opens: true,
      onStream: (stream) => stream.reset(),
      onClosed: (err) => {
        this.#retired.delete(session)
        if (this.#links.get(planeId)?.session === session) this.#links.delete(planeId)
        if (err) this.#lost.note({ plane: planeId, err }, planeId)
      },
    })
    const link = { session, opened: 0 }
    this.#links.set(planeId, link)
    this.#log.debug({ plane: planeId }, 'relay session to another plane opened')
    return link
  }

  #retire(session: Mux): void {
    if (session.size === 0) {
      session.close()
      return
    }
    this.#retired.add(session)
    this.#retiredTimer ??= setInterval(() => this.#closeEmpty(), RETIRED_LOOK_MS).unref()
  }

  #closeEmpty(): void {
    for (const session of [...this.#retired]) if (session.size === 0) session.close()
    if (this.#retired.size > 0) return
    clearInterval(this.#retiredTimer)
    this.#retiredTimer = undefined
  }
}
