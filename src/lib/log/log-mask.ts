/** Masks log fields whose names show that they are secret, and cuts long texts. */

import { Secret } from '../secrets/secret.ts'
import { cutText } from '../text/cut-text.ts'

/** How deep a logged value is copied; anything deeper is left out, since it would not be masked. */
const MAX_DEPTH = 8

const secretName = /(authorization|cookie|token|secret|api[_-]?key|private[_-]?key|password|database[_-]?url)$/i

/** Whether a field with this name holds something that must not be logged. */
export function isSecretName(name: string): boolean {
  return secretName.test(name)
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
