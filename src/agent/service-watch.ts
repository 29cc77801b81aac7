/** Tracks which services are down, and notices when they are back, since people watch the agent while they start them. */
import { type ServiceDial, ServiceFault } from './dial-upstream.ts'
import type { Timers } from './timers.ts'
import type { AgentTunnel } from './tunnel.ts'

/** Shortest and longest time between two attempts to reach a service that is down, in milliseconds. */
const SOON_MS = 1000
const SELDOM_MS = 30_000

/** The wait before the next attempt, as a share of the time that the service has been down. */
const SHARE = 0.1

interface ServiceWatchOptions {
  readonly timers: Timers
  /** A service went down, or is down for another reason than the one reported before. */
  readonly onDown: (tunnel: AgentTunnel, reason: string) => void
  readonly onUp: (tunnel: AgentTunnel) => void
}

interface Down {
  reason: string
  readonly since: number
  readonly request: Pick<ServiceDial, 'isPassthrough'>
  cancel: () => void
}

export class ServiceWatch {
  readonly #options: ServiceWatchOptions
  readonly #down = new Map<AgentTunnel, Down>()

  constructor(options: ServiceWatchOptions) {
    this.#options = options
  }

  /** A visitor's connection to the service failed. */
  failed(tunnel: AgentTunnel, { message }: ServiceFault, { isPassthrough }: ServiceDial): void {
    const known = this.#down.get(tunnel)
    if (known?.reason === message) return
    if (known) known.reason = message
    else {
      const down = { reason: message, since: this.#options.timers.now(), request: { isPassthrough }, cancel() {} }
      this.#down.set(tunnel, down)
      this.#later(tunnel, down)
    }
    this.#options.onDown(tunnel, message)
  }

  /** The service accepted a connection. */
  answered(tunnel: AgentTunnel): void {
    if (this.forget(tunnel)) this.#options.onUp(tunnel)
  }

  /** Stops watching the service of a tunnel; true when it was down. */
  forget(tunnel: AgentTunnel): boolean {
    this.#down.get(tunnel)?.cancel()
    return this.#down.delete(tunnel)
  }

  #later(tunnel: AgentTunnel, down: Down): void {
    const { timers } = this.#options
    // The clock may have been set back.
    const share = Math.max(0, timers.now() - down.since) * SHARE
    down.cancel = timers.after(Math.min(SELDOM_MS, Math.max(SOON_MS, share)), () => this.#try(tunnel, down))
  }

  /** Connects as for a visitor, and closes the connection at once. */
  #try(tunnel: AgentTunnel, down: Down): void {
    const { target } = tunnel.plan
    if (!('dial' in target)) return
    down.cancel = target.dial(down.request, (result) => {
      if (result instanceof ServiceFault) {
        this.#later(tunnel, down)
        return
      }
      result.on('error', () => {}).destroy()
      this.answered(tunnel)
    })
  }
}
