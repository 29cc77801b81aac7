/** Reads the parts of HTTP that expressions use: media types and queries. */

/** The most parameters that are read. */
const MAX_PARAMETERS = 100

/** D103: traffic has more of something than rules can read. A rule must not decide by a part of it, so nothing passes. */
export class TooMuchToRead extends Error {
  constructor(what: string) {
    super(`there are more ${what} than a rule can read`)
  }
}

/** The parts of `text` between separators; throws `TooMuchToRead` when there are more than `most`. */
export function split(text: string, separator: string, most: number, what: string): string[] {
  const parts = text.split(separator, most + 1)
  if (parts.length > most) throw new TooMuchToRead(what)
  return parts
}

/** RFC 9110 §8.3.1: the type in lower case, and its parameters. */
export function mediaType(text: string): { readonly type: string; readonly parameters: ReadonlyMap<string, string> } {
  const [type = '', ...rest] = split(text, ';', MAX_PARAMETERS, 'parameters of a media type')
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

/** The parameters of a query, each with all its values; throws `TooMuchToRead`. */
export function queryParameters(query: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>()
  let count = 0
  for (const [name, value] of new URLSearchParams(query)) {
    if (++count > MAX_PARAMETERS) throw new TooMuchToRead('query parameters')
    const values = found.get(name)
    if (values) values.push(value)
    else found.set(name, [value])
  }
  return found
}
