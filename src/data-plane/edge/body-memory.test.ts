import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type BodyHolder, type BodyLease, BodyMemory, bodyMemoryOf } from './body-memory.ts'

/** Takes a byte at a time until it gets none, and returns how many it got. */
function takeAll(memory: BodyMemory, holder: BodyHolder): number {
  const lease = memory.lease(holder)
  let taken = 0
  while (lease.take(1)) taken++
  return taken
}

/** This many visitors of an edge, each with its own address, take all that they can. */
function crowd(memory: BodyMemory, edgeId: string, visitors: number): number {
  let taken = 0
  for (let i = 0; i < visitors; i++) taken += takeAll(memory, { edgeId, ip: `${edgeId}.${i}` })
  return taken
}

const MIB = 1024 * 1024

describe('the memory for bodies', () => {
  test('of one of many planes has room for the largest body of a source', () => {
    for (const planes of [1, 2, 8, 64]) {
      const memory = new BodyMemory({ bytes: bodyMemoryOf(64 * MIB, planes) })
      assert.ok(memory.lease({ edgeId: 'a', ip: '192.0.2.1' }).take(11 * MIB), `${planes}`)
    }
    assert.equal(bodyMemoryOf(1000 * MIB, 4), 250 * MIB)
    assert.equal(bodyMemoryOf(8 * MIB, 4), 8 * MIB)
  })

  test('may be made smaller and larger while some of it is held', () => {
    const memory = new BodyMemory({ bytes: 6400 })
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '192.0.2.1' }), 1600)
    memory.use(800)
    assert.equal(takeAll(memory, { edgeId: 'b', ip: '192.0.2.2' }), 0)
    assert.equal(memory.used, 1600)
    memory.use(6400)
    assert.equal(takeAll(memory, { edgeId: 'b', ip: '192.0.2.2' }), 1200)
  })

  test('gives one source a quarter, and the next a quarter of the rest', () => {
    const memory = new BodyMemory({ bytes: 6400 })
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '192.0.2.1' }), 1600)
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '192.0.2.1' }), 0)
    assert.equal(takeAll(memory, { edgeId: 'b', ip: '192.0.2.1' }), 0)
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '192.0.2.2' }), 1200)
    assert.equal(memory.used, 2800)
    assert.equal(memory.refusals, 4)
  })

  test('gives one edge a half, however many visit it, and leaves the other half to others', () => {
    const memory = new BodyMemory({ bytes: 6400 })
    assert.equal(crowd(memory, 'a', 1000), 3200)
    assert.equal(crowd(memory, 'b', 1000), 1600)
    assert.equal(crowd(memory, 'c', 1000), 800)
    assert.ok(memory.used < 6400)
  })

  test('treats an IPv6 network as one source, and its neighbour as another', () => {
    const memory = new BodyMemory({ bytes: 6400 })
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '2001:db8::1' }), 1600)
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '2001:db8:0:0:ffff::2' }), 0)
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '2001:db8:0:1::1' }), 1200)
  })

  test('is returned once, and a lease that is over takes nothing', () => {
    const memory = new BodyMemory({ bytes: 6400 })
    const [one, two] = [1, 2].map(() => memory.lease({ edgeId: 'a', ip: '192.0.2.1' })) as [BodyLease, BodyLease]
    assert.ok(one.take(500))
    assert.ok(two.take(300))
    one.give(100)
    assert.equal(memory.used, 700)
    one.release()
    one.release()
    one.give(100)
    assert.equal(one.take(1), false)
    assert.equal(memory.used, 300)
    assert.equal(memory.refusals, 0)
    two.release()
    assert.equal(memory.used, 0)
    assert.equal(takeAll(memory, { edgeId: 'a', ip: '192.0.2.1' }), 1600)
  })

  test('is what all leases hold together, and never more than there is', () => {
    const step = fc.record({
      lease: fc.nat({ max: 9 }),
      act: fc.constantFrom('take' as const, 'take' as const, 'give' as const, 'release' as const),
      bytes: fc.nat({ max: 400 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const memory = new BodyMemory({ bytes: 1000 })
        const leases = Array.from({ length: 10 }, (_, i) =>
          memory.lease({ edgeId: `e${i % 3}`, ip: `10.0.0.${i % 4}` }),
        )
        const held = leases.map(() => 0)
        for (const { lease, act, bytes } of steps) {
          const before = held[lease] ?? 0
          if (act === 'take') held[lease] = leases[lease]?.take(bytes) ? before + bytes : before
          else if (act === 'give') {
            leases[lease]?.give(bytes)
            held[lease] = Math.max(0, before - bytes)
          } else {
            leases[lease]?.release()
            held[lease] = 0
          }
          assert.equal(
            memory.used,
            held.reduce((sum, each) => sum + each, 0),
          )
          assert.ok(memory.used <= 1000)
        }
        for (const lease of leases) lease.release()
        assert.equal(memory.used, 0)
      }),
    )
  })
})
