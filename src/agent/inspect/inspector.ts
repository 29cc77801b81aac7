/** What an agent knows of the traffic through its tunnels: the latest exchanges, and figures of each tunnel. */
import { Unpacker } from '../../lib/bytes/unpacker.ts'
import { TokenBucket } from '../../lib/limits/token-bucket.ts'
import type { AgentInspector } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import type { Visitor } from '../forward.ts'
import type { AgentTunnel } from '../tunnel.ts'
import type { ExchangeNotes, ExchangeWatcher } from './connection-watch.ts'
import { InspectedExchanges } from './inspected-exchanges.ts'
import { type TunnelMeter, TunnelMeters } from './tunnel-meters.ts'

/**
 * How many exchanges a second are kept, and twice as many at once. Beyond that they would be gone before anybody could look,
 * so reading them would only cost time.
 */
const KEPT_PER_SECOND = 200

/**
 * When there is no room, nobody asks for some until there is for so many. One alone, every few milliseconds, finds nothing of its
 * code in the caches of a busy processor: it took eight times as long as beside others, a tenth of what a busy agent took in all.
 */
const KEPT_TOGETHER = 100
const PAUSE_MS = (1000 * KEPT_TOGETHER) / KEPT_PER_SECOND

export interface InspectorOptions {
  /** Milliseconds, for durations. */
  readonly now?: () => number
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

export class Inspector implements AgentInspector {
  readonly exchanges: InspectedExchanges
  /** For bodies that were sent compressed. */
  readonly unpacker = new Unpacker()
  readonly #meters: TunnelMeters
  readonly #now: () => number
  readonly #allowance: TokenBucket
  /** Since when there is no room. It serves as the time of what passes until there is: to read the clock for each is not free. */
  #fullSince: number | undefined
  #leftOut = 0
  /** Names of the tunnels that somebody started while the agent ran. */
  readonly #started = new Set<string>()

  constructor({ now = () => performance.now(), clock = Date.now }: InspectorOptions = {}) {
    this.exchanges = new InspectedExchanges({ now, clock })
    this.#meters = new TunnelMeters(now)
    this.#now = now
    this.#allowance = new TokenBucket(KEPT_PER_SECOND, now())
  }

  /** How many exchanges were not kept, since too many came at once. */
  get leftOut(): number {
    return this.#leftOut
  }

  /** The local API started a tunnel of this name. */
  started(name: string): void {
    this.#started.add(name)
  }

  stopped(name: string): void {
    this.#started.delete(name)
  }

  /** Whether the tunnel is one of those, and so nothing that the configuration file knows of. */
  hasStarted(name: string): boolean {
    return this.#started.has(name)
  }

  meterOf(tunnel: AgentTunnel): TunnelMeter {
    return this.#meters.of(tunnel)
  }

  event(event: AgentEvent): void {
    if (event.type === 'connection-opened') this.#meters.of(event.tunnel).connections.began()
    else if (event.type === 'connection-closed') {
      this.#meters.of(event.tunnel).connections.ended(event.end.durationMs)
    }
  }

  watch(tunnel: AgentTunnel, { address, proto }: Visitor): ExchangeWatcher {
    const { requests } = this.#meters.of(tunnel)
    const scheme = proto === 'http' ? ('http' as const) : ('https' as const)
    const origin = {
      ...{ tunnelName: shownName(tunnel), scheme, clientAddress: address, replayOf: undefined },
      onEnded: (durationMs: number) => requests.ended(durationMs),
    }
    return {
      leavesOut: () => {
        if (this.#fullSince === undefined) return false
        this.#leftOut++
        requests.passed(this.#fullSince)
        return true
      },
      // The first for which there is no room is read all the same, and so are those that come together with others.
      began: (request): ExchangeNotes => {
        const now = this.#now()
        requests.began(now)
        if (this.#takes(now)) return this.exchanges.begin(request, origin)
        this.#leftOut++
        return { onAnswered() {}, onEnded: () => requests.ended(this.#now() - now) }
      },
    }
  }

  /** Whether an exchange that begins is kept. */
  #takes(now: number): boolean {
    if (this.#fullSince !== undefined) return false
    if (this.#allowance.take(now)) return true
    this.#fullSince = now
    setTimeout(() => {
      this.#fullSince = undefined
    }, PAUSE_MS).unref()
    return false
  }
}

/** As the local API names it: of two addresses with one name, the plain one is `name (http)`. */
export function shownName({ plan, isTwin }: AgentTunnel): string {
  return isTwin ? `${plan.name} (http)` : plan.name
}
