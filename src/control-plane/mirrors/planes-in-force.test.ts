import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { createLog } from '../../lib/log/create-log.ts'
import type { BindRules } from '../directory/grant-binds.ts'
import { edge, sealedBy, storeRows, testSealer } from '../records/testing/test-rows.ts'
import { openStore, type Store } from '../store/store.ts'
import { AttachedPlanes } from './attached-planes.ts'
import type { SharedCalls } from './shared-calls.ts'
import { TestPlane, testNode } from './testing/test-planes.ts'

const log = createLog({ level: 'silent' })
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('a write', () => {
  eachStore((databases) => {
    let store: Store
    let planes: AttachedPlanes
    before(async () => {
      store = await sealedBy(await openStore(await databases.url()))
      await storeRows(store, [edge('edgtls_1', 'tls_edge', ['one.example.com:443'])])
      planes = new AttachedPlanes({
        ...{ store, sealer: testSealer, log, node: testNode },
        calls: { secrets: () => assert.fail() } as unknown as SharedCalls,
        bindRules: {} as BindRules,
        checkCredentials: async () => {},
      })
    })
    after(async () => {
      await planes.close()
      await store.close()
    })

    const attach = async (id: string, own?: object) => {
      const plane = await new TestPlane(planes, id, own).attach()
      await plane.ready()
    }

    /** On a busy machine a plane may be late, and nobody waits for it until it has caught up. */
    const untilInForce = async () => {
      while (!(await planes.inForce())) await settled()
    }

    test('is in force when every plane has acknowledged it, compiled edges included', async () => {
      await attach('quick')
      const compiled = Promise.withResolvers<void>()
      const asked = Promise.withResolvers<void>()
      await attach('slow', {
        edges: async ({ applied }: { applied: readonly { id: string }[] }) => applied.map(({ id }) => id),
        edgesSettled: () => {
          asked.resolve()
          return compiled.promise
        },
      })
      await untilInForce()
      await store.write(async (writer) => writer.changed('tls_edge', 'edgtls_1'))
      const answer = planes.inForce()
      await asked.promise
      assert.notEqual(await Promise.race([answer, settled()]), true)
      compiled.resolve()
      await answer
      await untilInForce()
    })
  })
})
