/** Stops requests to an upstream that fails too often, and later tries one request at a time until one succeeds. */
import type { Phases, RequestContext, RequestVerdict } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import { RollingWindow } from './window.ts'

export interface CircuitBreakerSettings {
  readonly trippedSeconds: number
  readonly windowSeconds: number
  readonly buckets: number
  /** Requests in the window before failures count. */
  readonly volumeThreshold: number
  /** Share of failures, 0 to 1, from which on requests are refused. */
  readonly errorThreshold: number
}

/** */
export function compileCircuitBreaker(settings: CircuitBreakerSettings, { now }: Pick<ModuleTools, 'now'>): Phases {
  const { trippedSeconds, windowSeconds, buckets, volumeThreshold, errorThreshold } = settings
  const window = new RollingWindow({ millis: windowSeconds * 1000, buckets })
  /** When the next request may be tried; undefined while the circuit is closed. */
  let openUntil: number | undefined
  /** The one request that was let through to find out whether the upstream works again. */
  let probe: RequestContext | undefined

  const trippedMs = trippedSeconds * 1000
  const open = (): void => {
    openUntil = now() + trippedMs
    probe = undefined
  }
  const close = (): void => {
    openUntil = undefined
    probe = undefined
    window.clear()
  }
  const refuse = (waitMs: number): RequestVerdict => ({
    refuse: 'CIRCUIT_OPEN',
    headers: [['Retry-After', String(Math.max(1, Math.ceil(waitMs / 1000)))]],
  })

  return {
    request(ctx) {
      // If the clock was set back, the circuit must not stay open for longer than configured.
      if (openUntil !== undefined) openUntil = Math.min(openUntil, now() + trippedMs)
      const waitMs = openUntil === undefined ? 0 : openUntil - now()
      if (openUntil !== undefined && (waitMs > 0 || probe)) {
        ctx.found.set(DECISION, 'block')
        return refuse(waitMs)
      }
      if (openUntil !== undefined) probe = ctx
      ctx.found.set(DECISION, probe ? 'allow_while_open' : 'allow')
      return undefined
    },
    response({ status, isFromUpstream }, ctx) {
      // The status of the probe is enough; the last byte of its response may be hours away.
      if (ctx !== probe || !isFromUpstream) return
      if (status >= 500) open()
      else close()
    },
    done({ status, isFromUpstream, fault }, ctx) {
      const hasFailed = fault !== undefined || (isFromUpstream && status >= 500)
      if (ctx === probe) {
        if (hasFailed) open()
        else if (isFromUpstream) close()
        // The visitor left before the upstream answered: the next request becomes the probe.
        else probe = undefined
        return
      }
      // Answers of other modules say nothing about the upstream, and requests sent before the circuit opened are too old.
      if (openUntil !== undefined || !(isFromUpstream || fault !== undefined)) return
      const { total, failed } = window.add(now(), hasFailed)
      if (total >= volumeThreshold && failed / total >= errorThreshold) open()
    },
  }
}

const DECISION = 'circuit_breaker.decision'
