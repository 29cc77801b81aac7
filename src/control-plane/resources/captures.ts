/** Captures: keep heads and bodies of the exchanges of an edge for a while, so that they can be read and replayed. */
import { Type } from '../../lib/shape/type.ts'
import { MAX_CAPTURED_BODY } from '../../model/capture.ts'
import { shared } from '../../model/shared.ts'
import { storedKind } from './resource.ts'

/** Most captures at once, on all nodes together, and how many of them may be of one owner. */
export const MAX_CAPTURES = shared.captures.most
export const MAX_OWN_CAPTURES = 10

/** The longest that a capture may run, in seconds: a day. */
const MAX_SECONDS = 24 * 3600

export const captures = storedKind({
  kind: 'capture',
  about:
    'Keeps heads and bodies of the exchanges of an edge for a while. Credentials, cookies and identity headers are masked, and always so for members.',
  prefix: 'cap_',
  access: 'owner',
  // Can be ended but not changed; starting or ending one takes more than writing a row.
  verbs: ['create', 'list', 'get', 'delete'],
  handlers: { create: 'start_capture', delete: 'end_capture' },
  form: {
    edge_id: Type.Optional(Type.String({ minLength: 1, maxBytes: 64, description: 'Id of an HTTPS edge.' })),
    endpoint_id: Type.Optional(
      Type.String({ minLength: 1, maxBytes: 64, description: "Id of an agent's endpoint, instead of `edge_id`." }),
    ),
    bodies: Type.Boolean({ default: false, description: 'Whether bodies are kept too.' }),
    max_body_bytes: Type.Integer({
      default: 64 * 1024,
      minimum: 0,
      maximum: MAX_CAPTURED_BODY,
      description: 'The most bytes to keep of each body, from its start.',
    }),
    duration: Type.Integer({ default: 600, minimum: 1, maximum: MAX_SECONDS, description: 'How long, in seconds.' }),
    unmask: Type.Boolean({
      default: false,
      description: 'Whether credentials, cookies and identity headers are kept as they are. Admins only.',
      'x-for-admins': true,
    }),
  },
  shows: { expires_at: Type.String({ description: 'When it ends, RFC 3339.' }) },
  columns: ['edge_id', 'endpoint_id', 'bodies', 'unmask', 'expires_at'],
  claims: ({ edge_id, endpoint_id }) => [
    {
      scope: 'capture',
      key: edge_id ?? endpoint_id ?? '',
      taken: {
        code: 'CAPTURE_RUNS',
        msg: 'this edge is captured already; end that capture, or wait until it ends',
        field: edge_id === undefined ? 'endpoint_id' : 'edge_id',
      },
    },
  ],
})
