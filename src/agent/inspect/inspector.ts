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
        const now = this.#now()
        if (!this.#allowance.isEmpty(now)) return false
        this.#leftOut++
        requests.passed(now)
        return true
      },
      // A request that came together with others may find nothing left.
      began: (request): ExchangeNotes => {
        const now = this.#now()
        requests.began(now)
        if (this.#allowance.take(now)) return this.exchanges.begin(request, origin)
        this.#leftOut++
        return { onAnswered() {}, onEnded: () => requests.ended(this.#now() - now) }
      },
    }
  }
}

/** As the local API names it: of two addresses with one name, the plain one is `name (http)`. */
export function shownName({ plan, isTwin }: AgentTunnel): string {
  return isTwin ? `${plan.name} (http)` : plan.name
}
