/** Reads a PROXY protocol header from the front of a stream, for services that expect it before TLS. */
import type { WireStream } from '../link/wire/wire-stream.ts'

/** Longest header that is recognised, in bytes. Version 1 allows 107; of version 2 only the addresses are sent. */
const HEADER_BYTES = 536

const v1Start = Buffer.from('PROXY ')
const v2Start = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const V2_FIXED_BYTES = 16

interface ProxyLine {
  /** The header as it came; empty when there was none. */
  readonly header: Buffer
  /** Bytes read after the header while looking for its end. */
  readonly rest: Buffer
}

/** Calls `done` once; with undefined when the stream ended before the whole header arrived. */
export function readProxyLine(stream: WireStream, done: (line: ProxyLine | undefined) => void): void {
  const bytes = Buffer.alloc(HEADER_BYTES + 1)
  let read = 0
  const proceed = (): void => {
    for (;;) {
      const all = bytes.subarray(0, read)
      const length = proxyHeaderLength(all)
      if (length !== undefined) {
        finish({ header: all.subarray(0, length), rest: all.subarray(length) })
        return
      }
      // One byte at a time, so that nothing after the header is read; it is short, and sent once per connection.
      const byte = stream.take(1)
      if (!byte) break
      bytes[read++] = byte[0] ?? 0
    }
    if (stream.isClosed || stream.isEndReceived) finish(undefined)
  }
  const finish = (line: ProxyLine | undefined): void => {
    stream.onArrival = undefined
    done(line)
  }
  stream.onArrival = proceed
  proceed()
}

/** Length of the header that `bytes` begin with, 0 when there is none; undefined while more bytes are needed to tell. */
export function proxyHeaderLength(bytes: Buffer): number | undefined {
  if (startsAs(bytes, v1Start)) {
    const end = bytes.indexOf('\r\n')
    if (end >= 0 ? end + 2 > HEADER_BYTES : bytes.length > HEADER_BYTES) return 0
    return end >= 0 ? end + 2 : undefined
  }
  if (startsAs(bytes, v2Start)) {
    if (bytes.length < V2_FIXED_BYTES) return undefined
    const length = V2_FIXED_BYTES + bytes.readUInt16BE(V2_FIXED_BYTES - 2)
    if (length > HEADER_BYTES) return 0
    return bytes.length < length ? undefined : length
  }
  return 0
}

/** Whether `bytes` begin with `start`, or may still do so once more of them arrive. */
function startsAs(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length)
  return bytes.compare(start, 0, length, 0, length) === 0
}
