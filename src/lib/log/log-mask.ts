/** Which fields of a log line are secret by their name, and how they are hidden; long texts are cut. */

import { Secret } from '../secrets/secret.ts'
import { cutText } from '../text/cut-text.ts'

/** How deep a logged value is followed; what lies deeper is left out rather than left unmasked. */
const MAX_DEPTH = 8

const secretName = /(authorization|cookie|token|secret|api[_-]?key|private[_-]?key|password|database[_-]?url)$/i

/** Whether a field of that name holds something that must not be logged. */
export function isSecretName(name: string): boolean {
  return secretName.test(name)
}

/** A copy of `fields` in which everything secret by name is masked, at any depth, and no text is longer than its bound. */
export function masked(fields: Record<string, unknown>): Record<string, unknown> {
  return copy(fields, 0)
}

function copy(fields: Record<string, unknown>, depth: number): Record<string, unknown> {
  const shown: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    shown[name] = isSecretName(name) && hides(value) ? '[secret]' : mask(value, depth + 1)
  }
  return shown
}

/** An unset secret may be seen to be unset. */
function hides(value: unknown): boolean {
  return value !== null && value !== undefined && typeof value !== 'boolean' && value !== ''
}

function mask(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cutText(value)
  if (typeof value !== 'object' || value === null || value instanceof Secret) return value
  if (depth > MAX_DEPTH) return '[deep]'
  if (Array.isArray(value)) return value.map((each) => mask(each, depth + 1))
  // Errors go to their serializer; a Date, a Buffer or a socket is not ours to take apart.
  return isPlain(value) ? copy(value, depth) : value
}

function isPlain(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}
