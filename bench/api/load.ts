/** Fills a database with TLS edges as the API would have stored them, a thousand in each transaction. */

import { openStore } from '../../src/control-plane/store/store.ts'
import { timestamp } from '../../src/lib/clock.ts'
import { IdSource } from '../../src/lib/ids.ts'

const PER_TRANSACTION = 1000

export interface Loaded {
  readonly ids: readonly string[]
}

/** Stores `count` edges that all use the backend and the IP policy with the given ids. */
export async function loadEdges(
  databaseUrl: string,
  count: number,
  { backendId, policyId }: { backendId: string; policyId: string },
): Promise<Loaded> {
  const store = await openStore(databaseUrl)
  const now = Date.now
  const source = new IdSource({ now })
  const ids: string[] = []
  while (ids.length < count) {
    const stored = await store.write(async (writer) => {
      // Counted here, because a transaction that loses a race runs again.
      const own: string[] = []
      while (own.length < Math.min(PER_TRANSACTION, count - ids.length)) {
        const id = source.next('edgtls_')
        const name = `edge-${ids.length + own.length}.example.com`
        const fields = { description: '', metadata: '', hostports: [`${name}:443`] }
        await writer.insert({
          id,
          kind: 'tls_edge',
          parentId: null,
          ownerId: null,
          createdAt: timestamp(now()),
          fields,
        })
        await writer.setClaims(id, 'edge_name', [name], true)
        await writer.putModule(id, 'backend', { enabled: true, backend_id: backendId })
        await writer.setReferences(id, 'backend', [backendId], true)
        await writer.putModule(id, 'ip_restriction', { enabled: true, ip_policy_ids: [policyId] })
        await writer.setReferences(id, 'ip_restriction', [policyId], true)
        writer.changed('tls_edge', id)
        own.push(id)
      }
      return own
    })
    ids.push(...stored)
  }
  await store.close()
  return { ids }
}
