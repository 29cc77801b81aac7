/** `circuit-breaker`: refuses requests for a while when too many of them failed upstream. */
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction, guardStep } from '../action.ts'
import { readDuration } from '../duration.ts'
import { checkDuration, closedObject, duration, enforce } from '../phase-settings.ts'

/** Parts of the window; each expires as a whole. */
const BUCKETS = 10

export const circuitBreaker = defineAction({
  phases: ['request'],
  config: closedObject({
    error_threshold: Type.Number({
      default: 0.5,
      minimum: 0,
      maximum: 1,
      description: 'Share of failed requests in the window at which requests are refused.',
    }),
    volume_threshold: Type.Integer({
      default: 10,
      minimum: 1,
      maximum: 1_000_000,
      description: 'Requests in the window before failures count.',
    }),
    window_duration: duration('10s', 'Time over which requests are counted, 1s to 2m.'),
    tripped_duration: duration('10s', 'Time for which requests are refused before one is tried again, 1s to 24h.'),
    enforce,
  }),
  refine: ({ window_duration, tripped_duration }, at) => {
    checkDuration(window_duration, `${at}.window_duration`, { least: '1s', most: '2m' })
    checkDuration(tripped_duration, `${at}.tripped_duration`, { least: '1s', most: '24h' })
  },
  compile: (config, { key, tools }) => {
    const settings = {
      trippedSeconds: readDuration(config.tripped_duration),
      windowSeconds: readDuration(config.window_duration),
      buckets: BUCKETS,
      volumeThreshold: config.volume_threshold,
      errorThreshold: config.error_threshold,
    }
    const guard = tools.guards.circuitBreaker(settings, key)
    return guardStep('circuit-breaker', guard, config.enforce)
  },
})
