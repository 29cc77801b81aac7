/**
 * Accepts WebSocket connections only, and joins them with plain bytes.
 *
 * @example
 * const phases = compileWebsocketTcpConverter()
 * const headers = { 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==', 'sec-websocket-version': '13' }
 * phases.request(request({ isUpgrade: true, headers })) // undefined
 * phases.request(request()).refuse // 'WEBSOCKET_REQUIRED'
 */

import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import type { Phases, RequestContext, RequestVerdict } from '../phases.ts'
import { binaryHead, closeCode, closeFrame, FrameReader, pongFrame } from './frames.ts'

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

/** How long a side may take to close after it was told to, in milliseconds; it may have data left to read. */
const LINGER_MS = 60_000
/** Up to this many bytes, copying a chunk behind its frame head is cheaper than a second write. */
const MAX_COPIED_BYTES = 8192

/** Joins a visitor with a backend of plain bytes; where messages begin and end does not matter. */
export function bridgeWebSocket(visitor: ByteStream, backend: ByteStream): void {
  let openStreams = 2
  /** Set once we sent our close frame: nothing follows it, and what either side still sends is dropped. */
  let isClosing = false
  let visitorIsFull = false
  /** The latest ping that could not be answered yet; RFC 6455 §5.5.3 requires no more. */
  let owedPong: Buffer | undefined
  let linger: NodeJS.Timeout | undefined

  const send = (bytes: Buffer): void => {
    if (!visitor.write(bytes)) visitorIsFull = true
  }
  /** Ends both sides; a side that does not close in time is reset. */
  const finish = (code: number): void => {
    if (isClosing) return
    isClosing = true
    visitor.write(closeFrame(code))
    visitor.end()
    backend.end()
    visitor.resume()
    backend.resume()
    linger = setTimeout(() => {
      visitor.reset()
      backend.reset()
    }, LINGER_MS)
    linger.unref()
  }
  const closed = (): void => {
    if (--openStreams === 0) clearTimeout(linger)
  }

  const frames = new FrameReader({
    data(bytes) {
      if (!isClosing && !backend.write(bytes)) visitor.pause()
    },
    ping(payload) {
      if (isClosing) return
      if (visitorIsFull) owedPong = payload
      else send(pongFrame(payload))
    },
    close: () => finish(closeCode.normal),
  })

  visitor.attach({
    data(chunk) {
      const fault = frames.read(chunk)
      if (fault === undefined) return
      finish(fault)
      // The visitor's data is incomplete, so the backend must not see a clean end.
      backend.reset()
    },
    end: () => finish(closeCode.normal),
    drain() {
      visitorIsFull = false
      if (owedPong && !isClosing) send(pongFrame(owedPong))
      owedPong = undefined
      if (!visitorIsFull) backend.resume()
    },
    closed(error) {
      // The visitor is gone without a close frame: its data may be incomplete, so the backend must not see a clean end.
      if (error && !isClosing) backend.reset()
      finish(closeCode.normal)
      closed()
    },
  })
  backend.attach({
    data(chunk) {
      if (isClosing || chunk.length === 0) return
      const head = binaryHead(chunk.length)
      if (chunk.length <= MAX_COPIED_BYTES) send(Buffer.concat([head, chunk]))
      else {
        send(head)
        send(chunk)
      }
      if (visitorIsFull) backend.pause()
    },
    end: () => finish(closeCode.normal),
    drain: () => visitor.resume(),
    closed(error) {
      finish(error ? closeCode.internalError : closeCode.normal)
      closed()
    },
  })
}
