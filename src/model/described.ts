/** Describes traffic for a dry run: a request or connection, and the assumed answers of other servers (D55). */
import type { Static } from 'typebox'
import { closedObject } from '../lib/shape/schema.ts'
import { Type } from '../lib/shape/type.ts'

const MAX_TEXT_BYTES = 8192
/** The longest described body; the whole API request may have 1 MiB. */
const MAX_BODY_BYTES = 256 * 1024

const headers = (description: string) =>
  Type.Record(
    Type.String(),
    Type.Array(Type.String({ maxBytes: MAX_TEXT_BYTES }), { maxItems: 50, 'x-or-one': true }),
    { default: {}, maxProperties: 100, maxKeyBytes: 256, description },
  )

const body = (description: string) => Type.String({ default: '', maxBytes: MAX_BODY_BYTES, description })

const status = Type.Integer({ default: 200, minimum: 200, maximum: 599, description: 'Status of the response.' })

const request = closedObject({
  method: Type.String({ default: 'GET', minLength: 1, maxBytes: 32, description: 'Method of the request.' }),
  url: Type.String({
    default: '',
    maxBytes: MAX_TEXT_BYTES,
    description:
      'A URL, or a path with its query. The default is the address of the edge and the match of the route; `http://` means the plain HTTP listener.',
  }),
  headers: headers('Headers by name, each with one value or a list of them.'),
  body: body('Body of the request.'),
  version: Type.Enum(['1.1', '2'], { default: '1.1', description: 'Version of HTTP.' }),
})

const tls = closedObject(
  {
    version: Type.Enum(['1.0', '1.1', '1.2', '1.3'], { default: '1.3', description: 'Version of TLS.' }),
    cipher_suite: Type.String({ default: 'TLS_AES_128_GCM_SHA256', maxBytes: 128, description: 'Cipher suite.' }),
    alpn: Type.String({ default: '', maxBytes: 255, description: 'Negotiated protocol, such as `h2`.' }),
    session_resumed: Type.Boolean({ default: false, description: 'Whether an earlier TLS session was resumed.' }),
    client_certificate: Type.String({
      default: '',
      maxBytes: 65_536,
      description: 'Certificate of the client in PEM, followed by any intermediate certificates.',
    }),
  },
  { description: 'What the TLS handshake negotiated.' },
)

const connection = closedObject({
  protocol: Type.Enum(['', 'tcp', 'tls'], {
    default: '',
    description:
      'The kind of edge, when `policy` is given and `request` is not. The default is `tls` if `server_name` or `tls` is given, and `tcp` otherwise.',
  }),
  client_ip: Type.String({ default: '192.0.2.1', maxBytes: 64, description: 'Address of the visitor.' }),
  client_port: Type.Integer({ default: 50_000, minimum: 1, maximum: 65_535, description: 'Port of the visitor.' }),
  server_ip: Type.String({ default: '192.0.2.2', maxBytes: 64, description: 'Address that the visitor connected to.' }),
  server_port: Type.Integer({
    default: 0,
    minimum: 0,
    maximum: 65_535,
    description: 'Port that the visitor connected to; 0 for that of the edge.',
  }),
  server_name: Type.String({
    default: '',
    maxBytes: 255,
    description: 'Name in the TLS handshake. The default is a name of the edge, or the host of the request.',
  }),
  tls: Type.Optional(tls),
})

const answer = closedObject({
  url: Type.String({
    minLength: 1,
    maxBytes: MAX_TEXT_BYTES,
    description: 'URL of the request that gets this answer.',
  }),
  status_code: status,
  headers: headers('Headers of the answer.'),
  body: body('Body of the answer.'),
})

export const describedFields = {
  request: Type.Optional(request),
  connection: Type.Optional(connection),
  response: Type.Optional(
    closedObject(
      { status_code: status, headers: headers('Headers of the response.'), body: body('Body of the response.') },
      { description: 'The assumed response of the upstream. The default is 200 without headers and body.' },
    ),
  ),
  login: Type.Optional(
    closedObject(
      {
        id: Type.String({ default: 'user', maxBytes: 255, description: 'Id of the user at the provider.' }),
        name: Type.String({ default: '', maxBytes: 255, description: 'Name of the user.' }),
        email: Type.String({ default: '', maxBytes: 255, description: 'Email address of the user.' }),
        username: Type.String({ default: '', maxBytes: 255, description: 'Name of the user at the provider.' }),
      },
      { description: 'The user who is assumed to be logged in. The default is nobody.' },
    ),
  ),
  fetches: Type.Array(answer, {
    default: [],
    maxItems: 20,
    description: 'Assumed answers to requests that modules would make. A dry run never sends such requests.',
  }),
}

export const describedForm = closedObject(describedFields)

/** A description that was checked against the form. */
export type Described = Static<typeof describedForm>
export type DescribedRequest = NonNullable<Described['request']>
export type DescribedConnection = NonNullable<Described['connection']>
