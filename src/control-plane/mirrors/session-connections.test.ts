import assert from 'node:assert/strict'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { BindRules } from '../directory/grant-binds.ts'
import { labelTunnel, onlineSession } from '../directory/testing/test-online.ts'
import { sealedBy, testSealer } from '../records/testing/test-rows.ts'
import { openStore, type Store } from '../store/store.ts'
import { AttachedPlanes } from './attached-planes.ts'
import type { SharedCalls } from './shared-calls.ts'
import { TestPlane, testNode } from './testing/test-planes.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

describe('the connections of a session, at the planes of a control plane,', () => {
  eachStore((databases) => {
    let store: Store
    let planes: AttachedPlanes
    const attach = async (id: string, given?: Parameters<TestPlane['attach']>[0]) => {
      const plane = await new TestPlane(planes, id).attach(given)
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

    test('are one, the later, when it comes back at two planes at the same time', async () => {
      const [first, second] = [await attach('w1'), await attach('w2')]
      // Each finds no other connection.
      for (const { link } of [first, second]) assert.deepEqual(await link.ask('returning', { sessionId: 'ts_1' }), [])
      await first.link.ask('sessionStarted', onlineSession('ts_1'))
      await first.link.ask('tunnelStarted', labelTunnel('tn_1', 'ts_1', { app: 'web' }))
      await second.link.ask('sessionStarted', onlineSession('ts_1'))
      await first.until(() => first.ended.length > 0)
      await second.link.ask('mayHaveLeg', { sessionId: 'ts_1', credentialId: 'cr_1' })
      assert.deepEqual([first.ended, second.ended, planes.directory.planeOf('ts_1')], [['ts_1'], [], 'w2'])
      await second.until(() => !second.elsewhere.has('tn_1'))
    })

    test('all end with their credential, also those that the directory does not list', async () => {
      const all = [await attach('w1', { sessions: [onlineSession('ts_1')] }), await attach('w2')]
      planes.endSessionsOf('cr_1', 'its credential was deleted')
      await Promise.all(all.map((each) => each.until(() => each.endedCredentials.length > 0)))
      assert.deepEqual(
        all.map(({ endedCredentials }) => endedCredentials),
        [['cr_1'], ['cr_1']],
      )
    })
  })
})
