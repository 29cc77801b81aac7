/** Exchanges: the latest requests of visitors and their answers, which the nodes remember for a while. */
import type { TProperties } from 'typebox'
import { closedObject, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { presentKind } from './resource.ts'

const ms = (description: string) => nullable(Type.Integer({ description }))
const idOf = (what: string) => nullable(Type.String({ description: `Id of the ${what}, if there is one.` }))

const timings = closedObject(
  {
    modules_ms: ms('Until all modules had let the request pass.'),
    dial_ms: ms('Until there was a connection to the service.'),
    wait_ms: ms('From then until the head of the answer.'),
    receive_ms: ms('From then until the end.'),
  },
  { description: 'How long each part took, in milliseconds; null for parts that were not reached.' },
)

/** Headers of a message that was kept. */
const headers = Type.Array(
  closedObject({
    name: Type.String({ description: 'Name as it was sent.' }),
    value: Type.String({ description: '`[masked]` where it was masked.' }),
  }),
  { description: 'In the order in which they were sent.' },
)

const body = nullable(
  closedObject(
    {
      size: Type.Integer({ description: 'Bytes of the whole body.' }),
      kept: Type.Integer({ description: 'Bytes of it that were kept, from its start.' }),
      encoding: Type.Enum(['text', 'base64'], {
        description: 'How `content` is written: `base64` if it is not UTF-8.',
      }),
      content: Type.String({ description: 'The kept bytes.' }),
      unpacked: nullable(
        closedObject(
          {
            coding: Type.String({ description: '`gzip`, `deflate`, `br` or `zstd`.' }),
            size: Type.Integer({ description: 'Bytes of the content.' }),
            is_cut: Type.Boolean({ description: 'Whether there is more: of the kept bytes, 1 MiB is unpacked.' }),
            content: Type.String({ description: 'The text.' }),
          },
          { description: 'The body before it was compressed; null when it was not compressed, or is not text.' },
        ),
      ),
    },
    { description: 'Null when bodies were not kept.' },
  ),
)

const message = (description: string) => Type.Optional(nullable(closedObject({ headers, body }, { description })))

const shows: TProperties = {
  id: Type.String({ description: 'Unique identifier; identifiers sort by the end of the exchange.' }),
  uri: Type.String({ description: 'Address of this exchange.' }),
  started_at: Type.String({ description: 'When the head of the request had arrived, RFC 3339 with milliseconds.' }),
  method: Type.String({ description: 'As it was sent.' }),
  host: Type.String({ description: 'The requested host, without port.' }),
  path: Type.String({ description: 'Path and query as they were sent, cut to 1024 characters.' }),
  status: nullable(Type.Integer({ description: 'Status of the answer; null when there was none.' })),
  error_code: nullable(Type.String({ description: 'The error that the server itself answered with.' })),
  duration_ms: Type.Integer({ description: 'From start to end, in milliseconds.' }),
  timings,
  request_bytes: Type.Integer({ description: "Bytes of the request's body, or from the visitor after an upgrade." }),
  response_bytes: Type.Integer({ description: "Bytes of the answer's body, or to the visitor after an upgrade." }),
  protocol: Type.String({ description: '`HTTP/1.1` or `HTTP/2`.' }),
  scheme: Type.Enum(['http', 'https'], { description: 'Scheme that the visitor used.' }),
  client_ip: Type.String({ description: 'Address of the visitor.' }),
  edge_id: idOf('edge'),
  route_id: idOf('route'),
  endpoint_id: idOf("agent's endpoint"),
  tunnel_id: idOf('tunnel that it went through'),
  tunnel_session_id: nullable(Type.String({ description: 'Id of the session of that tunnel, while it is online.' })),
  decided: Type.Unsafe({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'What modules decided, such as `ip_policy.decision`.',
  }),
  is_cut: Type.Boolean({ description: 'Whether the visitor or the service left before it was complete.' }),
  capture_id: idOf('capture that kept its heads'),
  replay_of: idOf('exchange that it repeated'),
  node: Type.String({ description: 'Id of the node that has it.' }),
  // Absent in lists.
  request: message('The request as the visitor sent it; null when it was not kept.'),
  response: message('The answer as the visitor got it; null when it was not kept.'),
}

/** Filters of a list or stream, as query parameters. */
const filters: TProperties = {
  edge_id: Type.String({ maxBytes: 64, description: 'Only those of this edge.' }),
  endpoint_id: Type.String({ maxBytes: 64, description: "Only those of this agent's endpoint." }),
  tunnel_id: Type.String({ maxBytes: 64, description: 'Only those that went through this tunnel.' }),
  method: Type.String({ maxBytes: 32, description: 'Only those with this method, such as `POST`.' }),
  path: Type.String({ maxBytes: 1024, description: 'Only those whose path begins with this.' }),
  status: Type.String({ pattern: '^[1-5][0-9]{2}$', description: 'Only those with this status, such as `502`.' }),
  since: Type.String({ maxBytes: 64, description: 'Only those that began at this time or later, RFC 3339.' }),
}

const curlView = closedObject({
  command: Type.String({
    description: 'A command for a POSIX shell. Masked headers are left out, and named in a comment.',
  }),
})

/** https://w3c.github.io/web-performance/specs/HAR/Overview.html */
const harView = closedObject({
  log: Type.Unsafe({
    type: 'object',
    additionalProperties: true,
    description: 'The document, version 1.2, with this one exchange.',
  }),
})

/** The parts of a request that a replay may change. */
export const replayForm = closedObject({
  method: Type.Optional(
    Type.String({ pattern: '^(?!CONNECT$)[A-Z][A-Z-]{0,31}$', description: 'Another method, such as `POST`.' }),
  ),
  path: Type.Optional(
    Type.String({ pattern: '^/[!-~]*$', maxBytes: 8192, description: 'Another path, with its query: `/a?b=c`.' }),
  ),
  headers: Type.Optional(
    Type.Array(
      closedObject({
        name: Type.String({ minLength: 1, maxBytes: 255, description: 'Such as `Content-Type`.' }),
        value: Type.String({ maxBytes: 16_384, description: 'Its value.' }),
      }),
      { maxItems: 200, description: 'All headers to send, instead of the original ones.' },
    ),
  ),
  body: Type.Optional(
    closedObject(
      {
        encoding: Type.Enum(['text', 'base64'], { default: 'text', description: 'How `content` is written.' }),
        content: Type.String({ description: 'The body.' }),
      },
      { description: 'Another body.' },
    ),
  ),
})

export const exchanges = presentKind({
  kind: 'exchange',
  about: 'The latest requests of visitors and their answers. Kept in memory, for a while.',
  prefix: 'ex_',
  columns: ['method', 'host', 'path', 'status', 'error_code', 'duration_ms', 'client_ip'],
  verbs: ['list', 'get'],
  handlers: { list: 'list_exchanges', get: 'get_exchange' },
  filters,
  routes: [
    {
      operation: 'stream_exchanges',
      summary: 'Follow exchanges as they come, as server-sent events',
      method: 'GET',
      at: '/stream',
      filters,
      events:
        'Events: `following`, once nothing is left out from then on; `exchange`, each with an exchange as in a list; and `missed`, with the `count` of those that were left out, whatever the filter.',
      verb: { about: 'show exchanges as they come, one per line' },
    },
    {
      operation: 'replay_exchange',
      summary: 'Send the request of an exchange again',
      method: 'POST',
      at: '/{id}/replay',
      status: 201,
      body: replayForm,
      verb: { about: 'send the request of one exchange again, unchanged or edited' },
    },
    {
      operation: 'get_exchange_har',
      summary: 'Get an exchange as a HAR document',
      method: 'GET',
      at: '/{id}/har',
      response: harView,
      verb: { about: 'show one exchange as a HAR document', prints: 'json' },
    },
    {
      operation: 'get_exchange_curl',
      summary: 'Get the request of an exchange as a command for curl',
      method: 'GET',
      at: '/{id}/curl',
      response: curlView,
      verb: { about: 'show the request of one exchange as a curl command', prints: { field: 'command' } },
    },
  ],
  shows,
})
