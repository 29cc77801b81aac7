/** Header lists in the form that Node's HTTP/2 uses: flat arrays of names and values. */
import { HeaderList } from '../../../lib/http/header-list.ts'
import { headerName } from '../../../lib/http/header-name.ts'
import { isFieldContent } from '../../../lib/http/http-header.ts'
import type { BodyLength } from '../../requests/http-exchange.ts'
import { connectionFields } from '../trailers.ts'

/** What HTTP/2 carries besides headers: pseudo-headers, and the length of the body. */
interface RawFields {
  /** By name, colon included; each at most once. */
  readonly pseudo: ReadonlyMap<string, string>
  readonly headers: HeaderList
  readonly contentLength: number | undefined
  /** All of them, as RFC 9113 §6.5.2 counts. */
  readonly bytes: number
  /** Whether trailers are announced. */
  readonly hasTrailer: boolean
}

/** RFC 9113 §6.5.2: what each field counts beyond its characters, in bytes. */
const FIELD_OVERHEAD_BYTES = 32

/** Splits `raw` into its parts. Cookies, which may come in several fields, are joined (RFC 9113 §8.2.3). */
export function readFields(raw: readonly string[]): RawFields {
  const pseudo = new Map<string, string>()
  const headers = new HeaderList()
  let contentLength: number | undefined
  let hasTrailer = false
  let bytes = 0
  let cookie: string | undefined
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? ''
    const value = raw[i + 1] ?? ''
    bytes += name.length + value.length + FIELD_OVERHEAD_BYTES
    if (name.startsWith(':')) pseudo.set(name, value)
    else if (name === 'cookie') cookie = cookie === undefined ? value : `${cookie}; ${value}`
    // The library guarantees that it is one number and matches the body.
    else if (name === 'content-length') contentLength = Number(value)
    else if (name === 'trailer') hasTrailer = true
    else headers.add(name, value)
  }
  if (cookie !== undefined) headers.add('cookie', cookie)
  return { pseudo, headers, contentLength, bytes, hasTrailer }
}

/** Adds `headers` to `raw`, after the pseudo-headers; throws when one cannot be sent. */
export function writeFields(raw: string[], headers: HeaderList, body: BodyLength): string[] {
  for (let i = 0; i < headers.size; i++) {
    const { key, isToken } = headers.nameAt(i)
    const value = headers.valueAt(i)
    if (connectionFields.has(key)) continue
    // The last defence against header injection: the library would send these unchecked.
    if (!isToken || (!headers.isChecked && !isFieldContent(value)))
      throw new Error(`a header that cannot be sent: \`${key}\``)
    raw.push(key, value)
  }
  if (typeof body === 'number') raw.push('content-length', String(body))
  return raw
}

/** `headers` as an object, the form required for interim responses and trailers; what cannot be sent is left out. */
export function fieldObject(headers: HeaderList | undefined): Record<string, string[]> {
  // Without a prototype: names come from the wire.
  const object: Record<string, string[]> = Object.create(null)
  for (const [name, value] of headers ?? []) {
    const { key, isToken } = headerName(name)
    if (connectionFields.has(key) || !isToken || !isFieldContent(value)) continue
    const values = object[key]
    if (values) values.push(value)
    else object[key] = [value]
  }
  return object
}
