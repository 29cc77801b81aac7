/** Stored IP restrictions: the part of the server that each guards, and the addresses that it admits (D64). */
import { compileIpRules } from '../../lib/net/ip-rules.ts'
import { type RestrictedPart, restrictedParts } from '../../model/restricted-part.ts'
import { ipPolicyRules } from '../resources/ip-policy-rules.ts'
import { ipRestrictions } from '../resources/ip-restrictions.ts'
import { fieldsOf } from '../resources/resource.ts'
import type { Reader, StoredResource } from '../store/reader.ts'
import type { Store } from '../store/store.ts'

/** One restriction, compiled. */
interface Restriction {
  /** When false, addresses that it does not admit are let in and logged. */
  readonly isEnforced: boolean
  readonly admits: (address: string) => boolean
}

/** By part; a part without a restriction has no entry. */
export type CompiledRestrictions = ReadonlyMap<RestrictedPart, Restriction>

/** There is one restriction for each part. */
const MAX_RESTRICTIONS = 100

/** Reads and compiles every restriction. */
export async function readRestrictions(reader: Reader): Promise<CompiledRestrictions> {
  const found = await readPartRestrictions(reader)
  return new Map(found.map(([, { part, isEnforced, rules }]) => [part, { isEnforced, admits: compileIpRules(rules) }]))
}

/** Every restriction by its id, as plain data. */
export async function readPartRestrictions(reader: Reader) {
  const stored = await reader.page({ kind: ipRestrictions.kind, limit: MAX_RESTRICTIONS })
  const policies = new Set(stored.flatMap((each) => fieldsOf(ipRestrictions, each).ip_policy_ids))
  const byPolicy = await rulesByPolicy(reader, [...policies])
  return stored.map((each) => {
    const { type: part, enforced: isEnforced, ip_policy_ids: ids } = fieldsOf(ipRestrictions, each)
    const own = ids.flatMap((id) => byPolicy.get(id) ?? [])
    return [each.id, { part, isEnforced, rules: own.map(({ action, network }) => ({ action, network })) }] as const
  })
}

/** The rules of IP policies, by the id of the policy. */
export async function rulesByPolicy(reader: Reader, policyIds: readonly string[]) {
  const rules = await reader.children(ipPolicyRules.kind, policyIds)
  const known = rules.map((rule) => ({ policyId: rule.parentId ?? '', ...fieldsOf(ipPolicyRules, rule) }))
  return Map.groupBy(known, ({ policyId }) => policyId)
}

/** Stops enforcing the restrictions of `parts`, for an admin who is locked out; returns the parts that had one. */
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
export function isEnforced(stored: Pick<StoredResource, 'fields'>): boolean {
  return fieldsOf(ipRestrictions, stored).enforced
}

function partOf(stored: Pick<StoredResource, 'fields'>): RestrictedPart {
  return fieldsOf(ipRestrictions, stored).type
}
