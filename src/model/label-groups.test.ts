import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { LabelGroups, type LabelledTunnel } from './label-groups.ts'

function tunnel(id: string, labels: Readonly<Record<string, string>>, httpVersion: 1 | 2 = 1): LabelledTunnel {
  return { id, labels, httpVersion }
}

test('a group has the tunnels that carry all of its labels, oldest first, at every moment', () => {
  const groups = new LabelGroups()
  const web = groups.follow({ app: 'web' })
  const [b, a] = [tunnel('tn_2', { app: 'web', dc: '1' }), tunnel('tn_1', { app: 'web' }, 2)]
  groups.add(b)
  groups.add(tunnel('tn_3', { app: 'db' }))
  groups.add(a)
  const before = web.members
  assert.deepEqual(before, [
    { tunnelId: 'tn_1', httpVersion: 2 },
    { tunnelId: 'tn_2', httpVersion: 1 },
  ])
  groups.delete(a)
  assert.deepEqual(web.members, [{ tunnelId: 'tn_2', httpVersion: 1 }])
  // The list is replaced, never changed, so a list that was read stays as it was.
  assert.equal(before.length, 2)
  const both = groups.follow({ dc: '1', app: 'web' })
  assert.deepEqual(both.members, [{ tunnelId: 'tn_2', httpVersion: 1 }])
})

test('a group is kept until its last follower releases it', () => {
  const groups = new LabelGroups()
  const one = groups.follow({ a: 'b', c: 'd' })
  const two = groups.follow({ c: 'd', a: 'b' })
  one.release()
  one.release()
  groups.add(tunnel('tn_1', { a: 'b', c: 'd' }))
  assert.equal(two.members.length, 1)
  two.release()
  groups.add(tunnel('tn_2', { a: 'b', c: 'd' }))
  assert.equal(two.members.length, 1)
  assert.equal(groups.follow({ a: 'b', c: 'd' }).members.length, 2)
})

test('an empty label set matches nothing, and a label named like a built-in property is an ordinary label', () => {
  const groups = new LabelGroups()
  groups.add(tunnel('tn_1', { a: 'b' }))
  assert.deepEqual(groups.find({}), [])
  assert.deepEqual(groups.find({ toString: 'x' }), [])
  assert.deepEqual(groups.follow({}).members, [])
})

test('whatever tunnels come and go, every group has what a search of all tunnels would find', () => {
  const labels = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'), { minKeys: 1 })
  const steps = fc.array(fc.record({ at: fc.nat({ max: 9 }), labels }), { maxLength: 40 })
  fc.assert(
    fc.property(steps, fc.array(labels, { maxLength: 5 }), (steps, wanted) => {
      const groups = new LabelGroups()
      const online = new Map<number, LabelledTunnel>()
      const followed = wanted.map((each) => ({ each, group: groups.follow(each) }))
      for (const { at, labels } of steps) {
        const present = online.get(at)
        if (present) {
          groups.delete(present)
          online.delete(at)
        } else {
          const fresh = tunnel(`tn_${at}`, labels)
          groups.add(fresh)
          online.set(at, fresh)
        }
        for (const { each, group } of followed) {
          const expected = [...online.values()]
            .filter(({ labels }) => Object.entries(each).every(([key, value]) => labels?.[key] === value))
            .map(({ id }) => id)
            .sort()
          assert.deepEqual(
            group.members.map(({ tunnelId }) => tunnelId),
            expected,
          )
          assert.deepEqual(
            groups.find(each).map(({ id }) => id),
            expected,
          )
        }
      }
    }),
  )
})

test('adding a tunnel costs no more when there are many others', () => {
  const groups = new LabelGroups()
  let looks = 0
  const counted = (id: string, labels: Record<string, string>): LabelledTunnel => {
    const it = { id, httpVersion: 1 }
    const get = (): Record<string, string> => {
      looks++
      return labels
    }
    return Object.defineProperty(it, 'labels', { get }) as unknown as LabelledTunnel
  }
  for (let i = 0; i < 1000; i++) {
    groups.follow({ app: `app-${i}` })
    groups.add(counted(`tn_${i}`, { app: `app-${i}` }))
  }
  looks = 0
  groups.add(counted('tn_x', { app: 'app-7' }))
  assert.ok(looks < 10, String(looks))
})

test('a moving tunnel, listed twice under one id, stays when one of the two goes', () => {
  const groups = new LabelGroups()
  const web = groups.follow({ app: 'web' })
  const [there, here] = [tunnel('tn_1', { app: 'web' }), tunnel('tn_1', { app: 'web' })]
  groups.add(there)
  groups.add(here)
  groups.delete(there)
  groups.delete(there)
  assert.deepEqual(web.members, [{ tunnelId: 'tn_1', httpVersion: 1 }])
  groups.delete(here)
  assert.deepEqual(web.members, [])
})
