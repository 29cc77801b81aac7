/** For tests: a dial, and the end of a relayed stream at the visitor's plane. */
import type { ByteStream } from '../../../lib/bytes/byte-stream.ts'
import { DialFault, type DialRequest } from '../../../model/dial.ts'

export const request: DialRequest = {
  tunnelId: 'tn_1',
  ip: '2001:db8::1',
  port: 40_000,
  proto: 'https',
  edge: 'tls',
  passthroughTls: true,
}

export function reached(result: ByteStream | DialFault): ByteStream {
  if (result instanceof DialFault) throw result
  return result
}

/** The end at the visitor's plane, and what arrives there. */
export class Near {
  readonly stream: ByteStream
  readonly heard: Buffer[] = []
  readonly closes: (Error | undefined)[] = []
  ends = 0
  drains = 0

  constructor(stream: ByteStream) {
    this.stream = stream
    stream.attach({
      data: (chunk) => this.heard.push(chunk),
      end: () => this.ends++,
      drain: () => this.drains++,
      closed: (error) => this.closes.push(error),
    })
  }

  get bytes(): Buffer {
    return Buffer.concat(this.heard)
  }
}
