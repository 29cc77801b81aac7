import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { LabelledTunnel } from '../../model/label-groups.ts'
import {
  AGED_MS,
  isOffline,
  isUnknown,
  MANY_NAMES,
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

describe('a name at another node', () => {
  test('is looked up for the first visitor and all who come meanwhile, and then served', async () => {
    plane.store(placeOf(PLACE))
    const waits = await Promise.all([plane.look(NAME), plane.look(NAME)])
    assert.deepEqual([waits, plane.asked.length, plane.ids], [[true, true], 1, ['ep_tn_1']])
    assert.equal(await plane.look(NAME), false)
    assert.equal(plane.asked.length, 1)
    assert.equal(plane.nodes.has('ep_tn_1'), true)
    assert.equal(plane.nodes.has('ep_tn_2'), false)
    assert.deepEqual([plane.nodes.sessionOf('tn_1'), plane.nodes.sessionOf('tn_2')], ['ts_tn_1', undefined])
  })

  test('is used while it is looked up again, but not when it is old', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.now += AGED_MS
    assert.equal(await plane.look(NAME), false)
    await settled()
    assert.equal(plane.asked.length, 2)
    plane.now += OLD_MS
    assert.equal(await plane.look(NAME), true)
    assert.equal(plane.asked.length, 3)
  })

  test('is not looked up when it is served here', async () => {
    plane.own.set(PLACE, 'edghts_1')
    assert.equal(await plane.look(NAME), false)
    assert.deepEqual(plane.asked, [])
  })

  test('is not served when an edge here has it by the time of the answer', async () => {
    plane.store(placeOf(PLACE))
    const held = Promise.withResolvers<void>()
    plane.held = held.promise
    const looked = plane.look(NAME)
    plane.own.set(PLACE, 'ep_own')
    held.resolve()
    await looked
    assert.deepEqual([plane.ids, plane.nodes.has('ep_tn_1')], [[], false])
  })

  test('is served no longer when a look-up finds nobody', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.stored.clear()
    plane.now += OLD_MS
    await plane.look(NAME)
    assert.deepEqual([plane.ids, plane.nodes.has('ep_tn_1')], [[], false])
    assert.equal(plane.nodes.sessionOf('tn_1'), undefined)
  })

  test('is served as it was when it cannot be looked up', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.isAway = true
    plane.now += OLD_MS
    await plane.look(NAME)
    assert.deepEqual(plane.ids, ['ep_tn_1'])
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
    assert.deepEqual(plane.nodes.lookUps, { total: 2, failed: 1 })
    plane.isAway = false
    plane.stored.clear()
    plane.now += OLD_MS
    await plane.look(NAME)
    assert.deepEqual(plane.ids, [])
  })

  test('may belong to a wildcard, and on the plain listener to a name of the secure one', async () => {
    plane.store(placeOf('secure:*.example.com'), placeOf('plain:*.b.test', { tunnelId: 'tn_2' }))
    await plane.look('x.y.example.com')
    assert.deepEqual(plane.ids, ['ep_tn_1'])
    await plane.look('x.b.test')
    assert.deepEqual(plane.ids, ['ep_tn_1'], 'TLS visitors are sent to no plain endpoint')
    await plane.look('x.b.test', 'plain')
    assert.deepEqual(plane.ids, ['ep_tn_1', 'ep_tn_2'])
  })

  test('with very many labels is looked up with only some of its wildcards', async () => {
    plane.store(placeOf('secure:*.example.com'))
    await plane.look(`${'a.'.repeat(60)}example.com`)
    assert.deepEqual(plane.ids, [])
  })

  test('of another agent replaces the former', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.store(placeOf(PLACE, { tunnelId: 'tn_2', version: 'v2' }))
    plane.now += OLD_MS
    await plane.look(NAME)
    assert.deepEqual([plane.ids, plane.version('ep_tn_2')], [['ep_tn_2'], 'v2'])
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), undefined)
  })

  test('that comes to this node is forgotten and left to this node', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.here.add('tn_1')
    plane.nodes.cameHere('tn_1')
    // `letGo` leaves the edge to its other holder, the tunnel here.
    assert.deepEqual([plane.ids, plane.nodes.has('ep_tn_1')], [[], false])
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), undefined)
    // An old row does not count.
    plane.own.clear()
    plane.now += OLD_MS
    await plane.look(NAME)
    assert.equal(plane.nodes.has('ep_tn_1'), false)
  })
})

test('unused names are forgotten in the end', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const idle = new RemotePlane()
  idle.store(placeOf(PLACE), placeOf('secure:b.test', { tunnelId: 'tn_2' }))
  await idle.look(NAME)
  idle.now += 200_000
  await idle.look('b.test')
  idle.now += 200_000
  t.mock.timers.tick(30_000)
  assert.deepEqual(idle.ids, ['ep_tn_2'])
  idle.nodes.close()
})

