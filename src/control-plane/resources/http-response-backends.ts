/** HTTP response backends: a fixed answer, for maintenance pages and redirects. */
import { Type } from '../../lib/shape/type.ts'
import { checkHeaders } from '../../model/header-rules.ts'
import { storedKind } from './resource.ts'
import { description, metadata } from './resource-fields.ts'

/** Larger bodies belong on a web server. */
const MAX_BODY_BYTES = 256 * 1024

export const httpResponseBackends = storedKind({
  kind: 'http_response_backend',
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
    checkHeaders('headers', fields.headers)
    return fields
  },
})
