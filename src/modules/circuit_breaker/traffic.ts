/**
 * Stops requests to an upstream that fails too often, and later tries one request at a time until one succeeds.
 *
 * @example
 * const settings = { trippedSeconds: 10, windowSeconds: 10, buckets: 10, volumeThreshold: 1, errorThreshold: 0.5 }
 * const phases = compileCircuitBreaker(settings, tools)
 * const ctx = request()
 * phases.request(ctx) // undefined
 * phases.done({ status: 502, isFromUpstream: true, fault: undefined }, ctx)
 * phases.request(request()) // { refuse: 'CIRCUIT_OPEN', headers: [['Retry-After', '10']] }
 */

import type { Phases, RequestContext, RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import type { CircuitBreakerSettings } from './form.ts'

/** Twins at other data planes count and open together, and one of them all tries a request. */
export function compileCircuitBreaker(
  settings: CircuitBreakerSettings,
  { now, key, breakers }: Pick<ModuleTools, 'now' | 'key' | 'breakers'>,
): Phases {
  const { trippedSeconds, windowSeconds, buckets, volumeThreshold, errorThreshold } = settings
  const window = new RollingWindow({ millis: windowSeconds * 1000, buckets })
  /** When the next request may be tried; undefined while the circuit is closed. */
  let openUntil: number | undefined
  /** The one request that was let through to find out whether the upstream works again. */
  let probe: RequestContext | undefined
  /** The request that waits for another plane to say whether it may try. */
  let asking: RequestContext | undefined

  const trippedMs = trippedSeconds * 1000
  const openFor = (waitMs: number): void => {
    openUntil = now() + waitMs
    probe = undefined
  }
  const close = (): void => {
    openUntil = undefined
    probe = undefined
    window.clear()
  }
  const count = (total: number, failed: number): boolean => {
    const all = window.add(now(), total, failed)
    return all.total >= volumeThreshold && all.failed / all.total >= errorThreshold
  }
  const waitMs = (): number | undefined => {
    // If the clock was set back, the circuit must not stay open for longer than configured.
    if (openUntil !== undefined) openUntil = Math.min(openUntil, now() + trippedMs)
    return openUntil === undefined ? undefined : openUntil - now()
  }
  const twins = breakers?.join(key, {
    counted(total, failed) {
      if (openUntil === undefined && count(total, failed)) open()
    },
    opened: openFor,
    closed: close,
    waitMs,
  })
  const open = (): void => {
    openFor(trippedMs)
    twins?.opened(trippedMs)
  }
  const judge = (hasFailed: boolean): void => {
    if (hasFailed) open()
    else {
      close()
      twins?.closed()
    }
  }

  const pass = (ctx: RequestContext, decision: 'allow' | 'allow_while_open'): undefined => {
    ctx.found.set(DECISION, decision)
  }
  const block = (ctx: RequestContext): RequestVerdict => {
    ctx.found.set(DECISION, 'block')
    const seconds = Math.max(1, Math.ceil((waitMs() ?? 0) / 1000))
    return { refuse: 'CIRCUIT_OPEN', headers: [['Retry-After', String(seconds)]] }
  }
  /** Lets one request through while the circuit is open, unless another plane has done so. */
  const tryOne = (ctx: RequestContext): RequestVerdict | Promise<RequestVerdict> => {
    const mayProbe = twins?.mayProbe() ?? true
    if (mayProbe === false) return block(ctx)
    if (mayProbe === true) {
      probe = ctx
      return pass(ctx, 'allow_while_open')
    }
    asking = ctx
    return mayProbe.then((isGranted) => {
      const isHere = asking === ctx
      asking = undefined
      if (openUntil === undefined) {
        if (isGranted) twins?.probeOver()
        return pass(ctx, 'allow')
      }
      if (isGranted && isHere && openUntil <= now()) {
        probe = ctx
        return pass(ctx, 'allow_while_open')
      }
      if (isGranted) twins?.probeOver()
      return block(ctx)
    })
  }

  return {
    request(ctx) {
      const wait = waitMs()
      if (wait === undefined) return pass(ctx, 'allow')
      return wait > 0 || probe || asking ? block(ctx) : tryOne(ctx)
    },
    response({ status, isFromUpstream }, ctx) {
      // The status of the probe is enough; the last byte of its response may be hours away.
      if (ctx === probe && isFromUpstream) judge(status >= 500)
    },
    done({ status, isFromUpstream, fault }, ctx) {
      if (ctx === asking) asking = undefined
      const hasFailed = fault !== undefined || (isFromUpstream && status >= 500)
      if (ctx === probe) {
        if (hasFailed || isFromUpstream) judge(hasFailed)
        else {
          // The visitor left before the upstream answered: the next request becomes the probe.
          probe = undefined
          twins?.probeOver()
        }
        return
      }
      // Answers of other modules say nothing about the upstream, and requests sent before the circuit opened are too old.
      if (openUntil !== undefined || !(isFromUpstream || fault !== undefined)) return
      if (count(1, hasFailed ? 1 : 0)) open()
      else twins?.counted(hasFailed)
    },
    release: () => twins?.leave(),
  }
}

const DECISION = 'circuit_breaker.decision'

/** The port through which a breaker counts for the whole node: with its twins at the other data planes. */
export interface BreakerTwins {
  /** `key` is the same at all planes. Calls of the twins go to `breaker` until it leaves. */
  join(key: string, breaker: TwinBreaker): TwinLink
}

/** A breaker, as its twins see it. */
export interface TwinBreaker {
  /** Requests that another plane has sent upstream. */
  counted(total: number, failed: number): void
  opened(waitMs: number): void
  closed(): void
  /** How long until a request may be tried, in milliseconds; undefined while the circuit is closed. */
  waitMs(): number | undefined
}

/** The twins of a breaker, as it sees them. */
export interface TwinLink {
  counted(hasFailed: boolean): void
  opened(waitMs: number): void
  closed(): void
  /** Whether this plane may try a request while the circuit is open. Then `opened`, `closed` or `probeOver` must follow. */
  mayProbe(): boolean | Promise<boolean>
  /** The try is over and did not show whether the upstream works. */
  probeOver(): void
  leave(): void
}

/** Counts requests and failures over a rolling window, which is divided into buckets that expire one by one. */
class RollingWindow {
  readonly #bucketMs: number
  readonly #totals: Float64Array
  readonly #failures: Float64Array
  /** The current bucket, counted from 1970. */
  #current = 0
  #total = 0
  #failed = 0

  constructor({ millis, buckets }: { millis: number; buckets: number }) {
    this.#bucketMs = millis / buckets
    this.#totals = new Float64Array(buckets)
    this.#failures = new Float64Array(buckets)
  }

  /** Counts requests, and returns the totals of the window. */
  add(now: number, total: number, failed: number): { total: number; failed: number } {
    this.#moveTo(Math.floor(now / this.#bucketMs))
    const at = this.#current % this.#totals.length
    this.#totals[at] = (this.#totals[at] ?? 0) + total
    this.#total += total
    this.#failures[at] = (this.#failures[at] ?? 0) + failed
    this.#failed += failed
    return { total: this.#total, failed: this.#failed }
  }

  clear(): void {
    this.#totals.fill(0)
    this.#failures.fill(0)
    this.#total = 0
    this.#failed = 0
  }

  /** Clears the buckets that have expired; all of them when the clock moved by more than the window, either way. */
  #moveTo(bucket: number): void {
    const size = this.#totals.length
    if (Math.abs(bucket - this.#current) >= size) {
      this.clear()
      this.#current = bucket
    }
    while (this.#current < bucket) this.#forget(++this.#current % size)
  }

  #forget(at: number): void {
    this.#total -= this.#totals[at] ?? 0
    this.#failed -= this.#failures[at] ?? 0
    this.#totals[at] = 0
    this.#failures[at] = 0
  }
}
