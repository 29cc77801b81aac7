/** What an agent knows of the traffic through its tunnels: the latest exchanges, and figures of each tunnel. */
import { Unpacker } from '../../lib/bytes/unpacker.ts'
import { TokenBucket } from '../../lib/limits/token-bucket.ts'
import type { AgentInspector } from '../agent.ts'
import type { AgentEvent } from '../events.ts'
import type { Visitor } from '../forward.ts'
import type { AgentTunnel } from '../tunnel.ts'
import type { ExchangeNotes, ExchangeWatcher } from './connection-watch.ts'
import { InspectedExchanges } from './inspected-exchanges.ts'
import { RateMeter } from './rate-meter.ts'

/**
 * How many exchanges per second are kept, with bursts of twice as many. More exchanges would be gone from the list before
 * anybody could look, so reading them would be a waste.
 */
const KEPT_PER_SECOND = 200

/**
 * Once the allowance is used up, nothing is kept until there is room for this many. A single exchange every few milliseconds
 * finds none of its code in the processor's caches. It took eight times as long as one among others, a tenth of a busy
 * agent's time.
 */
const KEPT_TOGETHER = 100
const PAUSE_MS = (1000 * KEPT_TOGETHER) / KEPT_PER_SECOND

interface InspectorOptions {
  /** Milliseconds, for durations. */
  readonly now?: () => number
  /** Milliseconds since 1970. */
  readonly clock?: () => number
}

export class Inspector implements AgentInspector {
  readonly exchanges: InspectedExchanges
  /** For bodies that were sent compressed. */
  readonly unpacker = new Unpacker()
  readonly #meters = new WeakMap<AgentTunnel, { readonly connections: RateMeter; readonly requests: RateMeter }>()
  readonly #now: () => number
  readonly #allowance: TokenBucket
  /** Since when the allowance is used up. It stands for the time of all that passes until then: reading the clock has a cost. */
  #fullSince: number | undefined
  #leftOut = 0
  /** Names of the tunnels that were started through the local API. */
  readonly #started = new Set<string>()

  constructor({ now = () => performance.now(), clock = Date.now }: InspectorOptions = {}) {
    this.exchanges = new InspectedExchanges({ now, clock })
    this.#now = now
    this.#allowance = new TokenBucket(KEPT_PER_SECOND, now())
  }

  /** How many exchanges were not kept because too many came at once. */
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

  /** Whether the tunnel was started through the local API, and so is not in the configuration file. */
  hasStarted(name: string): boolean {
    return this.#started.has(name)
  }

  meterOf(tunnel: AgentTunnel) {
    let meter = this.#meters.get(tunnel)
    if (!meter) {
      meter = { connections: new RateMeter(this.#now), requests: new RateMeter(this.#now) }
      this.#meters.set(tunnel, meter)
    }
    return meter
  }

  event(event: AgentEvent): void {
    if (event.type === 'connection-opened') this.meterOf(event.tunnel).connections.began()
    else if (event.type === 'connection-closed') this.meterOf(event.tunnel).connections.ended(event.end.durationMs)
  }

  watch(tunnel: AgentTunnel, { address, proto }: Visitor): ExchangeWatcher {
    const { requests } = this.meterOf(tunnel)
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
      // The first exchange beyond the allowance is still read, and so are those pipelined with others.
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

/** The name in the local API: of two addresses with one name, the plain HTTP one is `name (http)`. */
export function shownName({ plan, isTwin }: AgentTunnel): string {
  return isTwin ? `${plan.name} (http)` : plan.name
}
