/** Makes public keys in all common formats. */
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'

export type SshKeyType = 'ed25519' | 'ecdsa' | 'rsa'

/** A new public key, whose private key is thrown away. */
export function newPublicKey(type: SshKeyType, bits = 2048): KeyObject {
  if (type === 'ed25519') return generateKeyPairSync('ed25519').publicKey
  if (type === 'ecdsa') return generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey
  return generateKeyPairSync('rsa', { modulusLength: bits }).publicKey
}

/** One line of `authorized_keys`. */
export function openSshLine(key: KeyObject, comment = 'somebody@example.com'): string {
  const blob = blobOf(key)
  const name = blob.subarray(4, 4 + blob.readUInt32BE(0)).toString()
  return `${name} ${blob.toString('base64')} ${comment}`
}

/** RFC 4716, as `ssh-keygen -e` writes it. */
export function rfc4716(key: KeyObject): string {
  const lines =
    blobOf(key)
      .toString('base64')
      .match(/.{1,70}/g) ?? []
  return `---- BEGIN SSH2 PUBLIC KEY ----\nComment: "somebody"\n${lines.join('\n')}\n---- END SSH2 PUBLIC KEY ----\n`
}

/** A line with a random RSA modulus of this length, without a private key. */
export function rsaLineOf(bits: number): string {
  const modulus = randomBytes(bits / 8)
  modulus[0] = 0xc1
  modulus[modulus.length - 1] = 0x6b
  const blob = Buffer.concat([text('ssh-rsa'), integer(Buffer.from([1, 0, 1])), integer(modulus)])
  return `ssh-rsa ${blob.toString('base64')}`
}

/** RFC 4253 §6.6, RFC 5656 §3.1, RFC 8709 §4. */
function blobOf(key: KeyObject): Buffer {
  const jwk = key.export({ format: 'jwk' })
  const part = (name: 'x' | 'y' | 'n' | 'e') => Buffer.from(String(jwk[name]), 'base64url')
  if (jwk.kty === 'OKP') return Buffer.concat([text('ssh-ed25519'), text(part('x'))])
  if (jwk.kty === 'RSA') return Buffer.concat([text('ssh-rsa'), integer(part('e')), integer(part('n'))])
  const point = Buffer.concat([Buffer.from([4]), part('x'), part('y')])
  return Buffer.concat([text('ecdsa-sha2-nistp256'), text('nistp256'), text(point)])
}

function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value)
  const length = Buffer.alloc(4)
  length.writeUInt32BE(bytes.length)
  return Buffer.concat([length, bytes])
}

/** RFC 4251 §5: a positive number whose first bit is set gets a zero byte in front. */
function integer(value: Buffer): Buffer {
  return text((value[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.from([0]), value]) : value)
}
