/** `rate-limit`: lets in a number of requests per time window; those with the same bucket key are counted together. */
import { hash } from 'node:crypto'
import { clientKeyOf } from '../../../../lib/net/client-key.ts'
import { Type } from '../../../../lib/shape/type.ts'
import { defineAction, GUARD_STEPS, type Outcome } from '../action.ts'
import { readDuration } from '../duration.ts'
import type { Moment } from '../moment.ts'
import { checkDuration, closedObject, enforce, text } from '../phase-settings.ts'

export const rateLimit = defineAction({
  phases: ['request'],
  guards: true,
  sources: { bucket_key: 'value' },
  config: closedObject({
    name: text(1023, 'Name of this limit.'),
    algorithm: Type.Enum(['sliding_window'], { default: 'sliding_window', description: 'How requests are counted.' }),
    capacity: Type.Integer({
      minimum: 1,
      maximum: 2_000_000_000,
      description: 'Requests allowed in the time of `rate`.',
    }),
    rate: Type.String({
      maxBytes: 32,
      description: 'Time over which requests are counted: 60s to 24h in steps of 10s.',
    }),
    bucket_key: Type.Array(Type.String({ minLength: 1, maxBytes: 4096 }), {
      minItems: 1,
      maxItems: 10,
      description: 'CEL expressions; requests with the same values of all are counted together.',
    }),
    enforce,
  }),
  refine: ({ rate }, at) => checkDuration(rate, `${at}.rate`, { least: '60s', most: '24h', step: 10 }),
  compile: ({ capacity, rate, bucket_key, enforce: isEnforced }, { key, tools, expression, evaluator }) => {
    const keys = bucket_key.map((text) => {
      const value = expression(text)
      const read = (moment: Moment) => evaluator.plain(value(moment))
      // A visitor with one IPv6 address has its whole network, and would pass any limit.
      return text.trim() === 'conn.client_ip' ? (moment: Moment) => clientKeyOf(String(read(moment))) : read
    })
    const limit = { capacity, windowMs: readDuration(rate) * 1000 }
    return {
      cost: GUARD_STEPS,
      run(moment) {
        const { edgeId, routeId } = moment.ownRequest
        const parts = keys.map((each) => each(moment))
        // A digest, since keys are made of what visitors send and can be long.
        const bucket = `${edgeId} ${routeId} ${key} ${hash('sha256', JSON.stringify(parts), 'base64url')}`
        const taken = tools.counters.take(bucket, limit)
        return taken instanceof Promise ? taken.then(judge) : judge(taken)

        function judge({ isAllowed, waitMs }: { isAllowed: boolean; waitMs: number }): Outcome {
          moment.results.set('rate_limit', new Map([['limited', !isAllowed]]))
          if (isAllowed || !isEnforced) return undefined
          return { refuse: 'RATE_LIMITED', headers: [['Retry-After', String(Math.max(1, Math.ceil(waitMs / 1000)))]] }
        }
      },
    }
  },
})
