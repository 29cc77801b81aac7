/** Removes the status of managed certificates when certificates are no longer ordered. */
import { pagesOf } from '../mirrors/mirror.ts'
import { agentIngresses } from '../resources/agent-ingresses.ts'
import type { ManagedCertificate } from '../resources/managed-certificate.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import { fieldsOf } from '../resources/resource.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

/** Otherwise the API would announce renewals that never come. */
export async function forgetStatuses(store: Store): Promise<void> {
  for await (const some of pagesOf(store, [reservedDomains.kind, agentIngresses.kind])) {
    for (const { id, kind } of some.filter((row) => managedOf(row)?.status)) {
      await store.write(async (writer) => {
        const row = await writer.lock(kind, id)
        const managed = row && managedOf(row)
        if (!row || !managed?.status) return
        await writer.replaceFields(id, { ...row.fields, managed: { ...managed, status: null } })
        writer.changed(kind, id)
      })
    }
  }
}

/** Both kinds keep it alike. */
function managedOf(row: StoredResource): ManagedCertificate | undefined {
  return fieldsOf(reservedDomains, row).managed
}
