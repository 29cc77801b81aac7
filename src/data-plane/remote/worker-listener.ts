/** The listener where other planes of this node reach the tunnels whose sessions this plane holds, and call this plane. */
import { rm } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { RELAY_TYPE, WORKER_CALLS_TYPE } from '../../link/planes/dial-header.ts'
import { relaySession } from '../../link/planes/relay-session.ts'
import type { Mux } from '../../link/wire/mux.ts'
import type { WireStream } from '../../link/wire/wire-stream.ts'
import { RelayedDials, type RelayedDialsOptions } from './relayed-dials.ts'

/** `dial` reaches tunnels of this plane only: what comes through here is not relayed again. */
interface WorkerListenerOptions extends RelayedDialsOptions {
  /** Takes the stream with the calls of another plane. */
  readonly answer: (stream: WireStream) => void
}

/** Most connections at once: each other plane has one, and a few more that are ending. */
const MAX_CONNECTIONS = 4096

export class WorkerListener {
  /** The streams that other planes open here. */
  readonly dials: RelayedDials
  readonly #options: WorkerListenerOptions
  readonly #server: Server
  readonly #sessions = new Set<Mux>()
  #closed: Promise<void> | undefined

  constructor(options: WorkerListenerOptions) {
    this.dials = new RelayedDials(options)
    this.#options = options
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket))
    this.#server.maxConnections = MAX_CONNECTIONS
  }

  /** Listens on a Unix socket, in a folder that only this user can enter. A socket left there by a dead process is removed. */
  async listen(path: string): Promise<void> {
    await rm(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(path, () => {
        this.#server.off('error', reject)
        this.#server.on('error', (err) =>
          this.#options.log.warn({ err }, 'cannot accept relay connections from other planes'),
        )
        resolve()
      })
    })
  }

  /** Accepts no new streams; open ones go on. */
  stop(): void {
    this.dials.stop()
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
  }

  /** Closes the streams that are still open. */
  async close(): Promise<void> {
    this.stop()
    for (const session of this.#sessions) session.close()
    this.dials.close()
    await this.#closed
  }

  #accept(socket: Socket): void {
    const session = relaySession(socket, {
      opens: false,
      onStream: (stream, type) => {
        if (type === RELAY_TYPE) this.dials.accept(stream)
        else if (type === WORKER_CALLS_TYPE) this.#options.answer(stream)
        else this.dials.refuse(stream, 'unknown stream type')
      },
      onClosed: (err) => {
        this.#sessions.delete(session)
        this.#options.log.debug({ err }, 'relay session of another plane closed')
      },
    })
    this.#sessions.add(session)
  }
}
