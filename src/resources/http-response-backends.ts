/** HTTP response backends: a fixed answer, for maintenance pages and redirects. */
import { Type } from 'typebox'
import { BadValue } from '../lib/check.ts'
import { isConnectionHeader, isHeaderName, isHeaderValue } from '../lib/http-header.ts'
import { description, metadata } from './fields.ts'
import { stored } from './resource.ts'

/** More belongs on a web server. */
const MAX_BODY_BYTES = 256 * 1024

export const httpResponseBackends = stored({
  kind: 'http_response_backend',
  noun: 'HTTP response backend',
  about: 'Answers every request with one fixed response.',
  prefix: 'bkdhr_',
  path: '/backends/http_response',
  listKey: 'backends',
  access: 'account',
  form: {
    description,
    metadata,
    body: Type.String({ description: 'Body of the response.', maxBytes: MAX_BODY_BYTES, default: '' }),
    headers: Type.Record(Type.String(), Type.String({ maxBytes: 4096 }), {
      description: 'Headers of the response, by name.',
      maxProperties: 100,
      maxKeyBytes: 256,
      default: {},
    }),
    status_code: Type.Integer({ description: 'Status of the response.', minimum: 200, maximum: 599, default: 200 }),
  },
  settle(fields) {
    for (const [name, value] of Object.entries(fields.headers))
      checkHeader(`headers[${JSON.stringify(name)}]`, name, value)
    return fields
  },
})

function checkHeader(field: string, name: string, value: string): void {
  const bad = (what: string) => new BadValue(field, 'value', `\`${field}\` ${what}`)
  if (!isHeaderName(name)) throw bad('is not a header name')
  if (!isHeaderValue(value)) throw bad('has a value with a line break or another control character; remove it')
  if (isConnectionHeader(name)) throw bad('names a header that belongs to the connection, which the edge writes itself')
  // D42b: visitors trust these names because only the edge sets them.
  if (name.toLowerCase().startsWith('postern-')) throw bad('begins with `postern-`, which is kept for the edge')
}
