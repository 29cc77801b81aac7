/** Exchanges as the official agent's API shows them, under `/api/requests/http`. */
import { ipOf } from './exchange-view.ts'
import { fieldsOf, isChunked, protocolOf, statusText } from './http-head.ts'
import type { InspectedExchange } from './inspected-exchange.ts'
import type { KeptBytes } from './kept-bytes.ts'

export function requestView(exchange: InspectedExchange, id: string) {
  const { origin, requestHead, requestBody, responseHead, responseBody } = exchange
  return {
    uri: `/api/requests/http/${id}`,
    id,
    tunnel_name: origin.tunnelName,
    remote_addr: ipOf(origin.clientAddress),
    start: new Date(exchange.startedAt).toISOString(),
    // Nanoseconds.
    duration: Math.round(exchange.durationMs * 1e6),
    request: {
      method: exchange.method,
      proto: exchange.protocol,
      headers: headerMap(requestHead),
      uri: exchange.target,
      raw: rawMessage(requestHead, requestBody).toString('base64'),
    },
    response: responseHead
      ? {
          status: statusText(responseHead),
          status_code: exchange.status ?? 0,
          proto: protocolOf(responseHead),
          headers: headerMap(responseHead),
          raw: rawMessage(responseHead, responseBody).toString('base64'),
        }
      : null,
  }
}

/** A message as it can be sent again; a chunked body becomes one chunk. */
export function rawMessage(head: string, body: KeptBytes | undefined): Buffer {
  const content = body?.bytes ?? Buffer.alloc(0)
  const start = Buffer.from(head, 'latin1')
  if (!isChunked(head)) return Buffer.concat([start, content])
  const size = Buffer.from(content.length === 0 ? '' : `${content.length.toString(16)}\r\n`)
  const rest = Buffer.from(content.length === 0 ? '0\r\n\r\n' : '\r\n0\r\n\r\n')
  return Buffer.concat([start, size, content, rest])
}

/** The values of each header, with names spelled as Go does: `Content-Type`. */
function headerMap(head: string): Record<string, string[]> {
  const map = new Map<string, string[]>()
  for (const { name, value } of fieldsOf(head)) {
    const spelled = name.toLowerCase().replace(/(^|-)[a-z]/g, (letters) => letters.toUpperCase())
    map.set(spelled, [...(map.get(spelled) ?? []), value])
  }
  return Object.fromEntries(map)
}
