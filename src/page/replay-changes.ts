/** What the user changed in a request before replaying it. */
import type { ListedRow } from './all-rows.ts'
import { isRecord } from './api-caller.ts'
import { textIn } from './text-in.ts'

/** A request as it can be edited: headers as lines. */
interface EditedRequest {
  readonly method: string
  readonly path: string
  readonly headers: string
  readonly body: string
}

export function requestOf({ method, path, request }: ListedRow): EditedRequest {
  const { headers, body } = isRecord(request) ? request : {}
  const lines = (Array.isArray(headers) ? headers : []).filter(isRecord)
  return {
    method: textIn(method),
    path: textIn(path),
    headers: lines.map(({ name, value }) => `${textIn(name)}: ${textIn(value)}`).join('\n'),
    // A binary body cannot be edited here; left empty, it is sent as it was.
    body: isRecord(body) && body.encoding === 'text' ? textIn(body.content) : '',
  }
}

/** The body of a replay: only what was changed. */
export function changesOf(before: EditedRequest, after: EditedRequest): Readonly<Record<string, unknown>> {
  return {
    ...(after.method !== before.method && { method: after.method }),
    ...(after.path !== before.path && { path: after.path }),
    ...(after.headers !== before.headers && { headers: headersIn(after.headers) }),
    ...(after.body !== before.body && { body: { encoding: 'text', content: after.body } }),
  }
}

function headersIn(text: string): { readonly name: string; readonly value: string }[] {
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => {
      const colon = line.indexOf(':')
      return colon < 0
        ? { name: line.trim(), value: '' }
        : { name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim() }
    })
}
