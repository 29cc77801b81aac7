/** The sessions to the other planes of this node, each opened when it is first needed. */
import { connect } from 'node:net'
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { buildPreamble } from '../../link/planes/dial-header.ts'
import { LinkTable } from '../../link/planes/link-table.ts'
import { RelayLink } from '../../link/planes/relay-link.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import { DialFault, type DialRequest } from '../../model/dial.ts'

interface RelayLinksOptions {
  /** The path of the socket on which a plane's `WorkerListener` listens; undefined for an unknown plane. */
  readonly pathOf: (planeId: string) => string | undefined
  readonly log: Logger
  /** Instead of `ANSWER_MS`, for tests. */
  readonly answerMs?: number
  /** See `RelayLink`, for tests. */
  readonly sessionStreams?: number
}

/** How long the other plane may take to answer, in milliseconds. Dialling some agents may wait for a second there. */
const ANSWER_MS = 5000

/** A session carries the dials of tunnels whose agents are connected at the other plane, and the calls of this plane. */
export class RelayLinks {
  readonly #options: RelayLinksOptions
  readonly #lost: MinuteLog<{ readonly plane: string; readonly err: Error }>
  readonly #links = new LinkTable()
  /** Dials of tunnels at other planes. */
  dialled = 0
  #isClosed = false

  constructor(options: RelayLinksOptions) {
    const { log } = options
    this.#options = options
    this.#lost = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'relay session to another plane lost'))
  }

  /** Dials a tunnel at another plane. Never rejects. */
  dial(planeId: string, request: DialRequest): Promise<ByteStream | DialFault> {
    this.dialled++
    const head = buildPreamble(request)
    if (!head) return Promise.resolve(new DialFault('refused', 'the request is too long to be relayed'))
    const link = this.#linkTo(planeId)
    if (!link) return Promise.resolve(new DialFault('offline', `the plane ${planeId} is not known`))
    return link.dial(head, { withinMs: this.#options.answerMs ?? ANSWER_MS })
  }

  /** Opens a channel for calls to another plane; undefined when it is not known. */
  calls(planeId: string): ReturnType<RelayLink['calls']> {
    return this.#linkTo(planeId)?.calls()
  }

  /** Forgets a plane that is gone: its session takes no new streams, and closes with its last open stream. */
  forget(planeId: string): void {
    this.#links.retire(planeId)
  }

  /** Closes all sessions and their open streams. */
  close(): void {
    this.#isClosed = true
    this.#links.close()
    this.#lost.close()
  }

  #linkTo(planeId: string): RelayLink | undefined {
    const known = this.#links.to(planeId)
    if (known || this.#isClosed) return known
    const { pathOf, log, sessionStreams } = this.#options
    const path = pathOf(planeId)
    if (path === undefined) return undefined
    // Streams opened before the socket is connected wait for it.
    const session = relaySession(connect({ path, allowHalfOpen: true }), {
      opens: true,
      onStream: (stream) => stream.reset(),
      onClosed: (err) => {
        this.#links.remove(planeId, link)
        if (err && link.wasDialled) this.#lost.note({ plane: planeId, err }, planeId)
      },
    })
    const name = `the plane ${planeId}`
    const link = new RelayLink({ session, name, lostReason: 'offline', sessionStreams })
    this.#links.add(planeId, link)
    log.debug({ plane: planeId }, 'relay session to another plane opened')
    return link
  }
}
