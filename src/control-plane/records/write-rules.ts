/** Rules of resources that depend on other resources, checked inside the transaction of every write. */
import { Refusal } from '../../model/errors.ts'
import { restrictedParts } from '../../model/restricted-part.ts'
import { captures, MAX_CAPTURES, MAX_OWN_CAPTURES } from '../resources/captures.ts'
import { ipPolicies } from '../resources/ip-policies.ts'
import { ipPolicyRules } from '../resources/ip-policy-rules.ts'
import { ipRestrictions } from '../resources/ip-restrictions.ts'
import type { Fields, Resource } from '../resources/resource.ts'
import { sshCredentials } from '../resources/ssh-credentials.ts'
import { sshUserCertificates } from '../resources/ssh-user-certificates.ts'
import { users } from '../resources/users.ts'
import type { StoredResource } from '../store/reader.ts'
import type { Writer } from '../store/writer.ts'
import type { Principal } from './find-caller.ts'
import { keepAnAdmin } from './manage-users.ts'
import { isEnforced } from './stored-restrictions.ts'

/** A fact that every new capture changes, so that two of them are counted one after the other. */
const CAPTURES = 'captures'

/** One write of one resource. */
interface Write {
  readonly resource: Resource
  readonly principal: Pick<Principal, 'id' | 'role'>
  readonly parentId: string | null
  /** Of a resource that is created. */
  readonly ownerId?: string | null
  /** Null when it is created. */
  readonly before: StoredResource | null
  /** Its fields afterwards; null when it is deleted. */
  readonly after: Fields | null
}

/** Throws a `Refusal` when the write breaks a rule. */
export async function checkRules(writer: Writer, write: Write): Promise<void> {
  const { resource, before, after } = write
  if (resource.kind === users.kind && before) await keepAnAdmin(writer, before, after)
  if (resource.kind === sshUserCertificates.kind && !before && after)
    await checkPrincipals(writer, write.principal, after)
  if (resource.kind === captures.kind && write.ownerId) await checkCaptures(writer, write.ownerId)
  if (write.principal.role === 'admin') return
  if (resource.kind === ipPolicies.kind && before) await checkNotGuarding(writer, before.id)
  if (resource.kind === ipPolicyRules.kind && write.parentId !== null) await checkNotGuarding(writer, write.parentId)
}

/** D80: nobody may take all of them. */
async function checkCaptures(writer: Writer, ownerId: string): Promise<void> {
  await writer.setMeta(CAPTURES, ownerId)
  const running = await writer.page({ kind: captures.kind, limit: MAX_CAPTURES })
  const own = running.filter((each) => each.ownerId === ownerId).length
  if (own >= MAX_OWN_CAPTURES) {
    throw new Refusal('CAPTURE_RUNS', `${own} captures of \`${ownerId}\` run already; end one of them`)
  }
  if (running.length < MAX_CAPTURES) return
  const msg = `${running.length} captures run already, ${own} of \`${ownerId}\` and the rest of others; wait until one ends`
  throw new Refusal('CAPTURE_RUNS', msg)
}

/** D65: a member who could change the rules of an enforced restriction could lock admins out, or let others in. */
async function checkNotGuarding(writer: Writer, policyId: string): Promise<void> {
  // Every write of a restriction rewrites its references, which locks the policy. So this write, and one that begins to name
  // the policy or to enforce the restriction, run one after the other.
  await writer.lock(ipPolicies.kind, policyId)
  // A claim allows one restriction for each part.
  const restrictions = await writer.page({ kind: ipRestrictions.kind, limit: restrictedParts.length })
  const enforced = restrictions.find((each) => isEnforced(each) && names(each.fields, policyId))
  if (!enforced) return
  const part = String(enforced.fields.type)
  throw new Refusal(
    'FORBIDDEN',
    `the enforced IP restriction of type \`${part}\` names this IP policy, so only an admin may change the policy and its rules`,
  )
}

/**
 * A certificate logs in as the credentials that its principals name. So a caller may name only credentials that it may use;
 * other credentials count as unknown (D22).
 */
async function checkPrincipals(
  reader: Writer,
  { id, role }: Pick<Principal, 'id' | 'role'>,
  { principals }: Fields,
): Promise<void> {
  // Their form has checked them.
  const ids = (principals as readonly string[]).filter((each) => each.startsWith(sshCredentials.prefix))
  const found = new Map((await reader.resources([...new Set(ids)])).map((each) => [each.id, each]))
  for (const each of ids) {
    const credential = found.get(each)
    if (credential && (role === 'admin' || credential.ownerId === id)) continue
    throw new Refusal(
      'UNKNOWN_REFERENCE',
      `\`principals\`: there is no ${sshCredentials.noun} with the id \`${each.slice(0, 64)}\``,
      { field: 'principals' },
    )
  }
}

function names({ ip_policy_ids: ids }: Fields, policyId: string): boolean {
  return (ids as readonly string[]).includes(policyId) // its form has checked it
}
