/** Reads the parts of HTTP that expressions use: media types and queries. */

/** The most parameters that are read; further ones are ignored. */
const MAX_PARAMETERS = 100

/** RFC 9110 §8.3.1: the type in lower case, and its parameters. */
export function mediaType(text: string): { readonly type: string; readonly parameters: ReadonlyMap<string, string> } {
  const [type = '', ...rest] = text.split(';', MAX_PARAMETERS)
  const parameters = new Map<string, string>()
  for (const each of rest) {
    const equals = each.indexOf('=')
    if (equals < 0) continue
    const value = each.slice(equals + 1).trim()
    parameters.set(
      each.slice(0, equals).trim().toLowerCase(),
      value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value,
    )
  }
  return { type: type.trim().toLowerCase(), parameters }
}

/** The parameters of a query, each with all its values. */
export function queryParameters(query: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  let count = 0
  for (const [name, value] of new URLSearchParams(query)) {
    if (++count > MAX_PARAMETERS) break
    const values = found.get(name)
    if (values) values.push(value)
    else found.set(name, [value])
  }
  return found
}
