import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileCircuitBreaker } from '../../modules/circuit_breaker/traffic.ts'
import type { Phases, RequestContext } from '../../modules/phases.ts'
import { request } from '../../modules/testing/test-request.ts'
import { GATHER_MS } from './gather-changes.ts'
import { SharedBreakers } from './shared-breakers.ts'
import { TestNode } from './testing/test-worker-peers.ts'

const settings = { trippedSeconds: 10, windowSeconds: 10, buckets: 10, volumeThreshold: 4, errorThreshold: 0.5 }
/** Longer than any test. */
const NEVER_MS = 600_000

interface Exchange {
  readonly phases: Phases
  readonly ctx: RequestContext
}

function start(count: number, { key = 'edge route breaker', grantMs = NEVER_MS } = {}) {
  const clock = { now: 1_000_000 }
  const now = () => clock.now
  const node = new TestNode()
  const planes: { id: string; phases: Phases }[] = []
  const add = (): void => {
    const plane = node.plane(`w${planes.length + 1}`)
    const breakers = new SharedBreakers(plane, { now, grantMs })
    planes.push({ id: plane.self, phases: compileCircuitBreaker(settings, { now, key, breakers }) })
    node.join(plane)
  }
  for (let i = 0; i < count; i++) add()
  const begin = async (at: number): Promise<Exchange | undefined> => {
    const { phases } = planes[at] ?? assert.fail()
    const ctx = request()
    return (await phases.request?.(ctx)) === undefined ? { phases, ctx } : undefined
  }
  const end = ({ phases, ctx }: Exchange, status: number): void => {
    phases.done?.({ status, isFromUpstream: status > 0, fault: undefined }, ctx)
  }
  const ask = async (at: number, status: number): Promise<boolean> => {
    const [exchange] = await Promise.all([begin(at), node.settle()])
    if (exchange) end(exchange, status)
    return exchange !== undefined
  }
  return { clock, node, planes, add, begin, end, ask }
}

test('failures at all planes count together, and all circuits open', async ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  const { node, ask } = start(3)
  for (const at of [0, 1, 2]) assert.equal(await ask(at, 500), true)
  mock.timers.tick(GATHER_MS)
  await node.settle()
  assert.equal(node.delivered.get('breakers.counted'), 6)
  assert.equal(await ask(1, 500), true)
  await node.settle()
  for (const at of [0, 1, 2]) assert.equal(await ask(at, 200), false)
})

for (const count of [2, 4]) {
  test(`of failing requests in turn at ${count} planes, as many go upstream as at one`, async ({ mock }) => {
    // No time passes.
    mock.timers.enable({ apis: ['setTimeout'] })
    const { node, ask } = start(count)
    let passed = 0
    for (let i = 0; i < 20 * count; i++) {
      if (await ask(i % count, 500)) passed++
      await new Promise((resolve) => setImmediate(resolve))
      await node.settle()
    }
    assert.equal(passed, settings.volumeThreshold)
  })

  test(`of failing requests at ${count} planes that know nothing of each other's last, one a plane is too much`, async ({
    mock,
  }) => {
    mock.timers.enable({ apis: ['setTimeout'] })
    const { node, ask } = start(count)
    let passed = 0
    for (let round = 0; round < 20; round++) {
      for (const each of await Promise.all(Array.from({ length: count }, (_, at) => ask(at, 500)))) if (each) passed++
      await new Promise((resolve) => setImmediate(resolve))
      await node.settle()
    }
    assert.ok(passed <= settings.volumeThreshold + count, `${passed} passed`)
  })
}

test('while a circuit is half open, one plane makes one trial request, which closes the circuit everywhere', async () => {
  const { node, clock, begin, end, ask } = start(3)
  for (let i = 0; i < 4; i++) await ask(0, 500)
  await node.settle()
  for (const status of [503, 0, 200]) {
    if (status !== 200 || clock.now < 1_020_000) clock.now += 10_000
    const [tried] = await Promise.all([Promise.all([0, 1, 2, 0, 1, 2].map(begin)), node.settle()])
    const passed = tried.filter((each) => each !== undefined)
    assert.equal(passed.length, 1)
    for (const each of passed) end(each, status)
    await node.settle()
  }
  for (const at of [0, 1, 2]) assert.equal(await ask(at, 200), true)
})

test('a new plane learns which circuits are open', async () => {
  const { node, add, ask } = start(1)
  for (let i = 0; i < 4; i++) await ask(0, 500)
  add()
  await node.settle()
  assert.equal(await ask(1, 200), false)
})

test('a circuit that was open before its breaker was compiled is open in it', async () => {
  const node = new TestNode()
  const [first, second] = [node.plane('w1'), node.plane('w2')]
  const [here, there] = [new SharedBreakers(first), new SharedBreakers(second)]
  node.join(first)
  node.join(second)
  const tools = { now: () => performance.now(), key: 'k' }
  const phases = compileCircuitBreaker({ ...settings, volumeThreshold: 1 }, { ...tools, breakers: here })
  phases.done?.({ status: 500, isFromUpstream: true, fault: undefined }, request())
  await node.settle()
  const late = compileCircuitBreaker(settings, { ...tools, breakers: there })
  assert.notEqual(late.request?.(request()), undefined)
})

test('when the owner is silent or dies, a trial request is made all the same', async () => {
  const keys = Array.from({ length: 8 }, (_, i) => `key ${i}`)
  for (const key of keys) {
    const { node, clock, begin, ask } = start(2, { key, grantMs: 1 })
    for (let i = 0; i < 4; i++) await ask(0, 500)
    await node.settle()
    clock.now += 10_000
    node.stalled.add('w2')
    assert.ok(await begin(0))
    assert.equal(await begin(0), undefined)
    node.kill('w2')
  }
})

test('at most one trial request is made at a time whatever the order of messages, and one in the end', async () => {
  const step = fc.record({
    do: fc.constantFrom('begin', 'begin', 'good', 'bad', 'leave', 'wait', 'deliver', 'deliver', 'deliver'),
    n: fc.nat(20),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 100 }), async (steps) => {
      const { node, clock, planes, begin, end } = start(3)
      await node.settle()
      const under: Exchange[] = []
      const waiting: Promise<void>[] = []
      const isTried = ({ ctx }: Exchange): boolean => ctx.found.get('circuit_breaker.decision') === 'allow_while_open'
      for (const { do: what, n } of steps) {
        if (what === 'wait') {
          // Longer than a message takes: planes that have not heard of an opening let one request through each.
          await node.settle()
          clock.now += 4000
        } else if (what === 'deliver') node.deliverOne(n)
        else if (what === 'begin') {
          waiting.push(
            begin(n % planes.length).then((exchange) => {
              if (exchange) under.push(exchange)
            }),
          )
        } else {
          const [exchange] = under.splice(n % Math.max(1, under.length), 1)
          if (exchange) end(exchange, { good: 200, bad: 500, leave: 0 }[what])
        }
        await new Promise((resolve) => setImmediate(resolve))
        assert.ok(under.filter(isTried).length <= 1, 'two trials at once')
      }
      await node.settle()
      await Promise.all(waiting)
      for (const exchange of under) end(exchange, 0)
      await node.settle()
      clock.now += 10_000
      for (const at of planes.keys()) {
        const [exchange] = await Promise.all([begin(at), node.settle()])
        assert.ok(exchange, 'a circuit stayed open')
        end(exchange, 0)
        await node.settle()
      }
    }),
    { numRuns: 100 },
  )
})
