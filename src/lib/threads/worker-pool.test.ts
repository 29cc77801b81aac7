import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { until } from '../../../test/support/until.ts'
import type { TestWork } from './testing/test-pool-thread.ts'
import { WorkerPool, WorkRefused, WorkTooHeavy } from './worker-pool.ts'

const entry = new URL('./testing/test-pool-thread.ts', import.meta.url)

function start(
  t: TestContext,
  limitMs?: number,
): { pool: WorkerPool; run: (who: string, work: TestWork) => Promise<unknown> } {
  const pool = new WorkerPool(entry)
  t.after(() => pool.close())
  const lane = pool.lane('test', limitMs === undefined ? {} : { limitMs })
  return { pool, run: (who, work) => lane.run(who, work) }
}

/** Work that waits until the test releases it. */
function gate() {
  const waitAt = new SharedArrayBuffer(8)
  const places = new Int32Array(waitAt)
  return {
    work: { waitAt } satisfies TestWork,
    begun: () => Atomics.load(places, 0),
    open: () => {
      Atomics.store(places, 1, 1)
      Atomics.notify(places, 1)
    },
  }
}

test('no thread runs before there is work, and only one for a single owner, however much work it has', async (t) => {
  const { pool, run } = start(t)
  assert.equal(pool.threads, 0)
  const all = await Promise.all(['1', '2', '3', '4'].map((say) => run('a', { say })))
  assert.deepEqual(all, ['1', '2', '3', '4'])
  assert.equal(pool.threads, 1)
})

test('pieces of one owner run one at a time, and do not make another owner wait', async (t) => {
  const { run } = start(t)
  const { work, begun, open } = gate()
  const mine = [run('a', work), run('a', work), run('a', work)]
  await until('the first has begun', async () => begun() === 1)
  assert.equal(await run('b', { say: 'b' }), 'b')
  assert.equal(await run('b', { say: 'again' }), 'again')
  assert.equal(begun(), 1, 'a second one of the same owner began')
  open()
  assert.deepEqual(await Promise.all(mine), ['went on', 'went on', 'went on'])
})

test('work of one kind waits for no work of another, not even of the same owner', async (t) => {
  const { pool, run } = start(t)
  const other = pool.lane('other')
  const gates = [gate(), gate()]
  const long = gates.map(({ work }, i) => run(`owner ${i}`, work))
  await until('both have begun', async () => gates.every(({ begun }) => begun() === 1))
  assert.equal(await other.run('owner 0', { say: 'other' }), 'other')
  for (const { open } of gates) open()
  assert.deepEqual(await Promise.all(long), ['went on', 'went on'])
})

test('kinds of work share threads', async (t) => {
  const { pool, run } = start(t)
  const other = pool.lane('other')
  assert.equal(await run('a', { say: '1' }), '1')
  assert.equal(await other.run('a', { say: '2' }), '2')
  assert.equal(await run('b', { say: '3' }), '3')
  assert.equal(pool.threads, 1)
})

test('work of a kind that the thread does not know gives an error', async (t) => {
  const { pool, run } = start(t)
  await assert.rejects(pool.lane('none').run('a', {}), /this thread does no work of kind none/)
  assert.equal(await run('a', { say: 'after' }), 'after')
})

test('owners take turns, whoever sent more', async (t) => {
  const { run } = start(t)
  const [one, other] = [gate(), gate()]
  const holding = [run('a', one.work), run('b', other.work)]
  const order: string[] = []
  const note = (who: string): Promise<unknown> => run(who, { say: who }).then((said) => order.push(String(said)))
  const all = ['c', 'c', 'c', 'd', 'e'].map(note)
  // One of the two threads stays busy, so the other one sets the order.
  one.open()
  await Promise.all(all)
  assert.deepEqual(order, ['c', 'd', 'e', 'c', 'c'])
  other.open()
  await Promise.all(holding)
})

test('work without an end is ended, and its owner is served again', async (t) => {
  const { run } = start(t, 100)
  const spinning = run('a', { spin: true })
  const next = run('a', { say: 'after' })
  await assert.rejects(spinning, (error) => error instanceof WorkTooHeavy && error.limit === 'time')
  assert.equal(await next, 'after')
})

test('work that had to wait for the CPU gets its full time, and work that waits for ever is ended', async (t) => {
  const { run } = start(t, 300)
  await run('a', { say: 'ready' })
  const usage = t.mock.method(Worker.prototype, 'cpuUsage', async () => ({ user: 0, system: 0 }))
  const { work, open } = gate()
  const patient = run('a', work)
  // Measured once at its start, and again when its time was over by the clock.
  await until('its CPU time was measured', async () => usage.mock.callCount() > 1)
  open()
  assert.equal(await patient, 'went on')
  await assert.rejects(run('a', gate().work), (error) => error instanceof WorkTooHeavy && error.limit === 'time')
  assert.equal(await run('a', { say: 'after' }), 'after')
})

test('a thread that does not answer is ended', async (t) => {
  const { run } = start(t, 100)
  await assert.rejects(run('a', gate().work), (error) => error instanceof WorkTooHeavy && error.limit === 'time')
  assert.equal(await run('a', { say: 'after' }), 'after')
})

test('work that uses too much memory is ended, and nothing else', async (t) => {
  const { run } = start(t, 60_000)
  const hoarding = run('a', { hoard: true })
  await assert.rejects(hoarding, (error) => error instanceof WorkTooHeavy && error.limit === 'memory')
  assert.equal(await run('a', { say: 'after' }), 'after')
})

test('work that throws gives an error, and its thread runs on', async (t) => {
  const { pool, run } = start(t)
  await assert.rejects(run('a', { fail: 'no good' }), /a thread failed: Error: no good/)
  assert.equal(await run('a', { say: 'after' }), 'after')
  assert.equal(pool.threads, 1)
})

test('a limited amount of work may wait, and that of another owner is still accepted', async (t) => {
  const { run } = start(t)
  const { work, open } = gate()
  const taken = [run('a', work), ...Array.from({ length: 256 }, () => run('a', { say: 'waited' }))]
  assert.equal(await run('b', { say: 'b' }), 'b')
  // The oldest one gives way to a later one of its owner.
  const [, oldest] = taken
  taken.push(run('a', { say: 'later' }))
  await assert.rejects(oldest ?? Promise.resolve(), WorkRefused)
  open()
  const outcomes = await Promise.allSettled(taken)
  assert.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 257)
})

test('of more work than may wait, the owner with most of it gives up', async (t) => {
  const { run } = start(t)
  const gates = [gate(), gate()]
  const busy = gates.map(({ work }, i) => run(`busy ${i}`, work))
  const taken = Promise.allSettled(Array.from({ length: 256 }, () => run('a', { say: '' })))
  const others = Array.from({ length: 64 }, (_, i) => run(`owner ${i % 4}`, { say: '' }))
  for (const { open } of gates) open()
  await Promise.all([...busy, ...others])
  const outcomes = await taken
  assert.equal(outcomes.filter(({ status }) => status === 'rejected').length, 64)
})

test('work that waits at the close is refused', async (t) => {
  const { pool, run } = start(t)
  const { work, begun } = gate()
  const first = run('a', work)
  const second = run('a', { say: 'never' })
  const outcomes = Promise.allSettled([first, second])
  await until('the first has begun', async () => begun() === 1)
  await pool.close()
  const [one, two] = await outcomes
  assert.equal(one.status, 'rejected')
  assert.ok(two.status === 'rejected' && two.reason instanceof WorkRefused)
  await assert.rejects(run('a', { say: 'late' }), WorkRefused)
})
