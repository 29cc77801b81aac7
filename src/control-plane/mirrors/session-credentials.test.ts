import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Change } from '../store/feed.ts'
import type { Store } from '../store/store.ts'
import { endWithCredentials } from './session-credentials.ts'

test('a deleted credential is ended at all data planes, also when no listed session uses it', async () => {
  const ended: string[] = []
  const sessions = {
    credentialsInUse: () => new Set<string>(),
    endSessionsOf: (id: string) => void ended.push(id),
    certificatesInUse: () => new Set<string>(),
    endSessionsBy: () => assert.fail(),
  }
  // It has no rows.
  const store = { read: async () => undefined } as unknown as Store
  const change: Change = { revision: 1, kind: 'credential', id: 'cr_1' }
  await endWithCredentials(store, sessions).apply([change])
  assert.deepEqual(ended, ['cr_1'])
})
