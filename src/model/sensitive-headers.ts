/** Headers that identify or authenticate somebody: they are masked unless an admin asked for them. */
import { hasSecretWord, isSecretName } from '../lib/log/log-mask.ts'

/** Ours, those of the vendor, and those of proxies that log visitors in. */
const identity =
  /^(?:postern|ngrok)[^a-z0-9]+(?:auth|mtls)(?![a-z0-9])|^(?:remote|tailscale)-(?:user|name|email|groups)(?:-|$)/i

export function isSensitiveHeader(name: string): boolean {
  // Old servers also read `Cookie2` and the like.
  if (isSecretName(name) || hasSecretWord(name)) return true
  return /cookie/i.test(name) || identity.test(name) || others.has(name.toLowerCase())
}

/** Headers that other proxies add: the identity that they found out, and signatures that serve as a password. */
const others: ReadonlySet<string> = new Set([
  'authentication-info',
  'dpop',
  'proxy-authentication-info',
  // Browsers cannot set another header of a WebSocket, so tokens are sent in it.
  'sec-websocket-protocol',
  'x-amzn-oidc-data',
  'x-amzn-oidc-identity',
  'x-forwarded-client-cert',
  'x-forwarded-email',
  'x-forwarded-preferred-username',
  'x-forwarded-user',
  'x-goog-iap-jwt-assertion',
])
