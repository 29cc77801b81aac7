/** Masks log fields whose names show that they are secret, and cuts long texts. */

import { Secret } from '../secrets/secret.ts'
import { cutText } from '../text/cut-text.ts'

/** How deep a logged value is copied; anything deeper is left out, since it would not be masked. */
const MAX_DEPTH = 8

const secretName = /(authorization|cookie|token|secret|api[_-]?key|private[_-]?key|password|database[_-]?url)$/i

const secretWord =
  /(?:^|[-_.])(?:(?:token|secret|auth|authorization|jwt|session|password|credential|cookie|apikey|api[-_]key)(?![^-_.])|key$)/i

/** Headers that only read like secrets; those of the server say who a visitor is, which explanations show. */
const harmless = /^(?:idempotency|sec-websocket|surrogate)-key$|(?:^|-)rate-?limit(?:-|$)|^(?:postern|ngrok)-auth-/i

/** Whether a field or header with this name holds something that must not be logged. */
export function isSecretName(name: string): boolean {
  // Our own fields, such as `session` and `key`, have no hyphens.
  return secretName.test(name) || (name.includes('-') && hasSecretWord(name))
}

/** Whether a word of a header's name, between its hyphens, says that the header is secret (D123). */
export function hasSecretWord(name: string): boolean {
  return secretWord.test(name) && !harmless.test(name)
}

/** A copy of `fields` with secret fields masked at any depth and long texts cut. */
export function maskSecrets(fields: Record<string, unknown>): Record<string, unknown> {
  return copy(fields, 0)
}

function copy(fields: Record<string, unknown>, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    shown[name] = isSecretName(name) && hides(value) ? '[secret]' : mask(value, depth + 1)
  }
  return shown
}

/** Whether a secret field's value is masked: the log may show that a secret is not set. */
function hides(value: unknown): boolean {
  return value !== null && value !== undefined && typeof value !== 'boolean' && value !== ''
}

function mask(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cutText(value)
  if (typeof value !== 'object' || value === null || value instanceof Secret) return value
  if (depth > MAX_DEPTH) return '[deep]'
  if (Array.isArray(value)) return value.map((each) => mask(each, depth + 1))
  // Errors have a serializer; dates, buffers and sockets are logged unchanged.
  return isPlain(value) ? copy(value, depth) : value
}

function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
