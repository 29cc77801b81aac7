/** One unauthenticated connection: its time is limited, and its failure is reported once. */
import type { Socket } from 'node:net'
import type { Logger } from '../../lib/log/create-log.ts'
import type { Admission, Candidate } from './admission.ts'
import type { AgentPeer } from './listener-context.ts'
import type { ListenerLimits } from './tunnel-limits.ts'

interface TrialOptions {
  readonly socket: Socket
  readonly peer: AgentPeer
  readonly admission: Admission
  readonly limits: Pick<ListenerLimits, 'authenticationMs' | 'lateRefusalMs'>
  readonly log: Logger
  /** Called instead of logging a failure when the source fails too often. */
  readonly onNoisy: (ip: string) => void
}

export class PendingLogin implements Candidate {
  readonly peer: AgentPeer
  readonly #options: TrialOptions
  readonly #overdue: NodeJS.Timeout
  #isAnswered = false
  #isOver = false
  /** Its mistake so far. */
  #blame: string | undefined
  #whenOver: (() => void) | undefined

  constructor(options: TrialOptions) {
    this.peer = options.peer
    this.#options = options
    const { socket, limits } = options
    this.#overdue = setTimeout(() => {
      this.failed('it took too long to authenticate', { isFault: true })
      socket.destroy()
    }, limits.authenticationMs).unref()
    socket.once('close', () => {
      this.failed(this.#blame ?? 'the connection was closed', { isFault: this.#blame !== undefined })
      this.#end()
    })
  }

  /** Calls `done` once, when the trial is over: it has passed, or is closed; one listener only. */
  whenOver(done: () => void): void {
    this.#whenOver = done
  }

  /** Notes a mistake after which the connection may still pass; if it closes instead, that counts as a failure. */
  blame(reason: string): void {
    this.#blame = reason
  }

  /** The agent is authenticated. */
  passed(): void {
    this.#end()
  }

  /** Closes the connection without waiting any longer. */
  drop(): void {
    this.#options.socket.destroy()
  }

  /**
   * The agent sent something invalid or was refused. `isFault` is false when the agent may not be at fault. Returns how long to
   * delay the answer, in milliseconds.
   */
  failed(reason: string, { isFault }: { readonly isFault: boolean }): number {
    if (this.#isAnswered || this.#isOver) return 0
    this.#isAnswered = true
    const { admission, log, limits, onNoisy } = this.#options
    const { ip } = this.peer
    const isNoisy = isFault && admission.fail(ip)
    // Connections that send nothing, such as port scans and health checks, are logged only at debug level.
    if (isNoisy) onNoisy(ip)
    else log[isFault ? 'info' : 'debug']({ peer: ip, reason }, 'agent connection refused')
    return isNoisy ? limits.lateRefusalMs : 0
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    clearTimeout(this.#overdue)
    this.#options.admission.leave(this)
    this.#whenOver?.()
  }
}
