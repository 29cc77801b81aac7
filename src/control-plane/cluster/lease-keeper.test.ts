import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { eachStore } from '../../../test/support/databases.ts'
import { until } from '../../../test/support/until.ts'
import { createLog } from '../../lib/log/create-log.ts'
import { openStore } from '../store/store.ts'
import { nodeAt } from '../store/testing/test-online-rows.ts'
import { LeaseKeeper } from './lease-keeper.ts'
import { LEASE_MS } from './node-lease.ts'

const log = createLog({ level: 'silent', format: 'json', destination: { write() {} } })

/** A program that ends when the lease has been prolonged twice. */
const watch = `
import { Client } from 'pg'
const client = new Client({ connectionString: process.argv[1] })
await client.connect()
const read = async () => (await client.query("select expires_at from nodes where id = 'nd_1'")).rows[0].expires_at
for (let last = await read(), changes = 0; changes < 2; ) {
  await new Promise((resolve) => setTimeout(resolve, 100))
  const now = await read()
  if (now === last) continue
  last = now
  changes++
}
await client.end()
`

describe('the lease of a node', () => {
  eachStore(
    (databases) => {
      test('is kept while its process is busy without a pause, and not taken anew', async (t) => {
        const url = await databases.url()
        const store = await openStore(url)
        t.after(() => store.close())
        await store.write(({ online }) => online.renew(nodeAt('nd_1'), LEASE_MS))
        const keeper = new LeaseKeeper({ databaseUrl: url, nodeId: 'nd_1', log })
        t.after(() => keeper.close())
        const left = async () => (await store.read(({ online }) => online.nodes()))[0]?.leaseMs ?? 0
        let last = await left()
        await until('the thread runs', async () => {
          const before = last
          last = await left()
          return last > before
        })
        // Nothing else runs here until the other program ends.
        const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', watch, '--', url], {
          encoding: 'utf8',
        })
        assert.equal(status, 0, stderr)
        assert.ok((await left()) > 0)
        await store.write(({ online }) => online.renew(nodeAt('nd_1'), 0))
        const asked = await left()
        assert.equal(asked, 0)
        await keeper.close()
        assert.equal(await left(), 0)
      })
    },
    ['postgres'],
  )
})
