/** Reuses the memory of the packet that is being built, which is enciphered into other memory before the next packet is begun. */
import { randomFillSync } from 'node:crypto'

/** The largest packet that is built here, in bytes: 32 KiB of data and its overhead. */
const SCRATCH_BYTES = 36 * 1024

/** RFC 4253 §6: the length of the packet and the length of its padding. */
const HEAD_BYTES = 5
const LEAST_FILLING = 4
/** The block size of AES. */
const BLOCK_BYTES = 16

// Allocating 32 KiB for every packet, and as much again for its ciphertext, would keep the garbage collector busy.
let scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
let isTaken = false

/** Random bytes for padding: generated many at once, each used once. */
const filling = Buffer.allocUnsafeSlow(16 * 1024)
let unused = 0

/** A packet with head and padding, and room for the payload between them; `bare` bytes of the head stay in the clear. */
export function packetFor(payloadBytes: number, bare: number): Buffer {
  let bytes = HEAD_BYTES + payloadBytes
  let filled = BLOCK_BYTES - ((bytes - bare) & (BLOCK_BYTES - 1))
  if (filled < LEAST_FILLING) filled += BLOCK_BYTES
  bytes += filled
  const packet = bytes > SCRATCH_BYTES ? Buffer.allocUnsafeSlow(bytes) : takeScratch(bytes)
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

/** Frees the scratch memory: the last packet has been enciphered, or never will be. */
export function packetSent(): void {
  isTaken = false
}

export function isScratch(bytes: Uint8Array): boolean {
  return bytes.buffer === scratch.buffer
}

function takeScratch(bytes: number): Buffer {
  // The packet in the scratch memory was not sent yet, so it keeps that memory.
  if (isTaken) scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES)
  isTaken = true
  return scratch.subarray(0, bytes)
}
