/** The head of a proxied connection: its tunnel and its visitor. */

import { parseMessage } from './agent-rpc.ts'
import { MessageFields } from './messages/message-fields.ts'
import { streamTypes, TYPE_BYTES } from './stream-types.ts'
import { PROXY_HEADER_BYTES } from './wire-bounds.ts'
import { WireError } from './wire-error.ts'
import type { WireStream } from './wire-stream.ts'

/** The kind of edge, as the wire spells it; `none` is an endpoint of an agent. */
const edgeTypes = { none: '0', tcp: '1', tls: '2', https: '3' } as const

export type EdgeType = keyof typeof edgeTypes

export interface ProxyHeader {
  /** The id that the bind or label tunnel was given. */
  readonly id: string
  /** `ip:port` of the visitor, IPv6 in brackets. */
  readonly clientAddr: string
  readonly proto: string
  readonly edgeType: EdgeType
  /** The bytes are still TLS. */
  readonly passthroughTls: boolean
  /** Id of the stream's first request in the server's log; `''` when there is none. Only our own agent reads it. */
  readonly requestId: string
}

/** Bytes of the length field; it is little-endian, unlike everything else. */
const LENGTH_BYTES = 8

/** The whole head of a proxied stream, for `Mux.open`. */
export function buildProxyHead(header: ProxyHeader): Buffer {
  const json = Buffer.from(
    JSON.stringify({
      Id: header.id,
      ClientAddr: header.clientAddr,
      Proto: header.proto,
      // A number here would make some agents refuse the stream.
      EdgeType: edgeTypes[header.edgeType],
      PassthroughTLS: header.passthroughTls,
      // Left out for agents that do not know it.
      RequestId: header.requestId || undefined,
    }),
  )
  const head = Buffer.alloc(TYPE_BYTES + LENGTH_BYTES)
  head.writeUInt32BE(streamTypes.proxy)
  head.writeBigInt64LE(BigInt(json.length), TYPE_BYTES)
  return Buffer.concat([head, json])
}

/** Reads the header of a stream whose type has been read; the rest is left for the sink. */
export function readProxyHeader(stream: WireStream, done: (header: ProxyHeader | WireError) => void): void {
  let length: number | undefined
  const finish = (result: ProxyHeader | WireError): void => {
    stream.onArrival = undefined
    done(result)
  }
  const proceed = (): void => {
    length ??= readLength(stream)
    const isAllowed = length === undefined || (length > 0 && length <= PROXY_HEADER_BYTES)
    const bytes = length !== undefined && isAllowed ? stream.take(length) : undefined
    if (bytes) finish(parseProxyHeader(bytes))
    else if (!isAllowed) finish(invalid(`the header must have 1 to ${PROXY_HEADER_BYTES} bytes`))
    else if (stream.isClosed || stream.isEndReceived) finish(invalid('the stream ended within its header'))
  }
  stream.onArrival = proceed
  proceed()
}

function readLength(stream: WireStream): number | undefined {
  const bytes = stream.take(LENGTH_BYTES)
  return bytes && Number(bytes.readBigInt64LE(0))
}

function parseProxyHeader(bytes: Buffer): ProxyHeader | WireError {
  const message = parseMessage(bytes)
  if (message instanceof WireError) return message
  return MessageFields.parse(message, (fields) => {
    const edge = fields.text('EdgeType')
    return {
      id: fields.text('Id'),
      clientAddr: fields.text('ClientAddr'),
      proto: fields.text('Proto'),
      edgeType: edgeNames.get(edge) ?? 'none',
      passthroughTls: fields.flag('PassthroughTLS'),
      requestId: fields.text('RequestId'),
    }
  })
}

const edgeNames = new Map<string, EdgeType>(
  Object.entries(edgeTypes).map(([name, number]) => [number, name as EdgeType]), // the keys are the type
)

function invalid(what: string): WireError {
  return new WireError('message_invalid', 'peer', what)
}
