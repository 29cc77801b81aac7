/** Takes a PROXY protocol header off the front of a stream, for services that want it before their TLS. */
import type { WireStream } from '../wire/wire-stream.ts'

/** Longest header that is recognised, in bytes. Version 1 allows 107; of version 2 only the addresses are sent. */
const HEADER_BYTES = 536

const v1Start = Buffer.from('PROXY ')
const v2Start = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const V2_FIXED_BYTES = 16

export interface ProxyLine {
  /** The header as it came; empty when there was none. */
  readonly header: Buffer
  /** Bytes read after the header while looking for its end. */
  readonly rest: Buffer
}

/** Calls `done` once; with undefined when the stream ended before the whole header arrived. */
export function readProxyLine(stream: WireStream, done: (line: ProxyLine | undefined) => void): void {
  const bytes: number[] = []
  const proceed = (): void => {
    for (;;) {
      const length = headerLength(bytes)
      if (length !== undefined) {
        const all = Buffer.from(bytes)
        finish({ header: all.subarray(0, length), rest: all.subarray(length) })
        return
      }
      // One byte at a time, so that nothing after the header is read; it is short, and sent once per connection.
      const byte = stream.take(1)
      if (!byte) break
      bytes.push(byte[0] ?? 0)
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

/** Length of the header in bytes, 0 when there is none; undefined while more bytes are needed to tell. */
function headerLength(bytes: readonly number[]): number | undefined {
  if (startsAs(bytes, v1Start)) {
    if (bytes.length > HEADER_BYTES) return 0
    return bytes.length > v1Start.length && bytes.at(-2) === 0x0d && bytes.at(-1) === 0x0a ? bytes.length : undefined
  }
  if (startsAs(bytes, v2Start)) {
    if (bytes.length < V2_FIXED_BYTES) return undefined
    const length = V2_FIXED_BYTES + (bytes[14] ?? 0) * 256 + (bytes[15] ?? 0)
    if (length > HEADER_BYTES) return 0
    return bytes.length < length ? undefined : length
  }
  return 0
}

/** Whether `bytes` begin with `start`, or may still do so once more of them arrive. */
function startsAs(bytes: readonly number[], start: Buffer): boolean {
  return start.every((byte, i) => i >= bytes.length || bytes[i] === byte)
}
