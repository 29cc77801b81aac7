import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KeyOwners } from './key-owners.ts'

const keys = Array.from({ length: 3000 }, (_, i) => `edghts_${i % 7} rt_${i} key`)

/** The owner of each key, as each of the planes sees it. */
function seenBy(planes: readonly string[]): string[][] {
  return planes.map((self) => {
    const owners = new KeyOwners({ self })
    owners.use(planes.filter((each) => each !== self).reverse())
    return keys.map((key) => owners.ownerAmongPeers(key) ?? self)
  })
}

test('all planes agree on the owners, and own about equally many keys', () => {
  const [first, ...others] = seenBy(['w1', 'w2', 'w3', 'w17'])
  for (const each of others) assert.deepEqual(each, first)
  for (const plane of ['w1', 'w2', 'w3', 'w17']) {
    const share = (first ?? []).filter((owner) => owner === plane).length / keys.length
    assert.ok(share > 0.2 && share < 0.3, `${plane} has ${share}`)
  }
})

test('when a plane comes, keys move to it and nowhere else', () => {
  const [before = []] = seenBy(['w1', 'w2', 'w3'])
  const [after = []] = seenBy(['w1', 'w2', 'w3', 'w4'])
  for (const [i, owner] of after.entries()) assert.ok(owner === before[i] || owner === 'w4')
})

test('a plane owns everything when alone, and nothing without itself', () => {
  const owners = new KeyOwners({ self: 'w1' })
  assert.equal(owners.ownerAmongPeers('a'), undefined)
  owners.use(['w2'], { withSelf: false })
  for (const key of keys) assert.equal(owners.ownerAmongPeers(key), 'w2')
  owners.use([], { withSelf: false })
  assert.equal(owners.ownerAmongPeers('a'), undefined)
})
