import assert from 'node:assert/strict'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startPlatform } from '../support/platform.ts'

test('a start logs one line about a key file and a data folder that other users can read', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'postern-open-'))
  t.after(() => rm(dataDir, { recursive: true, force: true }))
  const warned = async () => {
    const platform = await startPlatform({ dataDir })
    await platform.stop()
    const events = platform.log.map((line) => JSON.parse(line) as { msg: string; open?: readonly string[] })
    return events.filter(({ msg }) => msg.includes('chmod')).map(({ open }) => open)
  }
  assert.deepEqual(await warned(), [])
  await chmod(dataDir, 0o755)
  const keyFile = join(dataDir, 'secret.key')
  await chmod(keyFile, 0o644)
  assert.deepEqual(await warned(), [[keyFile, dataDir]])
})
