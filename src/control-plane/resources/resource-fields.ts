/** Fields that several resources share. */
import { isIP } from 'node:net'
import { BadInput } from '../../lib/shape/bad-input.ts'
import { Type } from '../../lib/shape/type.ts'
import { checkAclRule, MAX_ACL_RULE_BYTES, MAX_ACL_RULES } from '../../model/acl.ts'
import { type ErrorCode, Refusal } from '../../model/errors.ts'
import { readName } from '../../model/hostport.ts'

/** Contract part 8: limits are in bytes, not characters (D9). */
export const description = Type.String({
  description: 'Human-readable description; at most 255 bytes.',
  maxBytes: 255,
  default: '',
})

export const metadata = Type.String({
  description: 'Arbitrary user-defined data; at most 4096 bytes.',
  maxBytes: 4096,
  default: '',
})

/** Contract 2.3: an empty list, or one that holds `*`, restricts nothing. */
export const acl = Type.Array(Type.String({ maxBytes: MAX_ACL_RULE_BYTES }), {
  description: 'What the credential may bind: `bind:<domain, address or label>`, or `*`. Empty: no restriction.',
  maxItems: MAX_ACL_RULES,
  default: [],
})

/** Throws `Refusal` for the first invalid rule. */
export function checkAcl(rules: readonly string[]): void {
  for (const [i, rule] of rules.entries()) {
    readOr('BAD_ACL_RULE', `acl[${i}]`, '', () => checkAclRule(rule))
  }
}

/** Checks the name in `domain`; returns it as the API shows it: as sent, but in lower case, like a hostport (D26). */
export function domainName(sent: string): string {
  const read = readOr('BAD_DOMAIN', 'domain', '', () => readName(sent))
  if (isIP(read)) throw new Refusal('BAD_DOMAIN', '`domain` must be a name, not an address', { field: 'domain' })
  return sent.toLowerCase()
}

/** Runs `read`; bad input becomes a `Refusal` with `code` and a message that begins with the field and `colon`. */
export function readOr<T>(code: ErrorCode, field: string, colon: '' | ':', read: () => T): T {
  try {
    return read()
  } catch (cause) {
    if (!(cause instanceof BadInput)) throw cause
    throw new Refusal(code, `\`${field}\`${colon} ${cause.message}`, { field, reason: cause.reason, cause })
  }
}
