/** From what a provider claims about a user to the user that we know. */
import type { LoginUser } from '../login/sessions.ts'

/** OpenID Connect Core §2, in characters. */
const MAX_ID_LENGTH = 255
/** RFC 5321 §4.5.3.1.3 */
const MAX_EMAIL_LENGTH = 254
const MAX_NAME_LENGTH = 255

/** Undefined when there is no id that a user could be known by. */
export function readUser(claims: Readonly<Record<string, unknown>>): LoginUser | undefined {
  const { sub, name, email, email_verified, preferred_username } = claims
  if (typeof sub !== 'string' || sub === '' || sub.length > MAX_ID_LENGTH || /\p{Cc}/u.test(sub)) return undefined
  return {
    id: sub,
    name: text(name, MAX_NAME_LENGTH),
    // Whoever can write down any address at the provider would otherwise be anybody to the upstream.
    email: isFalse(email_verified) ? '' : text(email, MAX_EMAIL_LENGTH),
    username: text(preferred_username, MAX_NAME_LENGTH),
  }
}

/** Some providers write it as a text. */
function isFalse(verified: unknown): boolean {
  return verified === false || verified === 'false'
}

function text(value: unknown, maxLength: number): string {
  return typeof value === 'string' && value.length <= maxLength && !/\p{Cc}/u.test(value) ? value : ''
}
