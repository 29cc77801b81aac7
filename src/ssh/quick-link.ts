/** What makes the library's link several times cheaper; done to it from outside, since none of it can be asked for. */
import { createSecretKey } from 'node:crypto'
import type { Socket } from 'node:net'
import type { CipherKeys, Decipher, GcmDecipher, Protocol } from 'ssh2'
import { kept } from '../lib/bytes/byte-stream.ts'
import { readLent } from '../lib/bytes/lent-reads.ts'
import { noteRead } from '../lib/bytes/read-memory.ts'
import { isScratch, packetFor, packetSent } from './scratch-packets.ts'
import { decipherWhole } from './whole-packets.ts'

/** To be called whenever keys were exchanged: the ciphers are new then. */
export function quicken(protocol: Protocol): void {
  const { _cipher: cipher, _decipher: decipher } = protocol
  for (const keys of [cipher, decipher]) for (const name of keyNames) makeReady(keys, name)
  if (isGcm(decipher) && decipher._lenBytes === 0) {
    decipherWhole(decipher)
    whole.add(decipher)
  }
  // Where the length is not enciphered it is not part of what is filled up to whole blocks.
  const bare = cipher._encKey !== undefined || cipher._macETM === true ? LENGTH_BYTES : 0
  const encrypt = cipher.encrypt.bind(cipher)
  cipher.allocPacket = (payloadBytes) => packetFor(payloadBytes, bare)
  cipher.encrypt = (packet) => {
    encrypt(packet)
    packetSent()
  }
}

/** Those that keep nothing of what they are handed. */
const whole = new WeakSet<Decipher>()

/** To be called when keys were exchanged for the first time: from then on bytes are read into memory that is used again. */
export function readByLoan(protocol: Protocol, socket: Socket): void {
  readLent(socket, (chunk) => {
    if (socket.isPaused() || socket.readableLength > 0) return socket.push(kept(chunk))
    const isKept = !whole.has(protocol._decipher) || protocol._kexinit !== undefined
    socket.emit('data', isKept ? kept(chunk) : chunk)
    return !socket.isPaused()
  })
}

function isGcm(decipher: Decipher): decipher is GcmDecipher {
  return '_decipherSSLName' in decipher && String(decipher._decipherSSLName).endsWith('-gcm')
}

/** Of the length, in front of each packet. */
const LENGTH_BYTES = 4

const keyNames = ['_encKey', '_decipherKey', '_macKey'] as const

/**
 * Makes a key what the engine takes at once. The library makes a cipher or a MAC for each packet, from bytes, which Node first
 * tries as all kinds of keys: that takes longer than to encipher a packet of 16 KiB.
 */
function makeReady(keys: CipherKeys, name: (typeof keyNames)[number]): void {
  const key = keys[name]
  if (Buffer.isBuffer(key)) keys[name] = createSecretKey(key)
}

/**
 * Sends what one turn of the event loop writes in one piece: the library writes each packet in three, and the requests of
 * many visitors come in the same turn.
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
    // The length of a packet, where that is not enciphered.
    socket.write(isScratch(bytes) ? Buffer.from(bytes) : bytes)
    noteRead(bytes.length)
  }
}
