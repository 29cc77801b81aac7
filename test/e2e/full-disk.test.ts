/** A full disk: writes say so, readiness shows it, visitors are served, and all works again once there is space. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startPlatform } from '../support/platform.ts'
import { smallDisk } from '../support/small-disk.ts'

test('a full disk is named by each write and by /readyz, and balancers keep sending visitors', async (t) => {
  const disk = smallDisk(t, 16)
  if (typeof disk === 'string') return t.skip(disk)
  const platform = await startPlatform({ databaseUrl: `sqlite:${join(disk.path, 'postern.db')}` })
  t.after(() => platform.stop())
  const status = async (path: string) => (await fetch(`${platform.url}${path}`)).status
  const write = () => platform.admin.send('POST', '/ip_policies', { body: { metadata: 'm'.repeat(4000) } })
  assert.equal(await status('/readyz'), 200)

  disk.fill()
  let refused = await write()
  // What the write-ahead log has room for is still stored.
  while (refused.status === 201) refused = await write()
  assert.equal(refused.status, 503)
  assert.equal(refused.body.error_code, 'ERR_STORE_UNAVAILABLE')
  assert.match(refused.body.msg, /^The disk of the database is full: nothing is stored/)
  assert.equal((await platform.admin.send('GET', '/ip_policies')).status, 200)
  assert.equal(await status('/readyz'), 503)
  assert.equal(await status('/readyz?for=visitors'), 200)
  assert.equal(await status('/readyz?for=others'), 503)

  disk.free()
  assert.equal(await status('/readyz'), 200)
  assert.equal((await write()).status, 201)
})
