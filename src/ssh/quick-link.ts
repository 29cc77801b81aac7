/** Two things that make the library's link several times cheaper, done to it once keys were exchanged. */
import { createSecretKey } from 'node:crypto'
import type { Socket } from 'node:net'
import type { CipherKeys, Protocol } from 'ssh2'

/**
 * Keys as the engine takes them at once. The library makes a cipher or a MAC for each packet, from bytes, which Node first
 * tries as all kinds of keys: that takes longer than to encipher a packet of 16 KiB.
 */
export function readyKeys({ _cipher, _decipher }: Protocol): void {
  for (const keys of [_cipher, _decipher]) for (const name of keyNames) makeReady(keys, name)
}

const keyNames = ['_encKey', '_decipherKey', '_macKey'] as const

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
    socket.write(bytes)
  }
}