describe('a dial', () => {
  test('carries the version in which the visitor was let in', async () => {
    plane.store(placeOf(PLACE))
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), undefined, 'no node is known to have it')
    await plane.look(NAME)
    assert.equal(plane.version('ep_tn_1'), 'v1')
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
    assert.deepEqual(plane.dialled, ['tn_1@nd_b v1'])
  })

  test('that is refused leads to one look-up, and to the present place of the tunnel', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.online.clear()
    plane.store(placeOf(PLACE, { nodeId: 'nd_c' }))
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
    assert.deepEqual(plane.dialled, ['tn_1@nd_b v1', 'tn_1@nd_c v1'])
    assert.equal(plane.asked.length, 2)
  })

  test('that is refused fails when a look-up finds no other place', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.online.clear()
    assert.ok(isOffline(await plane.nodes.dial(request('tn_1', 'v1'))))
    // It is dialled again for a moment, since the tunnel may be about to come online there.
    assert.equal(plane.asked.length, plane.dialled.length)
    plane.stored.clear()
    assert.ok(isOffline(await plane.nodes.dial(request('tn_1', 'v1'))))
    assert.deepEqual(plane.ids, [])
  })

  test('succeeds when the agent came back and asked for the same', async () => {
    plane.store(placeOf(PLACE, { guard: 'ada' }))
    await plane.look(NAME)
    plane.store(placeOf(PLACE, { guard: 'ada', version: 'v2' }))
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
    assert.deepEqual(plane.dialled, ['tn_1@nd_b v1', 'tn_1@nd_b v2'])
    assert.equal(plane.version('ep_tn_1'), 'v2')
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
  })

  test('of a visitor who was let in by other rules is refused, by whichever dial found that out', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.store(placeOf(PLACE, { guard: 'ada', version: 'v2' }))
    assert.ok(isOffline(await plane.nodes.dial(request('tn_1', 'v1'))), 'found out by this dial')
    assert.deepEqual(plane.dialled, ['tn_1@nd_b v1'])
    assert.equal(plane.version('ep_tn_1'), 'v2')
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), undefined, 'known before')
    assert.equal(await plane.nodes.dial(request('tn_1', 'v2')), stream)
    plane.store(placeOf(PLACE, { version: 'v3' }))
    plane.now += OLD_MS
    await plane.look(NAME)
    assert.equal(await plane.nodes.dial(request('tn_1', 'v2')), undefined)
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), undefined)
  })

  test('that is refused cannot be reached while nothing can be looked up: it may be anywhere', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    plane.isAway = true
    plane.online.clear()
    assert.ok(isUnknown(await plane.nodes.dial(request('tn_1', 'v1'))))
  })
})

describe('tunnels that are gone', () => {
  test('are looked up before they are used again, and kept connections are not used', async () => {
    plane.store(placeOf(PLACE), placeOf('secure:b.test', { tunnelId: 'tn_2' }))
    await plane.look(NAME)
    await plane.look('b.test')
    plane.store(placeOf(PLACE, { guard: 'ada', version: 'v2' }))
    plane.nodes.gone(['tn_1', 'tn_unknown'])
    assert.ok(plane.moved.includes('tn_1') && !plane.moved.includes('tn_2'))
    assert.equal(await plane.look('b.test'), false)
    assert.equal(await plane.look(NAME), true)
    assert.equal(plane.version('ep_tn_1'), 'v2')
  })

  test('are looked up again when a look-up is under way, which may give an old answer', async () => {
    plane.store(placeOf(PLACE))
    await plane.look(NAME)
    const held = Promise.withResolvers<void>()
    plane.held = held.promise
    plane.now += AGED_MS
    assert.equal(plane.nodes.lookUp('secure', NAME), undefined)
    plane.store(placeOf(PLACE, { guard: 'ada', version: 'v2' }))
    plane.nodes.gone(['tn_1'])
    held.resolve()
    plane.held = undefined
    await settled()
    assert.equal(await plane.look(NAME), true)
    assert.equal(plane.version('ep_tn_1'), 'v2')
  })

  test('are looked up before the next visitor of their groups', async () => {
    plane.members = [tunnelOf('tn_1', 'nd_b', { app: 'web' }), tunnelOf('tn_2', 'nd_b', { app: 'web' })]
    const group = plane.nodes.follow({ app: 'web' })
    await group.found?.()
    plane.nodes.gone(['tn_1'])
    plane.members.shift()
    await group.found?.()
    assert.deepEqual(
      group.members.map(({ tunnelId }) => tunnelId),
      ['tn_2'],
    )
    assert.deepEqual([plane.nodes.sessionOf('tn_1'), plane.nodes.sessionOf('tn_2')], [undefined, 'ts_tn_2'])
  })

  test('are tried where they were while the database is down, since their agents may have come back there', async () => {
    plane.members = [tunnelOf('tn_1', 'nd_b', { app: 'web' }), tunnelOf('tn_2', 'nd_b', { app: 'web' })]
    plane.online.set('tn_1@nd_b', '')
    const group = plane.nodes.follow({ app: 'web' })
    await group.found?.()
    plane.nodes.gone(['tn_1', 'tn_2'])
    plane.isAway = true
    await group.found?.()
    assert.deepEqual(
      group.members.map(({ tunnelId }) => tunnelId),
      ['tn_1', 'tn_2'],
    )
    assert.equal(await plane.nodes.dial(request('tn_1')), stream)
    assert.ok(isUnknown(await plane.nodes.dial(request('tn_2'))))
    assert.deepEqual(plane.dialled, ['tn_1@nd_b', 'tn_2@nd_b'])
  })
})

