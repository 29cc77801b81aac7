/** Which requests may be sent again when their outcome is unknown. */

/** RFC 9110 §9.2.2. */
const methods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE', 'PUT', 'DELETE'])

export function isIdempotent(method: string): boolean {
  return methods.has(method)
}
