import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Shares } from './shares.ts'

/** Takes places one by one for an owner until it is refused; gives how many it has then. */
function fill(shares: Shares, owner: string, most = 1000): number {
  for (let i = 0; i < most; i++) if (!take(shares, owner)) break
  return shares.heldBy(owner)
}

function take(shares: Shares, owner: string): boolean {
  for (let giver = shares.giver(owner); giver !== undefined; giver = shares.giver(owner)) {
    if (giver === owner) return false
    shares.add(giver, -1)
  }
  shares.add(owner, 1)
  return true
}

test('an owner that is alone has all of it', () => {
  assert.equal(fill(new Shares(100), 'a'), 100)
})

test('while there is no room left, others get up to a quarter each from the largest', () => {
  const shares = new Shares(100)
  fill(shares, 'a')
  assert.equal(fill(shares, 'b'), 25)
  assert.equal(fill(shares, 'c'), 25)
  assert.equal(shares.heldBy('a'), 50)
  assert.equal(fill(shares, 'a'), 50, 'it does not get back what others have')
  assert.equal(fill(shares, 'd'), 25)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((owner) => shares.heldBy(owner)),
    [25, 25, 25, 25],
  )
  assert.equal(fill(shares, 'e'), 20, 'five have a fifth each, and none takes more')
  assert.equal(shares.used, 100)
})

test('bytes are shared like places', () => {
  const shares = new Shares(1000)
  shares.add('a', 1000)
  assert.equal(shares.giver('b', 250), 'a')
  assert.equal(shares.giver('b', 251), 'b')
})

test('however owners come and go, the room is never exceeded, and whoever has less than the others gets some', () => {
  const step = fc.record({ owner: fc.nat(8), gives: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400 }), fc.integer({ min: 8, max: 60 }), (steps, room) => {
      const shares = new Shares(room)
      for (const { owner, gives } of steps) {
        const name = `o${owner}`
        if (gives) shares.add(name, -Math.min(1, shares.heldBy(name)))
        else take(shares, name)
        assert.ok(shares.used <= room)
      }
      assert.ok(take(shares, 'new'), 'a newcomer gets a place')
    }),
  )
})
