/** Joins a visitor who speaks WebSocket with a backend that speaks bytes: messages are bytes, however they are cut. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { binaryHead, closeCode, closeFrame, FrameReader, pongFrame } from './frames.ts'

/** How long whoever was told goodbye may take to go, in milliseconds; what it has not read yet comes before. */
const LINGER_MS = 60_000
/** Bytes up to which copying a chunk behind its head is cheaper than a second write. */
const MAX_COPIED_BYTES = 8192

/** */
export function bridgeWebSocket(visitor: ByteStream, backend: ByteStream): void {
  let openStreams = 2
  /** We sent our close: nothing follows it to the visitor, and what still comes from either side is dropped. */
  let isClosing = false
  let visitorIsFull = false
  /** The newest ping that could not be answered yet; RFC 6455 §5.5.3 asks for no more. */
  let owedPong: Buffer | undefined
  let linger: NodeJS.Timeout | undefined

  const send = (bytes: Buffer): void => {
    if (!visitor.write(bytes)) visitorIsFull = true
  }
  /** Says goodbye to both; whoever does not go is made to. */
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
      // What it sent is not whole, so a clean end would be a lie.
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
      // Gone without a goodbye: only what came whole may end cleanly.
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
