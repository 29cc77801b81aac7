/**
 * Tells clients which signatures are taken (RFC 8308 §3.1). The library has a list of its own, with SHA-1 and DSA in it, and
 * without a comma: clients would sign with what is then refused.
 */
import type { Protocol } from 'ssh2'
import { signatureAlgorithms } from './proof.ts'

const EXT_INFO = 7

/** From here on, `send` is called with the message once keys were first exchanged, for clients that want it. */
export function tellTakenSignatures(protocol: Protocol, send: (payload: Buffer) => void): void {
  const complete = protocol._onHandshakeComplete
  let isTold = false
  protocol._onHandshakeComplete = (negotiated) => {
    const { _kex: kex } = protocol
    const isWanted = kex.remoteExtInfoEnabled && !isTold
    kex.remoteExtInfoEnabled = false
    isTold = true
    // The very next message after the keys were taken into use, or some do not heed it.
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
