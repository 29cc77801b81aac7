import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Directory } from './directory.ts'
import { endpointTunnel, labelTunnel, onlineSession, testReservation } from './testing/test-online.ts'

/** A directory, and the messages it has sent since the last check. */
const quiet = () => {
  const heard: string[] = []
  const directory = new Directory({
    added: async ({ tunnelId, planeId }) => void heard.push(`+${tunnelId}@${planeId}`),
    sessionOver() {},
    removed: ({ tunnelId, planeId, isLost }) => void heard.push(`${isLost ? '?' : '-'}${tunnelId}@${planeId}`),
  })
  const news = () => heard.splice(0)
  return { directory, news }
}

describe('the directory, for a session that moves away from a draining plane', () => {
  const moving = async () => {
    const made = quiet()
    const { directory, news } = made
    directory.sessionStarted('w1', onlineSession('ts_1'))
    await directory.reserve('w1', testReservation('tn_1', 'ts_1', 'a.example.com'))
    await directory.tunnelStarted('w1', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
    await directory.tunnelStarted('w1', labelTunnel('tn_2', 'ts_1', { app: 'web' }))
    assert.equal(directory.movingLabels('ts_1'), undefined, 'it does not drain yet')
    directory.leaving('w1')
    news()
    return made
  }
  const at = ({ directory }: Awaited<ReturnType<typeof moving>>, plane: string) =>
    directory
      .ofPlane(plane)
      .map(({ tunnelId }) => tunnelId)
      .sort()
  const all = { limit: 10 }

  test('keeps each tunnel where it is until it is online at the new plane', async () => {
    const made = await moving()
    const { directory, news } = made
    const labels = { app: 'web' }
    assert.deepEqual(directory.movingLabels('ts_1'), [{ id: 'tn_2', labels, startedAt: 1 }])
    directory.sessionStarted('w2', onlineSession('ts_1'))
    assert.equal(directory.planeOf('ts_1'), 'w2')
    assert.equal(directory.sessions(all).length, 1)
    assert.deepEqual([at(made, 'w1'), at(made, 'w2')], [['tn_1', 'tn_2'], []])
    assert.equal(await directory.reserve('w2', testReservation('tn_1', 'ts_1', 'a.example.com')), true)
    assert.deepEqual(news(), [], 'nobody is sent to a tunnel that is not there yet')
    assert.equal(await directory.reserve('w3', testReservation('tn_9', 'ts_9', 'a.example.com')), false)
    await directory.tunnelStarted('w2', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
    await directory.tunnelStarted('w2', labelTunnel('tn_2', 'ts_1', labels))
    assert.deepEqual(news(), ['+tn_1@w2', '+tn_2@w2'])
    assert.deepEqual([directory.tunnels(all).length, directory.endpoints(all).length], [2, 1])
    assert.deepEqual(directory.tunnelsWith(labels), ['tn_2'])
    // Late messages of the former plane are ignored.
    directory.sessionEnded('w1', 'ts_1', { isLost: true })
    for (const id of ['tn_1', 'tn_2']) directory.tunnelEnded('w1', id)
    directory.detached('w1')
    assert.deepEqual(news(), [])
    assert.deepEqual(at(made, 'w2'), ['tn_1', 'tn_2'])
    directory.sessionEnded('w2', 'ts_1')
    assert.deepEqual(news().sort(), ['-tn_1@w2', '-tn_2@w2'])
    assert.deepEqual(directory.sessionsOf('cr_1'), [])
  })

  test('gives the same ids again when the session moves on before all its tunnels have come', async () => {
    const made = await moving()
    const { directory } = made
    directory.sessionStarted('w2', onlineSession('ts_1'))
    directory.leaving('w2')
    assert.deepEqual(
      directory.movingLabels('ts_1')?.map(({ id }) => id),
      ['tn_2'],
    )
    directory.sessionStarted('w3', onlineSession('ts_1'))
    assert.ok(await directory.reserve('w3', testReservation('tn_1', 'ts_1', 'a.example.com')))
    await directory.tunnelStarted('w3', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
    directory.sessionEnded('w3', 'ts_1')
    assert.deepEqual([at(made, 'w1'), at(made, 'w3')], [['tn_2'], []], 'what has not come over is where it was')
  })

  test('lets visitors wait when the former plane is gone before the tunnel is there', async () => {
    const { directory, news } = await moving()
    directory.sessionStarted('w2', onlineSession('ts_1'))
    await directory.reserve('w2', testReservation('tn_1', 'ts_1', 'a.example.com'))
    directory.tunnelEnded('w1', 'tn_1')
    assert.deepEqual(news(), ['?tn_1@w1'])
    assert.deepEqual(directory.holdersOf('secure:a.example.com'), ['ts_1'])
    assert.equal(await directory.reserve('w3', testReservation('tn_9', 'ts_9', 'a.example.com')), false)
    await directory.tunnelStarted('w2', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
    assert.deepEqual(news(), ['+tn_1@w2'])
  })

  test('keeps the session where it was when the new plane is gone or gives up', async () => {
    for (const isGone of [true, false]) {
      const made = await moving()
      const { directory, news } = made
      directory.sessionStarted('w2', onlineSession('ts_1'))
      await directory.reserve('w2', testReservation('tn_1', 'ts_1', 'a.example.com'))
      if (isGone) directory.detached('w2')
      else directory.release('w2', { place: 'secure:a.example.com', tunnelId: 'tn_1' })
      assert.deepEqual(news(), [])
      assert.deepEqual(at(made, 'w1'), ['tn_1', 'tn_2'])
      directory.sessionStarted('w3', onlineSession('ts_1'))
      assert.equal(await directory.reserve('w3', testReservation('tn_1', 'ts_1', 'a.example.com')), true)
      await directory.tunnelStarted('w3', endpointTunnel('tn_1', 'ts_1', 'a.example.com'))
      assert.deepEqual(news().at(-1), '+tn_1@w3')
    }
  })

  test('agrees in a new control plane, whichever plane attaches first', () => {
    const sessions = [onlineSession('ts_1')]
    const moved = endpointTunnel('tn_1', 'ts_1', 'a.example.com')
    const left = labelTunnel('tn_2', 'ts_1', { app: 'web' })
    for (const isFormerFirst of [true, false]) {
      const { directory } = quiet()
      const former = () => {
        directory.leaving('w1')
        return directory.attached('w1', sessions, [moved, left])
      }
      const latter = () => directory.attached('w2', sessions, [moved])
      const found = isFormerFirst ? [former(), latter()] : [latter(), former()]
      assert.deepEqual(found, [
        { sessions: [], tunnels: [] },
        { sessions: [], tunnels: [] },
      ])
      assert.equal(directory.planeOf('ts_1'), 'w2')
      assert.deepEqual(
        directory
          .ofOtherPlanes('w3')
          .map(({ tunnelId, planeId }) => `${tunnelId}@${planeId}`)
          .sort(),
        ['tn_1@w2', 'tn_2@w1'],
      )
    }
  })
})
