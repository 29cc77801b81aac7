/** Stored IP restrictions: the part of the server that each guards, and the addresses that it admits (D64). */
import { compileIpRules, type IpRule } from '../../lib/net/ip-rules.ts'
import type { PartRestriction } from '../../link/planes/plane-calls.ts'
import { type RestrictedPart, restrictedParts } from '../../model/restricted-part.ts'
import { ipPolicyRules } from '../resources/ip-policy-rules.ts'
import { ipRestrictions } from '../resources/ip-restrictions.ts'
import type { Change } from '../store/feed.ts'
import type { Followed } from '../store/feed-follower.ts'
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
  return new Map(found.map(({ part, isEnforced, rules }) => [part, { isEnforced, admits: compileIpRules(rules) }]))
}

/** Reads every restriction, as plain data. */
async function readPartRestrictions(
  reader: Reader,
): Promise<readonly (PartRestriction & { readonly part: RestrictedPart })[]> {
  const stored = await reader.page({ kind: ipRestrictions.kind, limit: MAX_RESTRICTIONS })
  const rules = await reader.children(ipPolicyRules.kind, [...new Set(stored.flatMap(policiesOf))])
  const byPolicy = Map.groupBy(rules, ({ parentId }) => parentId ?? '')
  return stored.map((each) => {
    const own = policiesOf(each).flatMap((id) => byPolicy.get(id) ?? [])
    // Its form has checked these fields.
    const asked = own.map(({ fields }) => fields as unknown as IpRule)
    return {
      part: partOf(each),
      isEnforced: isEnforced(each),
      rules: asked.map(({ action, network }) => ({ action, network })),
    }
  })
}

/** Kinds whose changes may change a restriction; a change of a rule is announced under its policy. */
const followedKinds: ReadonlySet<string> = new Set(['ip_restriction', 'ip_policy'])

/** Sends a data plane the restrictions, at first and whenever they may have changed. */
export class RestrictionFeed implements Followed {
  readonly #store: Store
  readonly #send: (restrictions: readonly PartRestriction[]) => Promise<unknown>

  constructor(store: Store, send: (restrictions: readonly PartRestriction[]) => Promise<unknown>) {
    this.#store = store
    this.#send = send
  }

  async load(): Promise<void> {
    await this.#send(await this.#store.read(readPartRestrictions))
  }

  async apply(changes: readonly Change[]): Promise<void> {
    if (changes.some(({ kind }) => followedKinds.has(kind))) await this.load()
  }
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
