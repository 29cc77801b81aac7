/** The headers of a request as rules read them: also those that an edge takes out, since it writes its own. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import type { Moment } from './moment.ts'
import type { PolicyRequest } from './policy-traffic.ts'

/** All values of a header; `key` is in lower case. */
export function requestHeader({ request, headers }: Moment, key: string): readonly string[] {
  const own = request && takenOut(request, key)
  return own === undefined ? headers.all(key) : [own]
}

/** Names in lower case, each with all its values. */
export function requestHeaders(request: PolicyRequest, headers: HeaderList): ReadonlyMap<string, readonly string[]> {
  const found = headerMap(headers)
  for (const key of ['host', 'content-length', 'transfer-encoding']) {
    const own = takenOut(request, key)
    if (own !== undefined) found.set(key, [own])
  }
  return found
}

export function headerMap(headers: HeaderList): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (let i = 0; i < headers.size; i++) {
    const { key } = headers.nameAt(i)
    const values = found.get(key)
    if (values) values.push(headers.valueAt(i))
    else found.set(key, [headers.valueAt(i)])
  }
  return found
}

function takenOut({ authority, replacedHost, bodyLength, version }: PolicyRequest, key: string): string | undefined {
  if (key === 'host') return replacedHost ?? authority
  if (key === 'content-length') return typeof bodyLength === 'number' ? String(bodyLength) : undefined
  return key === 'transfer-encoding' && bodyLength === 'unknown' && version === '1.1' ? 'chunked' : undefined
}
