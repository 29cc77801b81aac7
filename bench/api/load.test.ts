import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStore } from '../../src/control-plane/store/store.ts'
import { loadEdges } from './load.ts'

test('the requested number of edges is stored, over several transactions', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-load-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const url = `sqlite:${join(folder, 'test.db')}`
  const store = await openStore(url)
  t.after(() => store.close())
  const [backendId, policyId] = ['bkdst_1', 'ipp_1']
  await store.write(async (writer) => {
    const common = { parentId: null, ownerId: null, createdAt: '2026-01-02T03:04:05Z', fields: {} }
    await writer.insert({ id: backendId, kind: 'static_backend', ...common })
    await writer.insert({ id: policyId, kind: 'ip_policy', ...common })
  })
  const { ids } = await loadEdges(url, 1001, { backendId, policyId })
  const stored = await store.snapshot(async (rows) => {
    const found: string[] = []
    for await (const { table, values } of rows) {
      const [id = '', kind] = values.map(String)
      if (table === 'resources' && kind === 'tls_edge') found.push(id)
    }
    return found
  })
  assert.equal(ids.length, 1001)
  assert.deepEqual(stored.sort(), ids.toSorted())
})
