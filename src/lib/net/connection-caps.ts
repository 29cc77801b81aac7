/** The caps of one listener (D68): connections in all and from one source, and requests and TLS handshakes per second. */
import type { Socket } from 'node:net'
import { TokenBucket } from '../limits/token-bucket.ts'
import type { Logger } from '../log/create-log.ts'
import { MinuteLog } from '../log/minute-log.ts'
import { type CapNews, RefusalNews } from './cap-news.ts'
import { clientKeyOf } from './client-key.ts'
import { ClientRates } from './client-rates.ts'

/** 0 means no limit. */
export interface CapLimits {
  readonly maxConnections: number
  readonly maxConnectionsPerSource: number
  /** Per second. */
  readonly maxRequestsPerSource: number
  /** Per second. */
  readonly maxHandshakes: number
  /** Per second. */
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

type Cap = keyof typeof settings

interface ConnectionCapsOptions {
  readonly limits: CapLimits
  /** Each listener counts separately, so that a flood at one leaves the others open. */
  readonly door: 'visitors' | 'agents' | 'ssh' | 'api'
  readonly log: Logger
  /** Whether many visitors share this address, such as that of a reverse proxy; limits per source do not apply to it. */
  readonly isShared?: (ip: string) => boolean
  /** In milliseconds, of a clock that never goes back. */
  readonly now?: () => number
}

/** What the same listener at another data plane has reported. */
interface OpenAtPeer {
  open: number
  readonly bySource: Map<string, number>
}

interface Sharing {
  /** How many planes share the limits, including this one. */
  readonly planes: number
  /** Called when `news` has something to report: within the usual time, or, if urgent, at the end of this turn. */
  readonly onNews: (isUrgent: boolean) => void
}

/** At a cap new connections are refused and open ones go on. Every refusal is counted; the log gets one line a minute. */
export class ConnectionCaps {
  readonly door: ConnectionCapsOptions['door']
  #limits: CapLimits
  readonly #now: () => number
  readonly #isShared: (ip: string) => boolean
  #sources: ClientRates | undefined
  #handshakes: TokenBucket | undefined
  readonly #refused = new Map<Cap, number>()
  readonly #logs: ReadonlyMap<Cap, MinuteLog<string>>
  #open = 0
  /** Undefined while the limits are not shared. */
  #unreported: RefusalNews | undefined
  #sharing: Sharing | undefined
  /** By plane. */
  readonly #atPeers = new Map<string, OpenAtPeer>()
  #openAtPeers = 0

  constructor({ limits, door, log, isShared = () => false, now = () => performance.now() }: ConnectionCapsOptions) {
    this.door = door
    this.#limits = limits
    this.#now = now
    this.#isShared = isShared
    this.use(limits)
    const caps = Object.keys(settings) as Cap[] // the keys of that table
    this.#logs = new Map(
      caps.map((cap) => {
        const report = (peer: string, refused: number): void => {
          const about = { door, setting: `--${settings[cap]}`, limit: this.#limits[cap] }
          log.warn({ ...about, peer, refused }, 'refused at a cap')
        }
        return [cap, new MinuteLog(report)]
      }),
    )
  }

