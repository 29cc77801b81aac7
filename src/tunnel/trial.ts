/** One connection that has yet to prove who it is: it has little time, and what it does wrong is told once. */
import type { Socket } from 'node:net'
import type { Logger } from '../lib/log.ts'
import type { Admission } from './admission.ts'
import type { Outcome } from './connection.ts'
import type { Peer } from './door-context.ts'

export interface TrialOptions {
  readonly socket: Socket
  readonly peer: Peer
  readonly admission: Admission
  /** How long it may take, TLS handshake included, in milliseconds. */
  readonly limitMs: number
  readonly log: Logger
  /** It is not on trial any more: it passed, or it is gone. */
  readonly onOver: () => void
}

export class Trial implements Outcome {
  readonly peer: Peer
  readonly #options: TrialOptions
  readonly #overdue: NodeJS.Timeout
  #isTold = false
  #isOver = false

  constructor(options: TrialOptions) {
    this.peer = options.peer
    this.#options = options
    const { socket, limitMs } = options
    this.#overdue = setTimeout(() => {
      this.failed('it took too long to authenticate', { isFault: true })
      socket.destroy()
    }, limitMs)
    this.#overdue.unref()
    socket.once('close', () => {
      this.failed('the connection was closed', { isFault: false })
      this.#end()
    })
  }

  passed(): void {
    this.#end()
  }

  /** Ends it; the server does not wait for it any longer. */
  drop(): void {
    this.#options.socket.destroy()
  }

  failed(reason: string, { isFault }: { readonly isFault: boolean }): void {
    if (this.#isTold || this.#isOver) return
    this.#isTold = true
    const { admission, log } = this.#options
    const { ip } = this.peer
    if (isFault) admission.fail(ip)
    // Who only looks in, as port scanners and health checks do, is of no interest.
    log[isFault ? 'info' : 'debug']({ peer: ip, reason }, 'agent connection refused')
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#overdue)
    this.#options.admission.leave(this.peer.ip)
    this.#options.onOver()
  }
}
