/** The server's half of a WebSocket handshake, for routes whose backend does not speak WebSocket itself. */
import { createHash } from 'node:crypto'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { isHeaderName } from '../../../lib/http/http-header.ts'
import type { RequestContext } from '../../../modules/phases.ts'
import type { ResponseHead } from '../../requests/http-exchange.ts'

/** RFC 6455 §1.3 */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
/** 16 bytes in base64; the last of 22 digits carries only two bits. */
const key = /^[A-Za-z0-9+/]{21}[AQgw]==$/

/** RFC 6455 §4.2: the 101 for this request; undefined when it is not a valid WebSocket request. */
export function acceptWebSocket(
  { method, headers }: RequestContext,
  upgrade: string | undefined,
): ResponseHead | undefined {
  const keys = headers.all('sec-websocket-key')
  const [sent = ''] = keys
  const isAsked = upgrade?.split(',').some((protocol) => protocol.trim().toLowerCase() === 'websocket')
  if (!isAsked || method !== 'GET' || keys.length !== 1 || !key.test(sent)) return undefined
  if (headers.get('sec-websocket-version') !== '13') return undefined
  const answer = HeaderList.of([
    ['Upgrade', 'websocket'],
    ['Sec-WebSocket-Accept', acceptOf(sent)],
  ])
  // Browsers fail when they offer subprotocols and none is accepted; for plain bytes any will do.
  const [offered = ''] = headers.get('sec-websocket-protocol')?.split(',') ?? []
  if (isHeaderName(offered.trim())) answer.add('Sec-WebSocket-Protocol', offered.trim())
  return { status: 101, reason: '', headers: answer, body: 'none' }
}

/** RFC 6455 §4.1: whether `answer` shows that its sender speaks WebSocket and read the request with the headers `asked`. */
export function acceptsWebSocket(answer: HeaderList, asked: HeaderList): boolean {
  const accept = acceptOf(asked.get('sec-websocket-key') ?? '')
  return answer.get('upgrade')?.toLowerCase() === 'websocket' && answer.get('sec-websocket-accept')?.trim() === accept
}

function acceptOf(sent: string): string {
  return createHash('sha1').update(sent).update(GUID).digest('base64')
}
