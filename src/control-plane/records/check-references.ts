/** Checks and stores the references of a write, which must exist, and its claims of unique names, which must be free. */
import { Refusal } from '../../model/errors.ts'
import type { Mention } from '../../modules/module.ts'
import { resourceOf } from '../resources/index.ts'
import type { Claim, Resource } from '../resources/resource.ts'
import type { Reader } from '../store/reader.ts'
import type { Writer } from '../store/writer.ts'

/** How many referrers a refusal names. */
const NAMED_REFERRERS = 5

/** D28: an unknown id in a body is 400 and named, never 404. */
export async function checkMentions(reader: Reader, mentions: readonly Mention[]): Promise<void> {
  const found = await reader.kinds([...new Set(mentions.map(({ id }) => id))])
  for (const { field, id, kinds } of mentions) {
    const kind = found.get(id)
    if (kind && kinds.includes(kind)) continue
    const wanted = kinds.map((each) => resourceOf(each)).map(({ noun, prefix }) => `${noun} (\`${prefix}…\`)`)
    throw new Refusal(
      'UNKNOWN_REFERENCE',
      `\`${field}\`: there is no ${wanted.join(' or ')} with the id \`${brief(id)}\``,
      { field },
    )
  }
}

/** Refuses the first of `claims` that somebody other than `holderId` holds. */
export async function checkClaims(reader: Reader, claims: readonly Claim[], holderId: string | null): Promise<void> {
  for (const { scope, key, taken } of claims) {
    const holder = await reader.holder(scope, key)
    if (holder === undefined || holder === holderId) continue
    const { code, msg, field = '' } = taken
    throw new Refusal(code, msg, { field })
  }
}

/** D28: a resource that others still refer to cannot be deleted. */
export async function checkUnreferenced(reader: Reader, resource: Resource, id: string): Promise<void> {
  const referrers = await reader.referrers(id, NAMED_REFERRERS + 1)
  if (referrers.length === 0) return
  const names = referrers.slice(0, NAMED_REFERRERS).map((each) => `\`${each.id}\` (${each.slot})`)
  const more = referrers.length > NAMED_REFERRERS ? ' and others' : ''
  throw new Refusal(
    'STILL_REFERENCED',
    `this ${resource.noun} is still referred to by ${names.join(', ')}${more}; change or delete these first`,
  )
}

/** Replaces the references of a resource's fields by `mentions`, field by field. */
export async function setMentions(
  writer: Writer,
  id: string,
  mentions: readonly Mention[],
  before: readonly Mention[],
): Promise<void> {
  const slot = ({ field }: Mention) => /^\w+/.exec(field)?.[0] ?? field
  const held = new Set(before.map(slot))
  for (const each of new Set([...held, ...mentions.map(slot)])) {
    const ids = mentions.filter((mention) => slot(mention) === each).map((mention) => mention.id)
    await writer.setReferences(id, each, ids, !held.has(each))
  }
}

/** Replaces the claims of a resource; a scope without new claims is emptied. */
export async function setClaims(
  writer: Writer,
  id: string,
  claims: readonly Claim[],
  before: readonly Claim[],
): Promise<void> {
  const held = new Set(before.map(({ scope }) => scope))
  for (const scope of new Set([...held, ...claims.map((claim) => claim.scope)])) {
    const keys = claims.filter((claim) => claim.scope === scope).map(({ key }) => key)
    await writer.setClaims(id, scope, keys, !held.has(scope))
  }
}

function brief(id: string): string {
  return id.length > 64 ? `${id.slice(0, 61)}...` : id
}
