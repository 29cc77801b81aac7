/** Several tunnels of one owner share one address, at any data planes. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WorkerTunnel } from '../../link/planes/plane-calls.ts'
import { Directory } from './directory.ts'
import { endpointTunnel, onlineSession, poolReservation, poolTunnel, testReservation } from './testing/test-online.ts'

const NAME = 'a.example.com'
const PLACE = `secure:${NAME}`

function quiet() {
  const added: WorkerTunnel[] = []
  const removed: string[] = []
  const directory = new Directory({
    added: async (tunnel) => void added.push(tunnel),
    removed: ({ tunnelId }) => void removed.push(tunnelId),
    sessionOver() {},
  })
  type Terms = Parameters<typeof poolReservation>[3]
  /** A tunnel with a session of its own joins the pool; resolves with whether it may. */
  const join = async (plane: string, n: number, terms?: Terms): Promise<boolean> => {
    directory.sessionStarted(plane, onlineSession(`ts_${n}`))
    const isIn = await directory.reserve(plane, poolReservation(`tn_${n}`, `ts_${n}`, NAME, terms))
    if (isIn) await directory.tunnelStarted(plane, poolTunnel(`tn_${n}`, `ts_${n}`, NAME, terms))
    return isIn
  }
  return { directory, added, removed, join }
}

describe('a pool in the directory', () => {
  test('has members at two planes, and others are told of each with the label of the pool', async () => {
    const { directory, added, join } = quiet()
    assert.deepEqual([await join('w1', 1), await join('w2', 2), await join('w2', 3)], [true, true, true])
    assert.deepEqual(
      added.map(({ tunnelId, planeId, labels, config }) => [tunnelId, planeId, labels, config?.id]),
      [
        ['tn_1', 'w1', { '': 'ep_pool' }, 'ep_pool'],
        ['tn_2', 'w2', { '': 'ep_pool' }, 'ep_pool'],
        ['tn_3', 'w2', { '': 'ep_pool' }, 'ep_pool'],
      ],
    )
    assert.deepEqual(directory.holdersOf(PLACE), ['ts_1', 'ts_2', 'ts_3'])
    assert.deepEqual(
      directory.ofOtherPlanes('w1').map(({ tunnelId }) => tunnelId),
      ['tn_2', 'tn_3'],
    )
    assert.equal(directory.endpoints({ limit: 10 }).length, 3)
    assert.deepEqual(directory.tunnelsWith({ '': 'ep_pool' }), [], 'the label is nobody else’s business')
  })

  test('exists while one member does', async () => {
    const { directory, removed, join } = quiet()
    await join('w1', 1)
    await join('w2', 2)
    directory.tunnelEnded('w1', 'tn_1')
    assert.deepEqual([removed, directory.holdersOf(PLACE)], [['tn_1'], ['ts_2']])
    assert.equal(await directory.reserve('w1', testReservation('tn_3', 'ts_3', NAME)), false)
    directory.detached('w2')
    assert.deepEqual([removed, directory.holdersOf(PLACE)], [['tn_1', 'tn_2'], []])
    assert.equal(await directory.reserve('w1', testReservation('tn_3', 'ts_3', NAME)), true)
  })

  test('refuses a member that differs, and a tunnel that wants the address alone', async () => {
    const { directory, join } = quiet()
    await join('w1', 1)
    for (const plane of ['w1', 'w2']) {
      assert.equal(await join(plane, 2, { version: 'a.b.x' }), false)
      assert.equal(await join(plane, 2, { ownerId: 'usr_2' }), false)
    }
    assert.equal(directory.whyTaken(poolReservation('tn_2', 'ts_2', NAME, { version: 'a.x.c' })), 'policy')
    assert.equal(directory.whyTaken(testReservation('tn_2', 'ts_2', NAME)), 'asks alone')
    assert.equal(directory.whyTaken(poolReservation('tn_2', 'ts_2', NAME)), undefined)
    await directory.reserve('w1', testReservation('tn_9', 'ts_9', 'b.example.com'))
    assert.equal(directory.whyTaken(poolReservation('tn_2', 'ts_2', 'b.example.com')), 'is alone')
  })

  test('takes two tunnels of one session, and keeps the membership of one that comes back', async () => {
    const { directory, removed, join } = quiet()
    await join('w1', 1)
    assert.equal(await directory.reserve('w1', poolReservation('tn_2', 'ts_1', NAME)), true)
    await directory.tunnelStarted('w1', poolTunnel('tn_2', 'ts_1', NAME))
    assert.deepEqual(removed, [])
    assert.equal(await directory.reserve('w2', poolReservation('tn_1', 'ts_1', NAME)), true)
    assert.deepEqual(removed, ['tn_1'])
    assert.equal(directory.heldAddresses(PLACE).length, 2)
  })

  test('ends when its only agent takes the address alone', async () => {
    const { directory, join } = quiet()
    await join('w1', 1)
    assert.equal(await directory.reserve('w1', testReservation('tn_1', 'ts_1', NAME)), true)
    assert.deepEqual(
      directory.heldAddresses(PLACE).map(({ tunnelId, pool }) => [tunnelId, pool]),
      [['tn_1', undefined]],
    )
  })

  test('admits members of a plane that attaches, unless they differ by now', async () => {
    const { directory, join } = quiet()
    await join('w1', 1)
    const attached = directory.attached(
      'w2',
      [onlineSession('ts_2'), onlineSession('ts_3'), onlineSession('ts_4')],
      [
        poolTunnel('tn_2', 'ts_2', NAME),
        poolTunnel('tn_3', 'ts_3', NAME, { version: 'a.b.x' }),
        endpointTunnel('tn_4', 'ts_4', NAME),
      ],
    )
    assert.deepEqual(attached, { sessions: [], tunnels: ['tn_3', 'tn_4'] })
    assert.deepEqual(directory.holdersOf(PLACE), ['ts_1', 'ts_2'])
  })

  test('gives each member an endpoint of its own, with the shared configuration', async () => {
    const { directory, join } = quiet()
    await join('w1', 1)
    await join('w1', 2)
    for (const id of ['ep_1', 'ep_2']) assert.equal(directory.endpointConfig(id)?.id, 'ep_pool')
    assert.equal(directory.endpointAt({ name: NAME }), 'ep_1')
    directory.tunnelEnded('w1', 'tn_1')
    assert.equal(directory.endpointAt({ name: NAME }), 'ep_2')
    assert.equal(directory.endpointConfig('ep_1'), undefined)
  })
})
