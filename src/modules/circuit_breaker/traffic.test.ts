import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { RequestContext, Summary } from '../phases.ts'
import { request, response } from '../testing/test-request.ts'
import { circuitBreaker } from './index.ts'
import { type CircuitBreakerSettings, compileCircuitBreaker } from './traffic.ts'

const defaults: CircuitBreakerSettings = {
  trippedSeconds: 10,
  windowSeconds: 10,
  buckets: 10,
  volumeThreshold: 4,
  errorThreshold: 0.5,
}

/** A breaker and its clock; `ask` is a whole exchange, undefined when it was not let through. */
function breaker(settings: Partial<CircuitBreakerSettings> = {}) {
  const clock = { now: 1_000_000 }
  const phases = compileCircuitBreaker({ ...defaults, ...settings }, { now: () => clock.now, key: '' })
  const begin = (): { ctx: RequestContext; passes: boolean; decision: string | undefined } => {
    const ctx = request()
    const passes = phases.request?.(ctx) === undefined
    return { ctx, passes, decision: ctx.found.get('circuit_breaker.decision') }
  }
  const end = (ctx: RequestContext, summary: Partial<Summary>): void => {
    phases.done?.({ status: 0, isFromUpstream: false, fault: undefined, ...summary }, ctx)
  }
  const ask = (status: number): string | undefined => {
    const { ctx, passes, decision } = begin()
    if (!passes) return decision
    void phases.response?.(response({ status }), ctx)
    end(ctx, { status, isFromUpstream: true })
    return decision
  }
  return { clock, phases, begin, end, ask }
}

test('reads the stored settings', () => {
  const stored = {
    enabled: true,
    tripped_duration: 1,
    rolling_window: 2,
    num_buckets: 3,
    volume_threshold: 4,
    error_threshold_percentage: 0.5,
  }
  const lookup = { ipRules: () => assert.fail(), authority: () => assert.fail(), backend: () => assert.fail() }
  assert.deepEqual(circuitBreaker.resolve?.(stored, lookup, 'route'), {
    trippedSeconds: 1,
    windowSeconds: 2,
    buckets: 3,
    volumeThreshold: 4,
    errorThreshold: 0.5,
  })
})

test('opens when enough requests were counted and enough of them failed, and not before', () => {
  const { ask } = breaker()
  assert.deepEqual([500, 200, 503].map(ask), ['allow', 'allow', 'allow'])
  // Four requests, two of which failed.
  assert.equal(ask(200), 'allow')
  assert.equal(ask(200), 'block')
})

test('a refusal says when to try again', () => {
  const { ask, phases, clock } = breaker({ volumeThreshold: 1 })
  ask(500)
  clock.now += 2500
  assert.deepEqual(phases.request?.(request()), { refuse: 'CIRCUIT_OPEN', headers: [['Retry-After', '8']] })
})

test('client errors do not count as failures of the upstream', () => {
  const { ask } = breaker()
  for (let i = 0; i < 50; i++) assert.equal(ask(i % 2 ? 404 : 499), 'allow')
})

test('a failed dial counts, an answer of another module does not', () => {
  const { begin, end } = breaker()
  for (let i = 0; i < 50; i++) end(begin().ctx, { status: 503 })
  assert.equal(begin().passes, true)
  for (let i = 0; i < 4; i++) end(begin().ctx, { status: 502, fault: 'UPSTREAM_UNREACHABLE' })
  assert.equal(begin().passes, false)
})

test('failures expire bucket by bucket', () => {
  const { ask, clock } = breaker({ volumeThreshold: 2, errorThreshold: 1 })
  ask(500)
  clock.now += 9_000
  // The failure is still in the window, but half is not all.
  assert.equal(ask(200), 'allow')
  clock.now += 1_000
  assert.equal(ask(500), 'allow')
  assert.equal(ask(500), 'allow')
  clock.now += 10_000
  assert.equal(ask(500), 'allow')
  assert.equal(ask(500), 'allow')
  assert.equal(ask(500), 'block')
})

