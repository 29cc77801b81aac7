/**
 * Memory for the packet that is being made: the same for each, since it is enciphered into other memory before the next one
 * is begun. New memory for every 32 KiB, and as much again for what they become, keeps the collector busy.
 */
import { randomFillSync } from 'node:crypto'

/** The largest packet that is made here, in bytes: 32 KiB of data and what is around it. */
const SCRATCH_BYTES = 36 * 1024

/** RFC 4253 §6: the length, and how many bytes are filled up. */
const HEAD_BYTES = 5
const LEAST_FILLING = 4
/** Of AES. */
const BLOCK_BYTES = 16

let scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
let isTaken = false

/** Random bytes to fill up with: made many at once, and each used once. */
const filling = Buffer.allocUnsafeSlow(16 * 1024)
let unused = 0

/** A packet with its head and its filling, for a payload to be put in between; `bare` bytes of the head are not enciphered. */
export function packetFor(payloadBytes: number, bare: number): Buffer {
  let bytes = HEAD_BYTES + payloadBytes
  let filled = BLOCK_BYTES - ((bytes - bare) & (BLOCK_BYTES - 1))
  if (filled < LEAST_FILLING) filled += BLOCK_BYTES
  bytes += filled
  const packet = bytes > SCRATCH_BYTES ? Buffer.allocUnsafeSlow(bytes) : taken(bytes)
  packet.writeUInt32BE(bytes - 4, 0)
  packet[4] = filled
  if (unused < filled) {
    randomFillSync(filling)
    unused = filling.length
  }
  filling.copy(packet, bytes - filled, unused - filled, unused)
  unused -= filled
  return packet
}

/** What was last taken is enciphered, or never will be. */
export function packetSent(): void {
  isTaken = false
}

export function isScratch(bytes: Uint8Array): boolean {
  return bytes.buffer === scratch.buffer
}

function taken(bytes: number): Buffer {
  // Whoever has it may still want it.
  if (isTaken) scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  isTaken = true
  return scratch.subarray(0, bytes)
}
