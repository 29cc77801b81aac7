/** Turns a provider's claims into a user. */
import type { LoginUser } from '../../model/logins.ts'

/** OpenID Connect Core §2, in characters. */
const MAX_ID_LENGTH = 255
/** RFC 5321 §4.5.3.1.3 */
const MAX_EMAIL_LENGTH = 254
const MAX_NAME_LENGTH = 255

/** Undefined when the claims have no usable id. */
export function readUser(claims: Readonly<Record<string, unknown>>): LoginUser | undefined {
  const { sub, name, email, email_verified, preferred_username } = claims
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_ID_LENGTH || /\p{Cc}/u.test(sub)) return undefined
  return {
    id: sub,
    name: text(name, MAX_NAME_LENGTH),
    // At some providers users can enter any address; unverified, it would let them pose as anybody.
    email: isUnverified({ email_verified }) ? '' : text(email, MAX_EMAIL_LENGTH),
    username: text(preferred_username, MAX_NAME_LENGTH),
  }
}

/**
 * Whether `email_verified` is there and is anything but true. Corporate providers, such as Microsoft's, often omit it,
 * since their addresses come from the company's own directory. So a missing claim does not count.
 */
export function isUnverified({ email_verified: verified }: Readonly<Record<string, unknown>>): boolean {
  // Some providers send a string instead of a boolean.
  return verified !== undefined && verified !== true && verified !== 'true'
}

function text(value: unknown, maxLength: number): string {
  return typeof value === 'string' && value.length <= maxLength && !/\p{Cc}/u.test(value) ? value : ''
}
