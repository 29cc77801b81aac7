/** The host key of the SSH gateway: one for each database, the same after a restart, and never in the log. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startPlatform } from '../support/platform.ts'

let dataDir = ''
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'postern-host-key-'))
})
after(() => rm(dataDir, { recursive: true, force: true }))

async function fingerprintAt(folder: string): Promise<string> {
  const platform = await startPlatform({ dataDir: folder })
  try {
    const ready = (await (await fetch(`${platform.url}/readyz`)).json()) as { ssh_host_key: string }
    const { info } = (await (await fetch(`${platform.url}/openapi.json`)).json()) as { info: { description: string } }
    assert.ok(info.description.includes(`\`${ready.ssh_host_key}\``), 'the docs page shows it too')
    assert.ok(!platform.log.join('\n').includes('PRIVATE KEY'))
    return ready.ssh_host_key
  } finally {
    await platform.stop()
  }
}

test('the same database has the same host key after a restart, and another database has another one', async () => {
  const first = await fingerprintAt(dataDir)
  assert.match(first, /^SHA256:[A-Za-z0-9+/]{43}$/)
  assert.equal(await fingerprintAt(dataDir), first)
  assert.notEqual(await fingerprintAt(join(dataDir, 'other')), first)
})
