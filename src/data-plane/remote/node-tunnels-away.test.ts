/** What a data plane serves of other nodes while the database is away, and when it has just come back. */
import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { TunnelGroup } from '../../model/dial.ts'
import {
  AGED_MS,
  OLD_MS,
  placeOf,
  RemotePlane,
  request,
  settled,
  stream,
  tunnelOf,
} from './testing/test-node-tunnels.ts'

let plane: RemotePlane
beforeEach(() => {
  plane = new RemotePlane()
})
afterEach(() => plane.nodes.close())

const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`
/** After this time, in milliseconds, what nobody has is forgotten, and this is how often that is looked at. */
const FORGOTTEN_MS = 300_000
const TIDY_MS = 30_000
const labels = { app: 'web' }

const node = (nodeId: string, { isUnsure = false } = {}) => ({
  ...{ nodeId, name: nodeId, address: { host: '192.0.2.1', port: 7444 }, agentAddresses: [], isLeaving: false },
  ...(isUnsure && { isUnsure }),
})
const idsIn = ({ members }: { members: readonly { tunnelId: string }[] }) => members.map(({ tunnelId }) => tunnelId)
const lookLater = (): Promise<boolean> => {
  plane.now += OLD_MS
  return plane.look(NAME)
}

/** Another node had the name, and a look-up has found that nobody has it now. */
const hadBefore = async (): Promise<void> => {
  plane.store(placeOf(PLACE))
  await plane.look(NAME)
  plane.stored.clear()
  await lookLater()
}

/** A group with a member at another node until now. */
const emptied = async (): Promise<TunnelGroup> => {
  plane.members = [tunnelOf('tn_1', 'nd_b', labels)]
  const group = plane.nodes.follow(labels)
  await group.found?.()
  plane.members = []
  plane.now += OLD_MS
  await group.found?.()
  return group
}

describe('while nothing can be looked up', () => {
  test('a name that nobody had is served as it was before, and no longer once it is looked up', async () => {
    await hadBefore()
    assert.deepEqual([plane.ids, plane.nodes.isBlind], [[], false])
    plane.isAway = true
    await lookLater()
    assert.deepEqual([plane.ids, plane.nodes.isBlind], [['ep_tn_1'], true])
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
    plane.now += AGED_MS
    assert.equal(await plane.look(NAME), false, 'visitors do not wait for each failure')
    await settled()
    plane.isAway = false
    await lookLater()
    assert.deepEqual(plane.ids, [])
  })

  test('a name that nobody is known to have is unknown, and offline once a look-up has found nobody', async () => {
    const ask = (hasWaited: boolean) => plane.nodes.lookUp('secure', NAME, { hasWaited })
    plane.isAway = true
    await ask(false)
    assert.equal(ask(true), 'busy')
    assert.equal(ask(false), 'busy', 'for the next visitor as well')
    assert.equal(plane.asked.length, 1)
    plane.isAway = false
    await lookLater()
    assert.equal(ask(true), undefined)
    plane.isAway = true
    await lookLater()
    assert.equal(ask(true), 'busy', 'somebody may have come since')
  })

  test('a name that a wildcard here serves stays with it, and that of a known address there', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.covered.add('x.own.test')
    plane.isAway = true
    for (const name of [NAME, 'x.own.test']) {
      plane.now += OLD_MS
      await plane.look(name)
      assert.equal(plane.nodes.lookUp('secure', name, { hasWaited: true }), undefined, name)
    }
  })

  test('a name whose former holder is here is left to this node', async () => {
    await hadBefore()
    plane.here.add('tn_1')
    plane.isAway = true
    await lookLater()
    assert.deepEqual(plane.ids, [])
  })

  test('a name goes to its latest holder', async () => {
    await hadBefore()
    plane.store(placeOf(PLACE, { tunnelId: 'tn_2' }))
    await lookLater()
    plane.stored.clear()
    await lookLater()
    plane.isAway = true
    await lookLater()
    assert.deepEqual(plane.ids, ['ep_tn_2'])
  })

  test('a name that had a holder here since is not served for the former', async () => {
    await hadBefore()
    plane.nodes.cameHere('tn_2', placeOf(PLACE, { tunnelId: 'tn_2' }).config)
    plane.isAway = true
    await lookLater()
    assert.deepEqual(plane.ids, [])
  })

  test('a name that a wildcard serves is left to it', async () => {
    await hadBefore()
    plane.covered.add(NAME)
    plane.isAway = true
    await lookLater()
    assert.deepEqual(plane.ids, [])
  })

  test('a name that nobody has had for long is offline', async (t) => {
    t.mock.timers.enable({ apis: ['setInterval'] })
    const later = new RemotePlane()
    later.store(placeOf(PLACE))
    await later.look(NAME)
    later.stored.clear()
    later.now += OLD_MS
    await later.look(NAME)
    later.now += FORGOTTEN_MS
    t.mock.timers.tick(TIDY_MS)
    later.isAway = true
    await later.look(NAME)
    assert.deepEqual(later.ids, [])
    later.nodes.close()
  })

  test('a group without members has its last ones, even if nobody followed it meanwhile', async () => {
    const group = await emptied()
    assert.deepEqual(idsIn(group), [])
    plane.isAway = true
    plane.now += OLD_MS
    await group.found?.()
    assert.deepEqual(idsIn(group), ['tn_1'])
    group.release()
    assert.deepEqual(plane.groups.find(labels), [])
    const again = plane.nodes.follow(labels)
    await again.found?.()
    assert.deepEqual(idsIn(again), ['tn_1'])
    plane.isAway = false
    plane.now += OLD_MS
    await again.found?.()
    assert.deepEqual(idsIn(again), [])
  })

  test('a group with a member has no others', async () => {
    const group = await emptied()
    plane.groups.add({ id: 'tn_own', httpVersion: 1, labels })
    plane.isAway = true
    plane.now += OLD_MS
    await group.found?.()
    assert.deepEqual(idsIn(group), ['tn_own'])
  })
})

describe('what an unsure node had', () => {
  test('is served until the node is gone', async () => {
    plane.store(placeOf(PLACE), placeOf(':20001', { tunnelId: 'tn_2' }))
    await plane.look(NAME)
    plane.members = [tunnelOf('tn_3', 'nd_b', labels)]
    const group = plane.nodes.follow(labels)
    await group.found?.()
    await plane.nodes.portsChanged({ taken: [placeOf(':20001', { tunnelId: 'tn_2' })], free: [] })
    plane.nodes.nodesChanged([node('nd_b', { isUnsure: true })])
    plane.stored.clear()
    plane.members = []
    await lookLater()
    await group.found?.()
    await plane.nodes.portsChanged({ taken: [], free: [], only: [] })
    assert.deepEqual([plane.ids, idsIn(group)], [['ep_tn_1', 'ep_tn_2'], ['tn_3']])
    plane.nodes.nodesChanged([])
    plane.nodes.nodeGone('nd_b')
    await plane.look(NAME)
    await group.found?.()
    await plane.nodes.portsChanged({ taken: [], free: [], only: [] })
    assert.deepEqual([plane.ids, idsIn(group)], [[], []])
  })

  test('goes to another node that has it by now', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.nodes.nodesChanged([node('nd_b', { isUnsure: true }), node('nd_c')])
    plane.store(placeOf(PLACE, { nodeId: 'nd_c', version: 'v2' }))
    await lookLater()
    assert.equal(await plane.nodes.dial(request('tn_1', 'v2')), stream)
    assert.deepEqual(plane.dialled, ['tn_1@nd_c v2'])
  })
})
