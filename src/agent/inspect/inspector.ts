/** What an agent knows of the traffic through its tunnels: the latest exchanges, and figures of each tunnel. */
import type { AgentInspector } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import type { Visitor } from '../forward.ts'
import type { AgentTunnel } from '../tunnel.ts'
import type { ExchangeNotes, ExchangeWatcher } from './connection-watch.ts'
import { InspectedExchanges } from './inspected-exchanges.ts'
import { type TunnelMeter, TunnelMeters } from './tunnel-meters.ts'

export interface InspectorOptions {
  /** Milliseconds, for durations. */
  readonly now?: () => number
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

export class Inspector implements AgentInspector {
  readonly exchanges: InspectedExchanges
  readonly #meters: TunnelMeters
  /** Names of the tunnels that somebody started while the agent ran. */
  readonly #started = new Set<string>()

  constructor({ now = () => performance.now(), clock = Date.now }: InspectorOptions = {}) {
    this.exchanges = new InspectedExchanges({ now, clock })
    this.#meters = new TunnelMeters(now)
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
      began: (request): ExchangeNotes => {
        requests.began()
        return this.exchanges.begin(request, origin)
      },
    }
  }
}

/** As the local API names it: of two addresses with one name, the plain one is `name (http)`. */
export function shownName({ plan, isTwin }: AgentTunnel): string {
  return isTwin ? `${plan.name} (http)` : plan.name
}
