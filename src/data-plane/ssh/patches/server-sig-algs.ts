/** Tells clients which signature algorithms are accepted (RFC 8308 §3.1). */
import type { Protocol } from 'ssh2'
import { signatureAlgorithms } from '../proof.ts'

const EXT_INFO = 7

/**
 * Calls `send` with the message after the first key exchange, for clients that support it. The library's own list has SHA-1 and
 * DSA in it and lacks a comma, so clients would choose algorithms that are then refused.
 */
export function announceSignatureAlgorithms(protocol: Protocol, send: (payload: Buffer) => void): void {
  const complete = protocol._onHandshakeComplete
  let isSent = false
  protocol._onHandshakeComplete = (negotiated) => {
    const { _kex: kex } = protocol
    const isWanted = kex.remoteExtInfoEnabled && !isSent
    kex.remoteExtInfoEnabled = false
    isSent = true
    // It must be the first message under the new keys, or some clients ignore it.
    if (isWanted) send(extInfo())
    complete(negotiated)
  }
}

function extInfo(): Buffer {
  const one = Buffer.of(0, 0, 0, 1)
  return Buffer.concat([Buffer.of(EXT_INFO), one, string('server-sig-algs'), string(signatureAlgorithms.join(','))])
}

function string(text: string): Buffer {
  const bytes = Buffer.alloc(4 + text.length)
  bytes.writeUInt32BE(text.length)
  bytes.write(text, 4, 'latin1')
  return bytes
}
