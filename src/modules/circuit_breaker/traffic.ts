/** Stops requests to an upstream that fails too often, and later tries one request at a time until one succeeds. */
import type { Phases, RequestContext, RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { noTwins } from './twins.ts'
import { RollingWindow } from './window.ts'

export interface CircuitBreakerSettings {
  readonly trippedSeconds: number
  readonly windowSeconds: number
  readonly buckets: number
  /** Requests in the window before failures count. */
  readonly volumeThreshold: number
  /** Share of failures, 0 to 1, at which requests are refused. */
  readonly errorThreshold: number
}

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
  const twins =
    breakers?.join(key, {
      counted(total, failed) {
        if (openUntil === undefined && count(total, failed)) open()
      },
      opened: openFor,
      closed: close,
      waitMs,
    }) ?? noTwins
  const open = (): void => {
    openFor(trippedMs)
    twins.opened(trippedMs)
  }
  const judged = (hasFailed: boolean): void => {
    if (hasFailed) open()
    else {
      close()
      twins.closed()
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
    const mayProbe = twins.mayProbe()
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
        if (isGranted) twins.probeOver()
        return pass(ctx, 'allow')
      }
      if (isGranted && isHere && openUntil <= now()) {
        probe = ctx
        return pass(ctx, 'allow_while_open')
      }
      if (isGranted) twins.probeOver()
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
      if (ctx === probe && isFromUpstream) judged(status >= 500)
    },
    done({ status, isFromUpstream, fault }, ctx) {
      if (ctx === asking) asking = undefined
      const hasFailed = fault !== undefined || (isFromUpstream && status >= 500)
      if (ctx === probe) {
        if (hasFailed || isFromUpstream) judged(hasFailed)
        else {
          // The visitor left before the upstream answered: the next request becomes the probe.
          probe = undefined
          twins.probeOver()
        }
        return
      }
      // Answers of other modules say nothing about the upstream, and requests sent before the circuit opened are too old.
      if (openUntil !== undefined || !(isFromUpstream || fault !== undefined)) return
      if (count(1, hasFailed ? 1 : 0)) open()
      else twins.counted(hasFailed)
    },
    release: () => twins.leave(),
  }
}

const DECISION = 'circuit_breaker.decision'
