/** Copies a plain value as a socket would carry it, for planes that share a process. */
import { deserialize, serialize } from 'node:v8'

/**
 * The copy has nothing in common with the value, and what cannot be sent throws. Objects and arrays, which messages are made
 * of, are copied here: for small ones that takes a tenth of what serializing them does.
 */
export function plainCopy(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return isSent(value) ? value : throughBytes(value)
  if (Array.isArray(value)) return value.map((each) => plainCopy(each))
  const prototype: unknown = Object.getPrototypeOf(value)
  // Anything else, such as bytes and maps, is made anew in a way of its own.
  if (prototype !== Object.prototype && prototype !== null) return throughBytes(value)
  const copy: Record<string, unknown> = {}
  for (const [key, each] of Object.entries(value)) {
    // Assigned, it would become the prototype.
    if (key === '__proto__') return throughBytes(value)
    copy[key] = plainCopy(each)
  }
  return copy
}

function isSent(value: unknown): boolean {
  return typeof value !== 'function' && typeof value !== 'symbol'
}

function throughBytes(value: unknown): unknown {
  return deserialize(serialize(value))
}
