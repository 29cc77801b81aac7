/**
 * The caps of one door (D68): connections in all and from one source, and requests and TLS handshakes a second. At a cap
 * new ones are refused and open ones go on. Every refusal is counted; the log gets one line a minute.
 */
import type { Socket } from 'node:net'
import { TokenBucket } from '../limits/token-bucket.ts'
import type { Logger } from '../log/log.ts'
import { MinuteLog } from '../log/minute-log.ts'
import { sourceOf } from './source.ts'
import { Sources } from './sources.ts'

/** 0 means no limit. */
export interface CapLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerSource: number
  /** A second. */
  readonly maxRequestsPerSource: number
  /** A second. */
  readonly maxHandshakes: number
  /** A second. */
  readonly maxHandshakesPerSource: number
}

/** The setting of each cap. */
const settings = {
  maxConnections: 'max-connections',
  maxConnectionsPerSource: 'max-connections-per-source',
  maxRequestsPerSource: 'max-requests-per-source',
  maxHandshakes: 'max-handshakes',
  maxHandshakesPerSource: 'max-handshakes-per-source',
} as const satisfies Record<keyof CapLimits, string>

export type Cap = keyof typeof settings

export interface ConnectionCapsOptions {
  readonly limits: CapLimits
  /** Each door counts separately, so that a flood at one leaves the others open. */
  readonly door: 'visitors' | 'agents' | 'ssh' | 'api'
  readonly log: Logger
  /** Whether many visitors share this address, such as that of a reverse proxy; limits per source do not apply to it. */
  readonly isShared?: (ip: string) => boolean
  /** In milliseconds, of a clock that never goes back. */
  readonly now?: () => number
}

export class ConnectionCaps {
  readonly door: ConnectionCapsOptions['door']
  #limits: CapLimits
  readonly #now: () => number
  readonly #isShared: (ip: string) => boolean
  #sources: Sources | undefined
  #handshakes: TokenBucket | undefined
  readonly #refused = new Map<Cap, number>()
  readonly #logs: ReadonlyMap<Cap, MinuteLog<string>>
  #open = 0

  constructor({ limits, door, log, isShared = () => false, now = () => performance.now() }: ConnectionCapsOptions) {
    this.door = door
    this.#limits = limits
    this.#now = now
    this.#isShared = isShared
    this.use(limits)
    const caps = Object.keys(settings) as Cap[] // the keys of that very table
    this.#logs = new Map(
      caps.map((cap) => {
        const tell = (peer: string, refused: number): void => {
          const about = { door, setting: `--${settings[cap]}`, limit: this.#limits[cap] }
          log.warn({ ...about, peer, refused }, 'refused at a cap')
        }
        return [cap, new MinuteLog(tell)]
      }),
    )
  }

  /** Goes over to other limits. They hold for what comes from here on; what is open lives on. */
  use(limits: CapLimits): void {
    const { maxConnectionsPerSource, maxRequestsPerSource, maxHandshakes, maxHandshakesPerSource } = limits
    this.#limits = limits
    const rates = { requests: maxRequestsPerSource, handshakes: maxHandshakesPerSource }
    if (this.#sources) this.#sources.use(rates)
    else if (maxConnectionsPerSource + maxRequestsPerSource + maxHandshakesPerSource > 0) {
      this.#sources = new Sources(rates, { now: this.#now })
    }
    this.#handshakes = maxHandshakes > 0 ? new TokenBucket(maxHandshakes, this.#now()) : undefined
  }

  /** Connections that are open. */
  get open(): number {
    return this.#open
  }

  /** How often each cap has refused since the start, by the name of its setting. */
  get refusals(): readonly (readonly [setting: string, count: number])[] {
    return [...this.#logs.keys()].map((cap) => [settings[cap], this.#refused.get(cap) ?? 0])
  }

  /** Counts a connection until it closes; when there are too many, returns false and does not count it. */
  accept(socket: Socket): boolean {
    const { maxConnections } = this.#limits
    if (maxConnections > 0 && this.#open >= maxConnections) {
      return this.#refuse('maxConnections', socket.remoteAddress ?? '')
    }
    this.#open++
    socket.once('close', () => this.#open--)
    return true
  }

  /** Counts a connection for its source, once that is known; false when the source has too many. */
  admit(socket: Socket, ip: string): boolean {
    if (!this.#sources || this.#isShared(ip)) return true
    const { maxConnectionsPerSource } = this.#limits
    if (maxConnectionsPerSource > 0 && this.#sources.of(ip).open >= maxConnectionsPerSource) {
      return this.#refuse('maxConnectionsPerSource', ip)
    }
    if (socket.destroyed) return true
    const sources = this.#sources
    sources.enter(ip)
    socket.once('close', () => sources.leave(ip))
    return true
  }

  /** Whether a TLS handshake may begin. */
  shake(ip: string): boolean {
    const now = this.#now()
    // By source first, so that a source over its own limit does not use up the limit for all.
    const bucket = this.#isShared(ip) ? undefined : this.#sources?.of(ip).handshakes
    if (bucket && !bucket.take(now)) return this.#refuse('maxHandshakesPerSource', ip)
    if (this.#handshakes && !this.#handshakes.take(now)) return this.#refuse('maxHandshakes', ip)
    return true
  }

  /** For connections from `ip`: a function that tells whether one more request is allowed. Undefined without a limit. */
  requestsOf(ip: string): (() => boolean) | undefined {
    const bucket = this.#isShared(ip) ? undefined : this.#sources?.of(ip).requests
    return bucket && (() => bucket.take(this.#now()) || this.#refuse('maxRequestsPerSource', ip))
  }

  /** Logs refusals that no line has reported yet. */
  close(): void {
    for (const log of this.#logs.values()) log.close()
  }

  #refuse(cap: Cap, ip: string): false {
    this.#refused.set(cap, (this.#refused.get(cap) ?? 0) + 1)
    this.#logs.get(cap)?.note(ip === '' ? '' : sourceOf(ip))
    return false
  }
}