  /** Changes the limits. They apply from now on; open connections stay open. */
  use(limits: CapLimits): void {
    const { maxConnectionsPerSource, maxRequestsPerSource, maxHandshakes, maxHandshakesPerSource } = limits
    this.#limits = limits
    const rates = { requests: maxRequestsPerSource, handshakes: maxHandshakesPerSource }
    if (this.#sources) this.#sources.use(rates)
    else if (maxConnectionsPerSource + maxRequestsPerSource + maxHandshakesPerSource > 0) {
      this.#sources = new ClientRates(rates, { now: this.#now })
    }
    this.#handshakes = maxHandshakes > 0 ? new TokenBucket(maxHandshakes, this.#now()) : undefined
    this.share(this.#sharing)
  }

  /** Shares the limits with the same listener of other planes from now on; with none when undefined. */
  share(sharing: Sharing | undefined): void {
    this.#sharing = sharing
    this.#unreported = sharing && new RefusalNews({ limits: this.#limits, ...sharing })
  }

  /** What must be reported to other planes, which counts as reported from now on; undefined when there is nothing. */
  news(): CapNews | undefined {
    return this.#unreported?.take(this.#open, (name) => this.#sources?.openOf(name) ?? 0)
  }

  /** All open connections, for a plane that has attached. */
  allNews(): CapNews {
    const sources = this.#sources
    const open = sources ? [...sources.present].map((name) => [name, sources.openOf(name), 0, 0] as const) : []
    return { open: this.#open, handshakes: 0, sources: open }
  }

  /** Takes in the news of another plane. */
  heard(plane: string, { open, handshakes, sources }: CapNews): void {
    const now = this.#now()
    const there = this.#atPeers.get(plane) ?? { open: 0, bySource: new Map<string, number>() }
    this.#atPeers.set(plane, there)
    if (open !== undefined) {
      this.#openAtPeers += open - there.open
      there.open = open
    }
    if (handshakes > 0) this.#handshakes?.charge(now, handshakes)
    for (const [name, openThere, requests, shaken] of sources) {
      if (openThere > 0) there.bySource.set(name, openThere)
      else there.bySource.delete(name)
      if (requests > 0) this.#sources?.named(name).requests?.charge(now, requests)
      if (shaken > 0) this.#sources?.named(name).handshakes?.charge(now, shaken)
    }
  }

  /** Forgets another plane that is gone, with all its connections. */
  lost(plane: string): void {
    this.#openAtPeers -= this.#atPeers.get(plane)?.open ?? 0
    this.#atPeers.delete(plane)
  }

  /** Open connections at this plane. */
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
    if (maxConnections > 0 && this.#open + this.#openAtPeers >= maxConnections) {
      return this.#refuse('maxConnections', socket.remoteAddress ?? '')
    }
    this.#open++
    this.#unreported?.open(1)
    socket.once('close', () => {
      this.#open--
      this.#unreported?.open(-1)
    })
    return true
  }

  /** Counts a connection for its source, once that is known; false when the source has too many. */
  admit(socket: Socket, ip: string): boolean {
    if (!this.#sources || this.#isShared(ip)) return true
    const { maxConnectionsPerSource } = this.#limits
    if (maxConnectionsPerSource > 0 && this.#openFrom(this.#sources, ip) >= maxConnectionsPerSource) {
      return this.#refuse('maxConnectionsPerSource', ip)
    }
    if (socket.destroyed) return true
    const sources = this.#sources
    sources.enter(ip)
    this.#unreported?.openFrom(clientKeyOf(ip), 1)
    socket.once('close', () => {
      sources.leave(ip)
      this.#unreported?.openFrom(clientKeyOf(ip), -1)
    })
    return true
  }

  /** Whether a TLS handshake may begin. */
  shake(ip: string): boolean {
    const now = this.#now()
    // By source first, so that a source over its own limit does not use up the limit for all.
    const bucket = this.#isShared(ip) ? undefined : this.#sources?.of(ip).handshakes
    if (bucket && !bucket.take(now)) return this.#refuse('maxHandshakesPerSource', ip)
    const isAllowed = !this.#handshakes || this.#handshakes.take(now)
    // A handshake that is refused here has still been taken from the rate of its source.
    if (this.#unreported && (isAllowed || bucket)) this.#unreported.handshake(bucket && clientKeyOf(ip), { isAllowed })
    return isAllowed || this.#refuse('maxHandshakes', ip)
  }

  /** For connections from `ip`, a function that checks whether a request is allowed; undefined without a limit. */
  requestsOf(ip: string): (() => boolean) | undefined {
    if (!this.#sources || this.#isShared(ip)) return undefined
    const name = clientKeyOf(ip)
    const bucket = this.#sources.named(name).requests
    if (!bucket) return undefined
    return () => {
      if (!bucket.take(this.#now())) return this.#refuse('maxRequestsPerSource', ip)
      this.#unreported?.request(name)
      return true
    }
  }

  /** Logs refusals that no line has reported yet. */
  close(): void {
    for (const log of this.#logs.values()) log.close()
  }

  #openFrom(sources: ClientRates, ip: string): number {
    let { open } = sources.of(ip)
    if (this.#atPeers.size === 0) return open
    const name = clientKeyOf(ip)
    for (const { bySource } of this.#atPeers.values()) open += bySource.get(name) ?? 0
    return open
  }

  #refuse(cap: Cap, ip: string): false {
    this.#refused.set(cap, (this.#refused.get(cap) ?? 0) + 1)
    this.#logs.get(cap)?.note(ip === '' ? '' : clientKeyOf(ip))
    return false
  }
}
