/** Patches the library to make connections several times cheaper; it has no options for any of this. */
import { createSecretKey } from 'node:crypto'
import type { Socket } from 'node:net'
import type { CipherKeys, Decipher, GcmDecipher, Protocol } from 'ssh2'
import { readBorrowed } from '../../../lib/bytes/borrowed-reads.ts'
import { keepBytes } from '../../../lib/bytes/byte-stream.ts'
import { noteRead } from '../../../lib/bytes/read-memory.ts'
import { isScratch, packetFor, packetSent } from './scratch-packets.ts'
import { decipherWhole } from './whole-packets.ts'

/** Call this after every key exchange, which makes new ciphers. */
export function quicken(protocol: Protocol): void {
  const { _cipher: cipher, _decipher: decipher } = protocol
  for (const keys of [cipher, decipher]) for (const name of keyNames) makeReady(keys, name)
  if (isGcm(decipher) && decipher._lenBytes === 0) {
    decipherWhole(decipher)
    whole.add(decipher)
  }
  // A length that is sent in the clear does not count when the packet is padded to whole blocks.
  const bare = cipher._encKey !== undefined || cipher._macETM === true ? LENGTH_BYTES : 0
  const encrypt = cipher.encrypt.bind(cipher)
  cipher.allocPacket = (payloadBytes) => packetFor(payloadBytes, bare)
  cipher.encrypt = (packet) => {
    encrypt(packet)
    packetSent()
  }
}

/** Deciphers that keep none of the bytes they are given. */
const whole = new WeakSet<Decipher>()

/** Call this after the first key exchange: from then on bytes are read into reused memory. */
export function readByLoan(protocol: Protocol, socket: Socket): void {
  readBorrowed(socket, (chunk) => {
    if (socket.isPaused() || socket.readableLength > 0) return socket.push(keepBytes(chunk))
    const isKept = !whole.has(protocol._decipher) || protocol._kexinit !== undefined
    socket.emit('data', isKept ? keepBytes(chunk) : chunk)
    return !socket.isPaused()
  })
}

function isGcm(decipher: Decipher): decipher is GcmDecipher {
  return '_decipherSSLName' in decipher && String(decipher._decipherSSLName).endsWith('-gcm')
}

/** Bytes of the length in front of each packet. */
const LENGTH_BYTES = 4

const keyNames = ['_encKey', '_decipherKey', '_macKey'] as const

/**
 * Turns a key into a `KeyObject` once. The library creates a cipher or MAC for each packet from plain bytes, and Node
 * then finds out each time what kind of key they are. That takes longer than enciphering a packet of 16 KiB.
 */
function makeReady(keys: CipherKeys, name: (typeof keyNames)[number]): void {
  const key = keys[name]
  if (Buffer.isBuffer(key)) keys[name] = createSecretKey(key)
}

/**
 * Sends all writes of one turn of the event loop together: the library writes each packet in three pieces, and requests
 * of many visitors come in the same turn.
 */
export function writeByTurns(protocol: Protocol, socket: Socket): void {
  let isGathering = false
  const send = (): void => {
    isGathering = false
    socket.uncork()
  }
  protocol._onWrite = (bytes) => {
    if (!socket.writable) return
    if (!isGathering) {
      isGathering = true
      socket.cork()
      setImmediate(send)
    }
    // A length in the clear is a view into scratch memory, which is about to be reused.
    socket.write(isScratch(bytes) ? Buffer.from(bytes) : bytes)
    noteRead(bytes.length)
  }
}
