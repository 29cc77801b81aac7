/** IP restrictions as stored: which part of the server each guards, and whether it admits an address (D64). */
import { compileIpRules, type IpRule } from '../lib/net/ip-rules.ts'
import { ipPolicyRules } from '../resources/ip-policy-rules.ts'
import { ipRestrictions, type RestrictedPart, restrictedParts } from '../resources/ip-restrictions.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

/** One restriction, compiled. */
export interface Restriction {
  /** When false, addresses that it does not admit are let in and logged. */
  readonly isEnforced: boolean
  readonly admits: (address: string) => boolean
}

/** By part; a part without a restriction has no entry. */
export type Restrictions = ReadonlyMap<RestrictedPart, Restriction>

/** There is one restriction for each part. */
const MAX_RESTRICTIONS = 100

/** Reads and compiles every restriction. */
export async function readRestrictions(reader: Reader): Promise<Restrictions> {
  const stored = await reader.page({ kind: ipRestrictions.kind, limit: MAX_RESTRICTIONS })
  const rules = await reader.children(ipPolicyRules.kind, [...new Set(stored.flatMap(policiesOf))])
  const byPolicy = Map.groupBy(rules, ({ parentId }) => parentId ?? '')
  return new Map(
    stored.map((each) => {
      const own = policiesOf(each).flatMap((id) => byPolicy.get(id) ?? [])
      const admits = compileIpRules(own.map(({ fields }) => fields as unknown as IpRule)) // as its form let it in
      return [partOf(each), { isEnforced: isEnforced(each), admits }]
    }),
  )
}

/** Stops enforcing the restrictions of `parts`, for an admin who is locked out; gives the parts that had one. */
export async function liftRestrictions(
  store: Store,
  parts: readonly RestrictedPart[] = restrictedParts,
): Promise<RestrictedPart[]> {
  return store.write(async (writer) => {
    const stored = await writer.page({ kind: ipRestrictions.kind, limit: MAX_RESTRICTIONS })
    const lifted = stored.filter((each) => isEnforced(each) && parts.includes(partOf(each)))
    for (const { id, kind, fields } of lifted) {
      await writer.replaceFields(id, { ...fields, enforced: false })
      writer.changed(kind, id)
    }
    return lifted.map(partOf)
  })
}

/** Whether a stored IP restriction is enforced. */
export function isEnforced({ fields }: Pick<StoredResource, 'fields'>): boolean {
  return fields.enforced === true
}

// What is stored has passed the form of its resource.
function partOf({ fields }: Pick<StoredResource, 'fields'>): RestrictedPart {
  return fields.type as RestrictedPart
}

function policiesOf({ fields }: Pick<StoredResource, 'fields'>): readonly string[] {
  return fields.ip_policy_ids as readonly string[]
}
