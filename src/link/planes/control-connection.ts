/** Keeps a data plane connected to the control process, over a Unix socket whose path changes with each control process. */
import { connect, type Socket } from 'node:net'
import { socketChannel } from '../calls/plane-channel.ts'
import type { ControlLink } from './control-link.ts'

/** Where a control process that listens at this path for data planes also takes the calls of other nodes. */
export function callsPath(linkPath: string): string {
  return `${linkPath}.calls`
}

/** Pause between two tries, in milliseconds: the control process is starting, or about to be replaced. */
const RETRY_MS = 50

/** The longest pause, in milliseconds: it doubles while connections do not last, as with a process that refuses us. */
const MAX_RETRY_MS = 2000

/** After a connection that lasted this long, in milliseconds, the pause is short again. */
const GOOD_MS = 5000

export class ControlConnection {
  readonly #link: ControlLink
  #path: string
  #socket: Socket | undefined
  #retry: NodeJS.Timeout | undefined
  #retryMs = RETRY_MS
  #isClosed = false

  constructor(link: ControlLink, path: string) {
    this.#link = link
    this.#path = path
    this.#connect()
  }

  /** The control process listens at this path from now on. */
  moveTo(path: string): void {
    if (path === this.#path && this.#socket) return
    this.#path = path
    this.#retryMs = RETRY_MS
    this.#connect()
  }

  /** Opens a further connection, for the calls of other nodes. */
  openCalls(): Socket {
    return connect({ path: callsPath(this.#path) })
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#retry)
    this.#link.close()
  }

  #connect(): void {
    clearTimeout(this.#retry)
    let connectedAt = Number.POSITIVE_INFINITY
    const socket = connect({ path: this.#path })
    this.#socket = socket
    socket.on('error', () => {})
    socket.once('connect', () => {
      connectedAt = performance.now()
      if (this.#socket === socket) void this.#link.use(socketChannel(socket))
      else socket.destroy()
    })
    socket.once('close', () => {
      if (this.#socket !== socket) return
      this.#socket = undefined
      if (this.#isClosed) return
      const lastedMs = performance.now() - connectedAt
      if (lastedMs > GOOD_MS) this.#retryMs = RETRY_MS
      this.#retry = setTimeout(() => this.#connect(), this.#retryMs)
      // Only connections that were accepted lengthen the pause: while the control process starts, nobody listens, and trying
      // again costs nothing.
      if (lastedMs >= 0) this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS)
    })
  }
}
