/** Which headers a user may name, and which only the edge writes (D37, D42b). */

import { isConnectionHeader, isHeaderName, isHeaderValue } from '../lib/http/http-header.ts'
import { BadValue } from '../lib/shape/check.ts'

/** Throws `BadValue` for an invalid header name or a header that cannot be changed; `field` is where the name was given. */
export function checkHeaderName(field: string, name: string): void {
  if (!isHeaderName(name)) {
    throw badHeader(field, "is not a header name: use letters, digits and the characters !#$%&'*+-.^_`|~ only")
  }
  if (name.toLowerCase() === 'user-agent') throw badHeader(field, 'names `user-agent`, which cannot be changed')
  if (isConnectionHeader(name)) {
    throw badHeader(field, 'names a header that belongs to the connection, and only the edge may write it')
  }
}

/** Throws `BadValue` for headers that must not be set, and for one name given twice in different cases. */
export function checkHeaders(at: string, headers: Readonly<Record<string, string>>): void {
  const seen = new Map<string, string>()
  for (const [name, value] of Object.entries(headers)) {
    const field = `${at}[${JSON.stringify(name)}]`
    checkHeaderName(field, name)
    if (isEdgeHeader(name)) {
      throw badHeader(
        field,
        'begins with `postern-`, which is reserved for headers that the edge sets; choose another name',
      )
    }
    if (!isHeaderValue(value)) {
      throw badHeader(field, 'has a value with a line break or another control character; remove it')
    }
    const before = seen.get(name.toLowerCase())
    if (before !== undefined) throw badHeader(field, `names the same header as \`${before}\`; keep one of them`)
    seen.set(name.toLowerCase(), name)
  }
}

/** What checking a header's name or value costs, in the unit of `patternPrice`: 100 KiB take some milliseconds. */
export function headerPrice(text: string): number {
  return text.length / 100
}

/** Services trust headers with this prefix, because only the edge sets them. */
export function isEdgeHeader(name: string): boolean {
  return name.toLowerCase().startsWith('postern-')
}

export function badHeader(field: string, what: string): BadValue {
  return new BadValue(field, 'value', `\`${field}\` ${what}`)
}
