/** Headers that identify or authenticate somebody: they are masked unless an admin asked for them. */
import { isSecretName } from '../lib/log/log-mask.ts'

/** Ours, and those of the vendor. */
const identity = /^(?:postern|ngrok)[^a-z0-9]+(?:auth|mtls)(?![a-z0-9])/i

export function isSensitiveHeader(name: string): boolean {
  // Old servers also read `Cookie2` and the like.
  return isSecretName(name) || /cookie/i.test(name) || identity.test(name) || others.has(name.toLowerCase())
}

/** Headers that other proxies add: the identity that they found out, and signatures that serve as a password. */
const others: ReadonlySet<string> = new Set([
  'authentication-info',
  'proxy-authentication-info',
  'x-amzn-oidc-data',
  'x-amzn-oidc-identity',
  'x-auth-request-email',
  'x-auth-request-user',
  'x-forwarded-client-cert',
  'x-forwarded-email',
  'x-forwarded-preferred-username',
  'x-forwarded-user',
  'x-goog-iap-jwt-assertion',
])
