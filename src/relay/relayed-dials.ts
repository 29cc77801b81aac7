/** Answers the streams that other planes open to reach tunnels here, at whichever door they come in. */
import type { Movable } from '../lib/bytes/cut-at-rest.ts'
import { relay } from '../lib/bytes/relay.ts'
import type { Logger } from '../lib/log/log.ts'
import { MinuteLog } from '../lib/log/minute-log.ts'
import { type Dial, DialFault, type DialRequest } from '../model/dial.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { buildFault, parseRequest, REACHED, readPart } from './preamble.ts'

export interface RelayedDialsOptions {
  /** Dials tunnels that may be reached from here without a further hop of this kind. */
  readonly dial: Dial
  readonly log: Logger
  /** Instead of `PREAMBLE_MS`, for tests. */
  readonly preambleMs?: number | undefined
  /** See `relay`, for tests. */
  readonly lastBytesMs?: number | undefined
}

/** How long a stream may take to say what it is for, in milliseconds. */
const PREAMBLE_MS = 10_000

/** Notes which tunnels somebody reaches. */
export interface ReachedTunnels {
  add(tunnelId: string): void
}

export class RelayedDials {
  readonly #dial: Dial
  readonly #log: Logger
  readonly #preambleMs: number
  readonly #lastBytes: { readonly lastBytesMs?: number }
  readonly #strange: MinuteLog<{ readonly reason: string }>
  readonly #open = new Set<Movable>()
  #streams = 0
  #accepted = 0
  #isStopped = false

  constructor({ dial, log, preambleMs = PREAMBLE_MS, lastBytesMs }: RelayedDialsOptions) {
    this.#dial = dial
    this.#log = log
    this.#preambleMs = preambleMs
    this.#lastBytes = lastBytesMs === undefined ? {} : { lastBytesMs }
    this.#strange = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'relayed stream refused'))
  }

  /** Streams that are open or being opened. */
  get streams(): number {
    return this.#streams
  }

  /** All that ever came. */
  get accepted(): number {
    return this.#accepted
  }

  /** Those of them that carry bytes. */
  get open(): Iterable<Movable> {
    return this.#open
  }

  /** Takes a stream that begins with a preamble. */
  accept(stream: WireStream, reached?: ReachedTunnels): void {
    this.#streams++
    this.#accepted++
    let isRead = false
    let timer: NodeJS.Timeout | undefined
    readPart(stream, (bytes) => {
      isRead = true
      clearTimeout(timer)
      const request = bytes && parseRequest(bytes)
      if (request) void this.#answer(stream, request, reached)
      else {
        this.#streams--
        // Another plane may give up at any time.
        if (!stream.isClosed) this.refuse(stream, 'a stream that does not begin with a request')
      }
    })
    // Nearly always it arrives as a whole. A reset makes `readPart` finish.
    if (!isRead) timer = setTimeout(() => stream.reset('stream_refused'), this.#preambleMs).unref()
  }

  /** Resets a stream that is not as agreed between planes. */
  refuse(stream: WireStream, reason: string): void {
    this.#strange.note({ reason }, reason)
    stream.reset('protocol_error')
  }

  /** Dials no more; streams that are open go on. */
  stop(): void {
    this.#isStopped = true
  }

  /** Writes what is yet to be logged. */
  close(): void {
    this.stop()
    this.#strange.close()
  }

  async #answer(stream: WireStream, request: DialRequest, reached: ReachedTunnels | undefined): Promise<void> {
    // Before it is: it may go meanwhile.
    reached?.add(request.tunnelId)
    const tunnel = this.#isStopped
      ? new DialFault('offline', 'the plane of the tunnel is stopping')
      : await this.#dialled(request)
    if (tunnel instanceof DialFault) {
      stream.write(buildFault(tunnel))
      stream.close()
      this.#streams--
      return
    }
    stream.write(REACHED)
    // When the other plane gave up meanwhile, this resets the tunnel's stream.
    let isDone = false
    const onDone = (): void => {
      isDone = true
      this.#streams--
      this.#open.delete(carried)
    }
    const carried: Movable = relay(stream, tunnel, { ...this.#lastBytes, onDone })
    if (!isDone) this.#open.add(carried)
  }

  async #dialled(request: DialRequest): ReturnType<Dial> {
    try {
      return await this.#dial(request)
    } catch (err) {
      this.#log.error({ err, tunnel: request.tunnelId }, 'dial of a relayed stream failed')
      return new DialFault('offline', 'the tunnel could not be dialled', { cause: err })
    }
  }
}
