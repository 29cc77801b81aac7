/** The `circuit_breaker` module: sends no requests for a while to an upstream that fails too often. */
import { Type } from '../../lib/shape/type.ts'
import { MAX_UINT32 } from '../../model/fields.ts'
import { defineModule, moduleForm } from '../module.ts'

const whole = (fallback: number, [minimum, maximum]: readonly [number, number], description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description })

const form = moduleForm({
  tripped_duration: whole(
    10,
    [1, MAX_UINT32],
    'Seconds for which requests are refused before one is let through to try again.',
  ),
  rolling_window: whole(10, [1, MAX_UINT32], 'Seconds over which requests and failures are counted.'),
  num_buckets: whole(10, [1, 128], 'Number of parts of the window, each of which expires as a whole.'),
  volume_threshold: whole(20, [0, MAX_UINT32], 'Requests in the window before failures count.'),
  error_threshold_percentage: Type.Number({
    default: 0.5,
    minimum: 0,
    maximum: 1,
    description: 'Share of failed requests in the window, 0 to 1, at which requests are refused.',
  }),
})

export type CircuitBreakerSettings = Readonly<ReturnType<typeof circuitBreaker.resolve>>

export const circuitBreaker = defineModule({
  name: 'circuit_breaker',
  about: 'Refuses requests for a while when too many of them failed upstream.',
  at: { route: form },
  needs: () => 'http',
  resolve: (config) => ({
    trippedSeconds: config.tripped_duration,
    windowSeconds: config.rolling_window,
    buckets: config.num_buckets,
    volumeThreshold: config.volume_threshold,
    errorThreshold: config.error_threshold_percentage,
  }),
})
