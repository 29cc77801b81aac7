/** JSON as expressions read it: objects are maps, and whole numbers are integers. */

export function jsonInput(json: unknown): unknown {
  if (typeof json === 'number' && Number.isSafeInteger(json)) return BigInt(json)
  if (Array.isArray(json)) return json.map(jsonInput)
  if (typeof json === 'object' && json !== null) {
    return new Map(Object.entries(json).map(([name, value]) => [name, jsonInput(value)]))
  }
  return json
}