test('after a while exactly one request is tried, and a good answer closes the circuit', () => {
  const { ask, begin, end, phases, clock } = breaker()
  for (let i = 0; i < 4; i++) ask(500)
  clock.now += 9_999
  assert.equal(ask(200), 'block')
  clock.now += 1
  const probe = begin()
  assert.equal(probe.decision, 'allow_while_open')
  assert.equal(ask(200), 'block')
  void phases.response?.(response({ status: 204 }), probe.ctx)
  // Its body is still being sent.
  assert.equal(ask(200), 'allow')
  end(probe.ctx, { status: 204, isFromUpstream: true })
  // The window is empty again: three failures are too few requests.
  assert.deepEqual([500, 500].map(ask), ['allow', 'allow'])
  assert.equal(ask(200), 'block')
})

test('a bad answer to the tried request keeps the circuit open for as long again', () => {
  const { ask, begin, end, clock } = breaker()
  for (let i = 0; i < 4; i++) ask(500)
  clock.now += 10_000
  assert.equal(ask(500), 'allow_while_open')
  clock.now += 9_999
  assert.equal(ask(200), 'block')
  clock.now += 1
  const probe = begin()
  end(probe.ctx, { status: 504, fault: 'UPSTREAM_TIMEOUT' })
  assert.equal(ask(200), 'block')
})

test('when the visitor of the tried request leaves early, the next request is tried', () => {
  const { ask, begin, end, clock } = breaker()
  for (let i = 0; i < 4; i++) ask(500)
  clock.now += 10_000
  end(begin().ctx, {})
  assert.equal(ask(200), 'allow_while_open')
  assert.equal(ask(200), 'allow')
})

test('requests that were in flight when it opened are not counted', () => {
  const { ask, begin, end, clock } = breaker()
  const early = [begin(), begin()]
  for (let i = 0; i < 4; i++) ask(500)
  for (const { ctx } of early) end(ctx, { status: 200, isFromUpstream: true })
  assert.equal(ask(200), 'block')
  clock.now += 10_000
  const probe = begin()
  assert.equal(probe.decision, 'allow_while_open')
  assert.equal(ask(200), 'block')
})

test('a threshold of 0 opens at once', () => {
  const { ask } = breaker({ errorThreshold: 0, volumeThreshold: 0 })
  assert.deepEqual([200, 200].map(ask), ['allow', 'block'])
})

test('a clock that is set back does not keep the circuit open for longer', () => {
  const { ask, clock } = breaker()
  for (let i = 0; i < 4; i++) ask(500)
  clock.now -= 900_000
  assert.equal(ask(200), 'block')
  clock.now += 10_000
  assert.equal(ask(200), 'allow_while_open')
})

test('never lets two through while open, and always lets one through eventually', () => {
  const event = fc.constantFrom('begin', 'good', 'bad', 'leave', 'wait')
  fc.assert(
    fc.property(fc.array(event, { maxLength: 200 }), (events) => {
      const { begin, end, clock } = breaker()
      const under: { ctx: RequestContext; decision: string | undefined }[] = []
      for (const each of events) {
        if (each === 'wait') clock.now += 4_000
        else if (each === 'begin') {
          const exchange = begin()
          if (exchange.passes) under.push(exchange)
        } else {
          const exchange = under.shift()
          if (exchange && each === 'leave') end(exchange.ctx, {})
          else if (exchange) end(exchange.ctx, { status: each === 'good' ? 200 : 500, isFromUpstream: true })
        }
        assert.ok(under.filter(({ decision }) => decision === 'allow_while_open').length <= 1)
      }
      for (const { ctx } of under) end(ctx, {})
      clock.now += 10_000
      assert.ok(begin().passes)
    }),
    { numRuns: 500 },
  )
})
