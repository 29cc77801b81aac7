/** Where other planes reach the tunnels whose sessions this plane holds. */
import { rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { relay } from '../lib/bytes/relay.ts'
import type { Logger } from '../lib/log/log.ts'
import { MinuteLog } from '../lib/log/minute-log.ts'
import { type Dial, DialFault, type DialRequest } from '../model/dial.ts'
import type { Mux } from '../wire/mux.ts'
import type { WireStream } from '../wire/wire-stream.ts'
import { buildFault, parseRequest, REACHED, RELAY_TYPE, readPart } from './preamble.ts'
import { relaySession } from './relay-session.ts'

export interface RelayDoorOptions {
  /** Dials tunnels of this plane only: what comes through here is not relayed again. */
  readonly dial: Dial
  readonly log: Logger
  /** Instead of `PREAMBLE_MS`, for tests. */
  readonly preambleMs?: number
  /** See `relay`, for tests. */
  readonly lastBytesMs?: number
}

/** How long a stream may take to say what it is for, in milliseconds. */
const PREAMBLE_MS = 10_000

/** Connections at once: each other plane has one, and a few more that end. */
const MAX_CONNECTIONS = 4096

export class RelayDoor {
  readonly #dial: Dial
  readonly #log: Logger
  readonly #preambleMs: number
  readonly #lastBytes: Pick<RelayDoorOptions, 'lastBytesMs'>
  readonly #strange: MinuteLog<{ readonly reason: string }>
  readonly #server: Server
  readonly #sessions = new Set<Mux>()
  #streams = 0
  #closed: Promise<void> | undefined

  constructor({ dial, log, preambleMs = PREAMBLE_MS, lastBytesMs }: RelayDoorOptions) {
    this.#dial = dial
    this.#log = log
    this.#preambleMs = preambleMs
    this.#lastBytes = lastBytesMs === undefined ? {} : { lastBytesMs }
    this.#strange = new MinuteLog((fields, count) => log.warn({ ...fields, count }, 'relayed stream refused'))
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket))
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  /** Streams that are open or being opened. */
  get streams(): number {
    return this.#streams
  }

  /** Listens on a Unix socket, in a folder that only this user can enter. A socket left there by a dead process is removed. */
  async listen(path: string): Promise<void> {
    await rm(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(path, () => {
        this.#server.off('error', reject)
        this.#server.on('error', (err) => this.#log.warn({ err }, 'relay connection not accepted'))
        resolve()
      })
    })
  }

  /** Lets no new streams in; those that are open go on. */
  stop(): void {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  /** Breaks off the streams that are still open. */
  async close(): Promise<void> {
    this.stop()
    for (const session of this.#sessions) session.close()
    this.#strange.close()
    await this.#closed
  }

  #accept(socket: Socket): void {
    const session = relaySession(socket, {
      opens: false,
      onStream: (stream, type) => this.#onStream(stream, type),
      onClosed: (err) => {
        this.#sessions.delete(session)
        this.#log.debug({ err }, 'relay session of another plane closed')
      },
    })
    this.#sessions.add(session)
  }

  #onStream(stream: WireStream, type: number): void {
    if (type !== RELAY_TYPE) {
      this.#refuse(stream, 'a stream of an unknown type')
      return
    }
    this.#streams++
    let isRead = false
    let timer: NodeJS.Timeout | undefined
    readPart(stream, (bytes) => {
      isRead = true
      clearTimeout(timer)
      const request = bytes && parseRequest(bytes)
      if (request) void this.#open(stream, request)
      else {
        this.#streams--
        // Another plane may give up at any time.
        if (!stream.isClosed) this.#refuse(stream, 'a stream that does not begin with a request')
      }
    })
    // Nearly always it arrives as a whole. A reset makes `readPart` finish.
    if (!isRead) timer = setTimeout(() => stream.reset('stream_refused'), this.#preambleMs).unref()
  }

  async #open(stream: WireStream, request: DialRequest): Promise<void> {
    const tunnel = this.#closed
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
    relay(stream, tunnel, { ...this.#lastBytes, onDone: () => this.#streams-- })
  }

  async #dialled(request: DialRequest): ReturnType<Dial> {
    try {
      return await this.#dial(request)
    } catch (err) {
      this.#log.error({ err, tunnel: request.tunnelId }, 'dial of a relayed stream failed')
      return new DialFault('offline', 'the tunnel could not be dialled', { cause: err })
    }
  }

  #refuse(stream: WireStream, reason: string): void {
    this.#strange.note({ reason }, reason)
    stream.reset('protocol_error')
  }
}