describe('a node that goes', () => {
  test('has its places looked up again before they are dropped', async () => {
    plane.store(placeOf(PLACE), placeOf('secure:b.test', { tunnelId: 'tn_2', nodeId: 'nd_c' }))
    await plane.look(NAME)
    await plane.look('b.test')
    plane.nodes.nodeGone('nd_b')
    assert.deepEqual(plane.ids, ['ep_tn_1', 'ep_tn_2'])
    assert.equal(await plane.look('b.test'), false)
    plane.stored.delete(PLACE)
    assert.equal(await plane.look(NAME), true)
    assert.deepEqual(plane.ids, ['ep_tn_2'])
  })

  test('has the groups of its members looked up again', async () => {
    plane.members = [tunnelOf('tn_1', 'nd_b', { app: 'web' }), tunnelOf('tn_2', 'nd_c', { app: 'web' })]
    const group = plane.nodes.follow({ app: 'web' })
    await group.found?.()
    plane.nodes.nodeGone('nd_x')
    assert.equal(group.found?.(), undefined)
    plane.nodes.nodeGone('nd_b')
    plane.members.shift()
    await group.found?.()
    assert.deepEqual(
      group.members.map(({ tunnelId }) => tunnelId),
      ['tn_2'],
    )
  })
})

describe('a group', () => {
  const labels = { app: 'web' }
  const member = (id: string, nodeId?: string) => tunnelOf(id, nodeId, labels)
  const idsOf = ({ members }: { members: readonly { tunnelId: string }[] }) => members.map(({ tunnelId }) => tunnelId)

  test('has members at other nodes beside those here, and is looked up as names are', async () => {
    const own: LabelledTunnel = { id: 'tn_own', httpVersion: 1, labels }
    plane.groups.add(own)
    plane.here.add('tn_own')
    // The row of a tunnel that has just come here may still name its former node.
    plane.members = [member('tn_1'), member('tn_own')]
    const group = plane.nodes.follow(labels)
    assert.deepEqual(idsOf(group), ['tn_own'])
    await group.found?.()
    assert.deepEqual(idsOf(group), ['tn_1', 'tn_own'])
    assert.equal(group.found?.(), undefined)
    plane.now += AGED_MS
    plane.members = [member('tn_1'), member('tn_2')]
    assert.equal(group.found?.(), undefined)
    await settled()
    assert.deepEqual(idsOf(group), ['tn_1', 'tn_2', 'tn_own'])
    assert.equal(plane.groupsAsked, 2)
  })

  test('counts a member once when it comes here and goes back', async () => {
    plane.members = [member('tn_1')]
    const group = plane.nodes.follow(labels)
    await group.found?.()
    const own: LabelledTunnel = { id: 'tn_1', httpVersion: 1, labels }
    plane.groups.add(own)
    plane.here.add('tn_1')
    plane.nodes.cameHere('tn_1')
    assert.deepEqual(idsOf(group), ['tn_1'])
    plane.now += OLD_MS
    await group.found?.()
    assert.deepEqual(idsOf(group), ['tn_1'])
    plane.groups.delete(own)
    plane.here.delete('tn_1')
    plane.now += OLD_MS
    await group.found?.()
    assert.deepEqual(idsOf(group), ['tn_1'])
  })

  test('without a member is waited for', async () => {
    const group = plane.nodes.follow(labels)
    await group.found?.()
    assert.equal(group.found?.(), undefined)
    plane.members = [member('tn_1')]
    plane.now += AGED_MS
    await group.found?.()
    assert.deepEqual(idsOf(group), ['tn_1'])
  })

  test('keeps its members when it cannot be looked up', async () => {
    plane.members = [member('tn_1')]
    const group = plane.nodes.follow(labels)
    await group.found?.()
    plane.isAway = true
    plane.now += OLD_MS
    await group.found?.()
    assert.deepEqual(idsOf(group), ['tn_1'])
  })

  test('finds a member that has moved when it is dialled', async () => {
    plane.members = [member('tn_1')]
    const group = plane.nodes.follow(labels)
    await group.found?.()
    plane.members = [member('tn_1', 'nd_c')]
    plane.online.set('tn_1@nd_c', '')
    assert.equal(await plane.nodes.dial(request('tn_1')), stream)
    assert.deepEqual(plane.dialled, ['tn_1@nd_b', 'tn_1@nd_c'])
    assert.deepEqual(idsOf(group), ['tn_1'])
  })

  test('that is no longer followed has no members, and another that shares them keeps them', async () => {
    plane.members = [tunnelOf('tn_1', 'nd_b', { app: 'web', team: 'x' })]
    const [first, again, other] = [labels, labels, { team: 'x' }].map((each) => plane.nodes.follow(each))
    for (const group of [first, again, other]) await group?.found?.()
    first?.release()
    first?.release()
    assert.deepEqual(plane.groups.find(labels).length, 1)
    again?.release()
    assert.deepEqual(plane.groups.find(labels).length, 1, 'it is a member of the other still')
    other?.release()
    assert.deepEqual(plane.groups.find(labels).length, 0)
    assert.equal(await plane.nodes.dial(request('tn_1')), undefined)
  })
})

