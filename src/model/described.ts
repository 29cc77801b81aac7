/** Traffic that somebody describes, for a dry run: what it is made of, and what is taken to be so around it (D55). */
import { type Static, type TObject, type TProperties, Type } from 'typebox'

const MAX_TEXT_BYTES = 8192
/** Of a described body; the body of a call has 1 MiB in all. */
const MAX_BODY_BYTES = 256 * 1024

const headers = (description: string) =>
  Type.Record(
    Type.String(),
    Type.Array(Type.String({ maxBytes: MAX_TEXT_BYTES }), { maxItems: 50, 'x-or-one': true }),
    { default: {}, maxProperties: 100, maxKeyBytes: 256, description },
  )

const body = (description: string) => Type.String({ default: '', maxBytes: MAX_BODY_BYTES, description })

const status = Type.Integer({ default: 200, minimum: 200, maximum: 599, description: 'Status of the response.' })

function closed<P extends TProperties>(properties: P, options: { description?: string } = {}): TObject<P> {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

const request = closed({
  method: Type.String({ default: 'GET', minLength: 1, maxBytes: 32, description: 'Method of the request.' }),
  url: Type.String({
    default: '',
    maxBytes: MAX_TEXT_BYTES,
    description:
      'A URL, or a path with its query. Left out, it is the address of the edge and the match of the route; `http://` asks on the plain listener.',
  }),
  headers: headers('Headers by name, each with one value or a list of them.'),
  body: body('Body of the request.'),
  version: Type.Enum(['1.1', '2'], { default: '1.1', description: 'Version of HTTP.' }),
})

const tls = closed(
  {
    version: Type.Enum(['1.0', '1.1', '1.2', '1.3'], { default: '1.3', description: 'Version of TLS.' }),
    cipher_suite: Type.String({ default: 'TLS_AES_128_GCM_SHA256', maxBytes: 128, description: 'Cipher suite.' }),
    alpn: Type.String({ default: '', maxBytes: 255, description: 'Protocol agreed on, such as `h2`.' }),
    session_resumed: Type.Boolean({ default: false, description: 'Whether an earlier session was taken up again.' }),
    client_certificate: Type.String({
      default: '',
      maxBytes: 65_536,
      description: 'Certificate of the client in PEM, with those between it and its authority behind it.',
    }),
  },
  { description: 'What the handshake agreed on.' },
)

const connection = closed({
  protocol: Type.Enum(['', 'tcp', 'tls'], {
    default: '',
    description:
      'With `policy` and without `request`: what the policy hangs on. Left out, TLS when a name or TLS is described.',
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
    description: 'Name in the handshake; left out, a name of the edge, or the host of the request.',
  }),
  tls: Type.Optional(tls),
})

const answer = closed({
  url: Type.String({ minLength: 1, maxBytes: MAX_TEXT_BYTES, description: 'The URL that is asked.' }),
  status_code: status,
  headers: headers('Headers of the answer.'),
  body: body('Body of the answer.'),
})

export const describedFields = {
  request: Type.Optional(request),
  connection: Type.Optional(connection),
  response: Type.Optional(
    closed(
      { status_code: status, headers: headers('Headers of the response.'), body: body('Body of the response.') },
      { description: 'What the upstream is taken to answer; left out, 200 without headers and body.' },
    ),
  ),
  login: Type.Optional(
    closed(
      {
        id: Type.String({ default: 'user', maxBytes: 255, description: 'What the provider knows the user by.' }),
        name: Type.String({ default: '', maxBytes: 255, description: 'Name of the user.' }),
        email: Type.String({ default: '', maxBytes: 255, description: 'Address of the user.' }),
        username: Type.String({ default: '', maxBytes: 255, description: 'Name of the user at the provider.' }),
      },
      { description: 'Who is taken to be logged in; left out, nobody is.' },
    ),
  ),
  fetches: Type.Array(answer, {
    default: [],
    maxItems: 20,
    description: 'What addresses that modules would ask are taken to answer. Nothing is asked in any case.',
  }),
}

export const describedForm = closed(describedFields)

/** Checked against the form. */
export type Described = Static<typeof describedForm>
export type DescribedRequest = NonNullable<Described['request']>
export type DescribedConnection = NonNullable<Described['connection']>
