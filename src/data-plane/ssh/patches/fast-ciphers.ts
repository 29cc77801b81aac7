/** Patches the library to make connections several times cheaper; it has no options for any of this. */
import { createSecretKey } from 'node:crypto'
import type { Socket } from 'node:net'
import type { CipherKeys, Protocol } from 'ssh2'
import { noteRead } from '../../../lib/bytes/read-memory.ts'

const keyNames = ['_encKey', '_decipherKey', '_macKey'] as const

/**
 * Turns keys into a `KeyObject` once; call this after every key exchange, which makes new ciphers. The library creates a
 * cipher or MAC for each packet from plain bytes, and Node then finds out each time what kind of key they are. That takes
 * longer than enciphering a packet of 16 KiB.
 */
export function prepareKeys({ _cipher, _decipher }: Protocol): void {
  for (const keys of [_cipher, _decipher]) for (const name of keyNames) prepareKey(keys, name)
}

function prepareKey(keys: CipherKeys, name: (typeof keyNames)[number]): void {
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
    socket.write(bytes)
    noteRead(bytes.length)
  }
}
