/** The wire form of an SSH public key, strictly: RFC 4253 §6.6 (RSA), RFC 5656 §3.1 (ECDSA), RFC 8709 §4 (Ed25519). */

import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'
import { SshWireReader, sshMpint, sshStrings } from './ssh-wire.ts'

/** The accepted RSA sizes, in bits: under 2048 is breakable, over 8192 only slows the handshake. */
const RSA_BITS = { min: 2048, max: 8192 } as const

const curves = [
  { type: 'ecdsa-sha2-nistp256', name: 'nistp256', openssl: 'prime256v1', crv: 'P-256', bytes: 32 },
  { type: 'ecdsa-sha2-nistp384', name: 'nistp384', openssl: 'secp384r1', crv: 'P-384', bytes: 48 },
  { type: 'ecdsa-sha2-nistp521', name: 'nistp521', openssl: 'secp521r1', crv: 'P-521', bytes: 66 },
] as const

/** The accepted key types. */
export const sshKeyTypes: readonly string[] = ['ssh-ed25519', ...curves.map(({ type }) => type), 'ssh-rsa']

/** The type at the start of a wire blob; the rest of the blob is not checked. */
export function blobType(blob: Buffer): string {
  return new SshWireReader(blob, damagedInput).string().toString('latin1')
}

/**
 * Reads a wire blob of one of `sshKeyTypes` strictly: exact lengths, no trailing bytes, a valid key.
 *
 * Written by hand: `ssh2` reads keys more leniently, and not in PEM. Here a key has only one spelling, from which its
 * fingerprint is computed.
 */
export function keyOfBlob(blob: Buffer): KeyObject {
  const reader = new SshWireReader(blob, damagedInput)
  const jwk = readKey(reader, reader.string().toString('latin1'))
  reader.end()
  try {
    return createPublicKey({ key: jwk, format: 'jwk' })
  } catch (cause) {
    throw new BadInput('The public key is not a valid key of its type.', { cause })
  }
}

/** The wire blob of a key that node:crypto has read; undefined when its type is not accepted. */
export function blobOf(key: KeyObject): Buffer | undefined {
  if (key.asymmetricKeyType === 'rsa') {
    const { e = '', n = '' } = key.export({ format: 'jwk' })
    return sshStrings('ssh-rsa', sshMpint(bytes(e)), sshMpint(bytes(n)))
  }
  if (key.asymmetricKeyType === 'ed25519') {
    return sshStrings('ssh-ed25519', bytes(key.export({ format: 'jwk' }).x ?? ''))
  }
  if (key.asymmetricKeyType !== 'ec') return undefined
  const curve = curves.find(({ openssl }) => openssl === key.asymmetricKeyDetails?.namedCurve)
  if (!curve) return undefined
  const { x = '', y = '' } = key.export({ format: 'jwk' })
  return sshStrings(curve.type, curve.name, Buffer.concat([Buffer.of(4), bytes(x), bytes(y)]))
}

function readKey(reader: SshWireReader, type: string): JsonWebKey {
  if (type === 'ssh-rsa') return readRsa(reader)
  if (type === 'ssh-ed25519') {
    const x = reader.string()
    if (x.length !== 32) throw damagedInput()
    return { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') }
  }
  const curve = curves.find((curve) => curve.type === type)
  if (!curve || reader.string().toString('latin1') !== curve.name) throw damagedInput()
  const point = reader.string()
  // 4 means uncompressed, the only form in use (RFC 5656 lets a server refuse compressed points).
  if (point.length !== 1 + 2 * curve.bytes || point[0] !== 4) throw damagedInput()
  const [x, y] = [point.subarray(1, 1 + curve.bytes), point.subarray(1 + curve.bytes)]
  return { kty: 'EC', crv: curve.crv, x: x.toString('base64url'), y: y.toString('base64url') }
}

function readRsa(reader: SshWireReader): JsonWebKey {
  const e = reader.mpint()
  const n = reader.mpint()
  const bits = n.length * 8 - Math.clz32(n[0] ?? 0) + 24
  if (bits < RSA_BITS.min) {
    throw new BadInput(
      `The RSA key has ${bits} bits, which is too weak; at least ${RSA_BITS.min} are needed. ${advice}`,
    )
  }
  if (bits > RSA_BITS.max) throw new BadInput(`The RSA key has ${bits} bits; at most ${RSA_BITS.max} are accepted.`)
  // OpenSSL verifies with exponents of at most 64 bits; an even number or an exponent of 1 makes no RSA key.
  const isOdd = ((e.at(-1) ?? 0) & 1) === 1 && ((n.at(-1) ?? 0) & 1) === 1
  if (!isOdd || e.length > 8 || (e.length === 1 && e[0] === 1)) {
    throw new BadInput('The public key is not a valid RSA key.')
  }
  return { kty: 'RSA', e: e.toString('base64url'), n: n.toString('base64url') }
}

/** Advice for a refused key. */
export const advice = 'Make a new one with `ssh-keygen -t ed25519`.'

function damagedInput(): Error {
  return new BadInput('The public key is damaged: its parts do not fit together. Copy the whole `.pub` file again.')
}

function bytes(base64url: string): Buffer {
  return Buffer.from(base64url, 'base64url')
}
