/** Accepts WebSocket connections only, and joins them with plain bytes. */
import type { Phases, RequestContext, RequestVerdict } from '../phases.ts'
import { bridgeWebSocket } from './bridge.ts'

/** It has no settings. */
export type WebsocketTcpConverterSettings = Readonly<Record<string, never>>

export function compileWebsocketTcpConverter(): Phases {
  return { request: (ctx) => (isHandshake(ctx) ? undefined : refused), bridge: bridgeWebSocket }
}

const refused: RequestVerdict = { refuse: 'WEBSOCKET_REQUIRED', headers: [['Sec-WebSocket-Version', '13']] }

/** Whether a request is a WebSocket handshake by RFC 6455 §4.2.1; the key is 16 bytes in base64. */
function isHandshake({ isUpgrade, method, headers }: RequestContext): boolean {
  if (!isUpgrade || method !== 'GET') return false
  const [key = '', ...more] = headers.all('sec-websocket-key')
  return more.length === 0 && /^[+/0-9A-Za-z]{22}==$/.test(key) && headers.get('sec-websocket-version') === '13'
}
