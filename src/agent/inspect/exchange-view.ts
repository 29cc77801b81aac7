/** Exchanges as the agent's own API shows them, in the shape of the server's `/exchanges`. */
import { isUtf8 } from 'node:buffer'
import type { Unpacker } from '../../lib/bytes/unpacker.ts'
import { eventFields } from './event-reader.ts'
import { fieldOf, fieldsOf, listOf } from './http-head.ts'
import type { InspectedExchange, InspectedFrame } from './inspected-exchange.ts'
import type { KeptBytes } from './kept-bytes.ts'
import { SocketMessages } from './socket-messages.ts'
import { FRAME_BYTES, unmask } from './websocket-reader.ts'

/** The error that the server sends to visitors when the service did not respond. */
const UNREACHABLE = 'ERR_UPSTREAM_UNREACHABLE'

export function exchangeItem(exchange: InspectedExchange, id: string) {
  const { origin, end } = exchange
  return {
    id,
    uri: `/api/exchanges/${id}`,
    started_at: new Date(exchange.startedAt).toISOString(),
    method: exchange.method,
    host: hostOf(exchange),
    path: exchange.target,
    status: exchange.status ?? null,
    error_code: end === 'unserved' ? UNREACHABLE : null,
    duration_ms: Math.round(exchange.durationMs),
    request_bytes: exchange.bytesFrom('client'),
    response_bytes: exchange.bytesFrom('service'),
    protocol: exchange.protocol,
    scheme: origin.scheme,
    client_ip: ipOf(origin.clientAddress),
    tunnel_name: origin.tunnelName,
    is_cut: exchange.isCut,
    is_open: end === undefined,
    frame_count: exchange.frameCount,
    replay_of: origin.replayOf ?? null,
  }
}

export async function wholeExchange(exchange: InspectedExchange, id: string, unpacker: Unpacker) {
  const { requestHead, requestBody, responseHead, responseBody } = exchange
  const messages = socketMessages(exchange)
  const frames: FrameView[] = []
  for (const frame of [...exchange.frames]) frames.push(frameView(frame, await messages.read(frame)))
  return {
    ...exchangeItem(exchange, id),
    request: { headers: fieldsOf(requestHead), body: await bodyView(requestBody, requestHead, unpacker) },
    response: responseHead
      ? { headers: fieldsOf(responseHead), body: await bodyView(responseBody, responseHead, unpacker) }
      : null,
    frames,
  }
}

/** Reads the compressed messages of a WebSocket; it is given all of its frames in their order. */
export function socketMessages({ responseHead }: InspectedExchange): SocketMessages {
  return new SocketMessages(responseHead === undefined ? '' : listOf(responseHead, 'sec-websocket-extensions'))
}

type FrameView = ReturnType<typeof frameView>

/** `message` is the decompressed message that the frame completes, if it could be read. */
export function frameView(frame: InspectedFrame, message?: Buffer) {
  const { number, time, from, type, isLast, isCompressed, size, bytes } = frame
  const shared = { number, at: new Date(time).toISOString(), from, type }
  if (type === 'event') {
    const { event, id, data } = eventFields(bytes)
    return { ...shared, event, event_id: id, size, kept: bytes.length, encoding: 'text', content: data }
  }
  const content = contentView(unmask(frame), { isCut: size > bytes.length || !isLast })
  const unpacked = message ? messageView(message) : null
  return { ...shared, is_last: isLast, is_compressed: isCompressed, size, kept: bytes.length, ...content, unpacked }
}

function messageView(message: Buffer) {
  const isCut = message.length > FRAME_BYTES
  const content = contentView(message.subarray(0, FRAME_BYTES), { isCut })
  return { coding: 'permessage-deflate', size: message.length, is_cut: isCut, ...content }
}

/** The address without its port. */
export function ipOf(address: string): string {
  return address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
}

function hostOf({ requestHead }: InspectedExchange): string {
  return fieldOf(requestHead, 'host').replace(/:\d+$/, '')
}

async function bodyView(body: KeptBytes | undefined, head: string, unpacker: Unpacker) {
  if (!body) return null
  const { size, kept, bytes } = body
  const found = await unpacker.text(bytes, listOf(head, 'content-encoding'))
  const unpacked = found
    ? { coding: found.coding, size: found.size, is_cut: found.isCut, content: found.content }
    : null
  return { size, kept, ...contentView(bytes, { isCut: size > kept }), unpacked }
}

function contentView(bytes: Buffer, { isCut }: { isCut: boolean }) {
  const text = isCut ? withoutHalf(bytes) : bytes
  if (isUtf8(text)) return { encoding: 'text' as const, content: text.toString('utf8') }
  return { encoding: 'base64' as const, content: bytes.toString('base64') }
}

/** Cuts off the beginning of a character whose rest was not kept. */
function withoutHalf(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (byte < 0x80) break
    // The first byte says how many bytes the character has.
    if (byte >= 0xc0) {
      const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      return back < length ? bytes.subarray(0, -back) : bytes
    }
  }
  return bytes
}