describe('ports', () => {
  test('of tunnels at other nodes are served until they are free', async () => {
    const [one, two] = [placeOf(':20001'), placeOf(':20002', { tunnelId: 'tn_2' })]
    plane.store(one, two)
    await plane.nodes.portsChanged({ taken: [one, two], free: [] })
    assert.deepEqual(plane.ids, ['ep_tn_1', 'ep_tn_2'])
    assert.equal(await plane.nodes.dial(request('tn_1', 'v1')), stream)
    await plane.nodes.portsChanged({ taken: [], free: [':20001'] })
    assert.deepEqual(plane.ids, ['ep_tn_2'])
  })

  test('missing from the full list are free, and names stay', async () => {
    plane.store(placeOf(PLACE, { tunnelId: 'tn_3' }))
    await plane.look(NAME)
    const [one, two] = [placeOf(':20001'), placeOf(':20002', { tunnelId: 'tn_2' })]
    await plane.nodes.portsChanged({ taken: [one, two], free: [] })
    await plane.nodes.portsChanged({ taken: [], free: [], only: [':20002'] })
    assert.deepEqual(plane.ids, ['ep_tn_2', 'ep_tn_3'])
  })

  test('of tunnels here are left to this node', async () => {
    plane.here.add('tn_1')
    await plane.nodes.portsChanged({ taken: [placeOf(':20001')], free: [] })
    assert.deepEqual(plane.ids, [])
  })

  test('of edges here are left to them', async () => {
    plane.own.set(':20001', 'edgtcp_1')
    await plane.nodes.portsChanged({ taken: [placeOf(':20001')], free: [] })
    assert.deepEqual(plane.ids, [])
  })

  test('that this node lets go of later are served from then on, unless other nodes have let go of them too', async () => {
    plane.here.add('tn_1')
    for (const port of [':20002', ':20003', ':20004']) plane.own.set(port, `ep_${port}`)
    const others = [':20002', ':20003', ':20004'].map((port, i) => placeOf(port, { tunnelId: `tn_${i + 2}` }))
    await plane.nodes.portsChanged({ taken: [placeOf(':20001'), ...others], free: [] })
    await plane.nodes.portsChanged({ taken: [], free: [':20003'] })
    await plane.nodes.portsChanged({ taken: [], free: [], only: [':20001', ':20002'] })
    await plane.nodes.edgeRemoved()
    assert.deepEqual(plane.ids, [])
    plane.here.delete('tn_1')
    await plane.nodes.edgeRemoved()
    assert.deepEqual(plane.ids, ['ep_tn_1'])
    plane.own.clear()
    await plane.nodes.edgeRemoved()
    assert.deepEqual(plane.ids, ['ep_tn_1', 'ep_tn_2'])
  })

  test('are not forgotten with made-up names', async () => {
    await plane.nodes.portsChanged({ taken: [placeOf(':20001')], free: [] })
    for (let i = 0; i < MANY_NAMES; i++) await plane.look(`x${i}.test`)
    assert.deepEqual(plane.ids, ['ep_tn_1'])
  })
})
