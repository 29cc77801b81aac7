/** Frames as a WebSocket client writes them, right or wrong, for tests. */
import { randomBytes } from 'node:crypto'

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export function clientFrame(kind: keyof typeof opcodes, payload: Buffer, { isFinal = true } = {}): Buffer {
  const mask = randomBytes(4)
  const size = payload.length
  const length =
    size < 126
      ? Buffer.from([0x80 | size])
      : size < 65_536
        ? Buffer.from([0x80 | 126, size >> 8, size & 0xff])
        : Buffer.from([0x80 | 127, 0, 0, 0, 0, ...Buffer.from(size.toString(16).padStart(8, '0'), 'hex')])
  const masked = payload.map((byte, i) => byte ^ (mask[i & 3] ?? 0))
  return Buffer.concat([Buffer.from([(isFinal ? 0x80 : 0) | opcodes[kind]]), length, mask, masked])
}
