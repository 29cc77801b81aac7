/** Answers the streams that other planes open to reach tunnels here, whichever listener they use. */
import type { Movable } from '../../lib/bytes/close-when-idle.ts'
import { relay } from '../../lib/bytes/relay.ts'
import type { Logger } from '../../lib/log/create-log.ts'
import { MinuteLog } from '../../lib/log/minute-log.ts'
import { buildFault, parseRequest, REACHED, readPart } from '../../link/planes/dial-header.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { type Dial, DialFault, type DialRequest } from '../../model/dial.ts'

export interface RelayedDialsOptions {
  /** Dials tunnels of this plane or node; never relays further. */
  readonly dial: Dial
  readonly log: Logger
  /** Instead of `PREAMBLE_MS`, for tests. */
  readonly preambleMs?: number | undefined
  /** See `relay`, for tests. */
  readonly lastBytesMs?: number | undefined
}

/** How long a stream may take to send its preamble, in milliseconds. */
const PREAMBLE_MS = 10_000

/** Notes which tunnels the other end reaches. */
interface ReachedTunnels {
  add(tunnelId: string): void
}

export class RelayedDials {
  readonly #options: RelayedDialsOptions
  readonly #lastBytes: { readonly lastBytesMs?: number }
  readonly #strange: MinuteLog<{ readonly reason: string }>
  /** Streams that carry bytes now. */
  readonly open = new Set<Movable>()
  /** Streams that are open or being opened. */
  streams = 0
  /** Streams so far. */
  accepted = 0
  #isStopped = false

  constructor(options: RelayedDialsOptions) {
    const { log, lastBytesMs } = options
    this.#options = options
    this.#lastBytes = lastBytesMs === undefined ? {} : { lastBytesMs }
    this.#strange = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'relayed stream refused'))
  }

  /** Takes a stream that begins with a preamble. */
  accept(stream: WireStream, reached?: ReachedTunnels): void {
    this.streams++
    this.accepted++
    let isRead = false
    let timer: NodeJS.Timeout | undefined
    readPart(stream, (bytes) => {
      isRead = true
      clearTimeout(timer)
      const request = bytes && parseRequest(bytes)
      if (request) void this.#answer(stream, request, reached)
      else {
        this.streams--
        // The other plane may give up at any time.
        if (!stream.isClosed) this.refuse(stream, 'stream does not begin with a valid request')
      }
    })
    // The preamble nearly always arrives at once, without need of a timer. A reset makes `readPart` finish.
    const { preambleMs = PREAMBLE_MS } = this.#options
    if (!isRead) timer = setTimeout(() => stream.reset('stream_refused'), preambleMs).unref()
  }

  /** Resets a stream that breaks the protocol between planes. */
  refuse(stream: WireStream, reason: string): void {
    this.#strange.note({ reason }, reason)
    stream.reset('protocol_error')
  }

  /** Dials no more; open streams go on. */
  stop(): void {
    this.#isStopped = true
  }

  /** Writes pending log lines. */
  close(): void {
    this.stop()
    this.#strange.close()
  }

  async #answer(stream: WireStream, request: DialRequest, reached: ReachedTunnels | undefined): Promise<void> {
    // Noted before the dial, since the tunnel may end during it.
    reached?.add(request.tunnelId)
    const tunnel = this.#isStopped
      ? new DialFault('offline', 'the plane of the tunnel is stopping')
      : await this.#dialled(request)
    if (tunnel instanceof DialFault) {
      stream.write(buildFault(tunnel))
      stream.close()
      this.streams--
      return
    }
    stream.write(REACHED)
    // If the other plane has given up meanwhile, this resets the tunnel's stream.
    let isDone = false
    const onDone = (): void => {
      isDone = true
      this.streams--
      this.open.delete(carried)
    }
    const carried: Movable = relay(stream, tunnel, { ...this.#lastBytes, onDone })
    if (!isDone) this.open.add(carried)
  }

  async #dialled(request: DialRequest): ReturnType<Dial> {
    try {
      return await this.#options.dial(request)
    } catch (err) {
      this.#options.log.error({ err, tunnel: request.tunnelId }, 'dial for another plane failed')
      return new DialFault('offline', 'the tunnel could not be dialled', { cause: err })
    }
  }
}
