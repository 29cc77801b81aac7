import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { BindRules } from '../directory/grant-binds.ts'
import { onlineSession } from '../directory/testing/test-online.ts'
import { sealedBy, testSealer } from '../records/testing/test-rows.ts'
import { openStore, type Store } from '../store/store.ts'
import { AttachedPlanes } from './attached-planes.ts'
import type { SharedCalls } from './shared-calls.ts'
import { TestPlane, testNode } from './testing/test-planes.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

/** Longer than legs of unknown sessions are kept, in milliseconds. */
const LONG_MS = 20_000

describe('legs at the planes of a control plane', () => {
  eachStore((databases) => {
    let store: Store
    let planes: AttachedPlanes
    const attach = async (id: string, given?: Parameters<TestPlane['attach']>[0], own?: object) => {
      const plane = await new TestPlane(planes, id, own).attach(given)
      await plane.ready()
      return plane
    }
    before(async () => {
      store = await sealedBy(await openStore(await databases.url()))
    })
    after(() => store.close())
    beforeEach(() => {
      const calls = { secrets: () => assert.fail() } as unknown as SharedCalls
      const bindRules = {} as BindRules
      const checkCredentials = async () => {}
      planes = new AttachedPlanes({
        store,
        sealer: testSealer,
        log,
        node: testNode,
        calls,
        bindRules,
        checkCredentials,
      })
    })
    afterEach(() => planes.close())

    test('may belong to an online session with the same credential', async () => {
      const [first, second] = [await attach('w1'), await attach('w2')]
      first.link.tell('sessionStarted', onlineSession('ts_1', 'cr_1'))
      const asked = (sessionId: string, credentialId: string) =>
        second.link.ask('mayHaveLeg', { sessionId, credentialId })
      await first.link.ask('mayHaveLeg', { sessionId: 'ts_1', credentialId: 'cr_1' })
      assert.equal(await asked('ts_1', 'cr_1'), true)
      assert.equal(await asked('ts_1', 'cr_2'), false)
      assert.equal(await asked('ts_2', 'cr_1'), false)
      first.link.tell('sessionEnded', { sessionId: 'ts_1' })
      await second.until(() => second.endedLegs.length > 0)
      assert.equal(await asked('ts_1', 'cr_1'), false)
    })

    test('are ended with the session, however it ends', async () => {
      const second = await attach('w2')
      const ended = async () => {
        await second.until(() => second.endedLegs.length > 0)
        assert.deepEqual([...new Set(second.endedLegs.splice(0))], ['ts_1'])
      }
      const first = await attach('w1', { sessions: [onlineSession('ts_1')] })
      await first.link.ask('returning', { sessionId: 'ts_1' })
      await ended()
      first.link.tell('sessionStarted', onlineSession('ts_1'))
      await first.link.ask('mayHaveLeg', { sessionId: 'ts_1', credentialId: 'cr_1' })
      planes.endSessionsOf('cr_1', 'its credential was deleted')
      await ended()
      first.link.close()
      // A plane that is stuck does not report it.
      const stuck = await attach('w3', { sessions: [onlineSession('ts_1')] }, { endSession() {} })
      planes.endSessionsOf('cr_1', 'its credential was deleted')
      await ended()
      stuck.link.close()
      await ended()
    })

    test('are not ended with a connection that their session has left', async () => {
      const [first, second] = [await attach('w1', { sessions: [onlineSession('ts_1')] }), await attach('w2')]
      await first.link.ask('leaving', null)
      await second.link.ask('returning', { sessionId: 'ts_1', isMoving: true })
      second.link.tell('sessionStarted', onlineSession('ts_1'))
      first.link.tell('sessionEnded', { sessionId: 'ts_1' })
      await first.link.ask('mayHaveLeg', { sessionId: 'ts_1', credentialId: 'cr_1' })
      await second.link.ask('mayHaveLeg', { sessionId: 'ts_1', credentialId: 'cr_1' })
      assert.deepEqual([...first.endedLegs, ...second.endedLegs], [])
    })

    test('of sessions that ended unnoticed are ended a while after their plane attached', async (t) => {
      const reported: string[] = []
      const endLegs = ({ sessionId }: { sessionId: string }) => void reported.push(sessionId)
      await new Promise((resolve) => setImmediate(resolve))
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const second = await new TestPlane(planes, 'w2', { endLegs }).attach({ legs: ['ts_1', 'ts_gone'] })
      // This plane attaches later, with the session.
      await new TestPlane(planes, 'w1').attach({ sessions: [onlineSession('ts_1')] })
      assert.deepEqual(reported, [])
      t.mock.timers.tick(LONG_MS)
      await second.until(() => reported.length > 0)
      assert.deepEqual(reported, ['ts_gone'])
      t.mock.timers.reset()
    })
  })
})
