/** Removes the status of managed certificates when certificates are no longer ordered. */
import { agentIngresses } from '../resources/agent-ingresses.ts'
import type { ManagedCertificate } from '../resources/managed-certificate.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

const AT_A_TIME = 100

/** Otherwise the API would announce renewals that never come. */
export async function forgetStatuses(store: Store): Promise<void> {
  for (const { kind } of [reservedDomains, agentIngresses]) await forgetStatusesOf(store, kind)
}

async function forgetStatusesOf(store: Store, kind: string): Promise<void> {
  let beforeId: string | undefined
  do {
    const some = await store.read((reader) =>
      reader.page({ kind, limit: AT_A_TIME, ...(beforeId !== undefined && { beforeId }) }),
    )
    for (const { id } of some.filter(hasStatus)) {
      await store.write(async (writer) => {
        const row = await writer.lock(kind, id)
        if (!row || !hasStatus(row)) return
        await writer.replaceFields(id, { ...row.fields, managed: { ...managedOf(row), status: null } })
        writer.changed(kind, id)
      })
    }
    beforeId = some.at(-1)?.id
  } while (beforeId !== undefined)
}

function managedOf({ fields }: StoredResource): ManagedCertificate | undefined {
  return fields.managed as ManagedCertificate | undefined // written by us alone
}

function hasStatus(row: StoredResource): boolean {
  return Boolean(managedOf(row)?.status)
}
