/** Stored logins: made-up users of an own identity provider, and the visitors of another edge. */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { loginAt, loginNode, originOf, placeOf, START } from '../../../src/control-plane/records/testing/test-logins.ts'
import { openStore } from '../../../src/control-plane/store/store.ts'
import { shared } from '../../../src/model/shared.ts'
import { eachStore } from '../../support/databases.ts'

/** The same parts of a smaller bound. */
const MOST = shared.storedLogins.most / 5000

describe('stored logins', () => {
  eachStore((kind) => {
    test('beyond the bound, made-up users of one edge end no login of another', async () => {
      const store = await openStore(await kind.url())
      after(() => store.close())
      const node = await loginNode(store, { maxKept: MOST })
      const begin = (edgeId: string, secret: string, at: number) =>
        node.sessions.begin(placeOf({ secret, edgeId }), loginAt(START + at, { user: { id: secret } }), originOf())
      const visitors = Array.from({ length: MOST / 5 }, (_, i) => `visitor ${i}`)
      for (const [i, secret] of visitors.entries()) await begin('edghts_b', secret, i)
      // All of them come later.
      for (let i = 0; i < 2 * MOST; i++) await begin('edghts_a', `made up ${i}`, 1000 + i)
      await node.upkeep.tidy()
      const left = await store.read(({ logins }) => logins.sessions({ limit: 3 * MOST }))
      assert.equal(left.filter(({ edge_id }) => edge_id === 'edghts_b').length, visitors.length)
      assert.equal(left.length, MOST)
      await node.close()
    })
  })
})
