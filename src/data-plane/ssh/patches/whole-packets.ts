/** Deciphers AES-GCM packets (RFC 5647 §7) in one go. */
import { createDecipheriv } from 'node:crypto'
import type { GcmDecipher } from 'ssh2'

const LENGTH_BYTES = 4
const TAG_BYTES = 16
const BLOCK_BYTES = 16

/** The largest packet, with its length and tag; the library has the same limit. */
const MOST_BYTES = 35_000

/** Collects a packet that arrives in pieces. */
class PartialPacket {
  /** As large as the largest packet so far: most clients send few and small ones. */
  #memory = Buffer.alloc(0)
  bytes = 0

  get packet(): Buffer {
    return this.#memory.subarray(0, this.bytes)
  }

  /** Copies from `data` at `at` until there are `wanted` bytes; returns how many were copied. */
  take(data: Buffer, at: number, wanted: number): number {
    if (this.#memory.length < wanted) {
      const more = Buffer.allocUnsafeSlow(wanted)
      this.packet.copy(more)
      this.#memory = more
    }
    const copied = data.copy(this.#memory, this.bytes, at, at + wanted - this.bytes)
    this.bytes += copied
    return copied
  }
}

/**
 * Makes `decipher`, which must be between two packets, decipher whole packets. The library deciphers each piece of a packet into
 * its own memory and then joins them; here the pieces are joined first. No memory that is passed in is kept.
 */
export function decipherWhole(decipher: GcmDecipher): void {
  const partial = new PartialPacket()
  decipher.decrypt = (chunk, from, end) => {
    const data = chunk.length === end ? chunk : chunk.subarray(0, end)
    let at = from
    while (at < end) {
      let packet: Buffer | undefined
      if (partial.bytes === 0 && end - at >= LENGTH_BYTES) {
        const bytes = sizeOf(data, at)
        if (end - at >= bytes) {
          packet = data.subarray(at, at + bytes)
          at += bytes
        }
      }
      if (!packet) {
        if (partial.bytes < LENGTH_BYTES) at += partial.take(data, at, LENGTH_BYTES)
        if (partial.bytes < LENGTH_BYTES) return undefined
        const bytes = sizeOf(partial.packet, 0)
        at += partial.take(data, at, bytes)
        if (partial.bytes < bytes) return undefined
        packet = partial.packet
        partial.bytes = 0
      }
      const answer = decipher._onPayload(open(decipher, packet))
      if (answer !== undefined) return answer === false ? at : answer
    }
    return undefined
  }
}

/** The size of the packet at `at`, with its length and tag. */
function sizeOf(data: Buffer, at: number): number {
  const length = data.readUInt32BE(at)
  const bytes = LENGTH_BYTES + length + TAG_BYTES
  if (bytes > MOST_BYTES || length < BLOCK_BYTES || length % BLOCK_BYTES !== 0) throw new Error('Bad packet length')
  return bytes
}

/** The payload of a packet; throws when the packet was changed. */
function open(decipher: GcmDecipher, packet: Buffer): Buffer {
  const tag = packet.length - TAG_BYTES
  const cipher = createDecipheriv(decipher._decipherSSLName, decipher._decipherKey, decipher._decipherIV)
  cipher.setAAD(packet.subarray(0, LENGTH_BYTES))
  const plain = cipher.update(packet.subarray(LENGTH_BYTES, tag))
  cipher.setAuthTag(packet.subarray(tag))
  cipher.final()
  decipher.inSeqno = (decipher.inSeqno + 1) >>> 0
  increment(decipher._decipherIV)
  const filled = plain[0] ?? 0
  if (filled >= plain.length) throw new Error('Bad packet length')
  return plain.subarray(1, plain.length - filled)
}

/** The last eight bytes count the packets (RFC 5647 §7.1). */
function increment(iv: Buffer): void {
  for (let i = iv.length - 1; i >= iv.length - 8; i--) {
    const next = ((iv[i] ?? 0) + 1) & 0xff
    iv[i] = next
    if (next !== 0) return
  }
}
