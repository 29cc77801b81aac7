/** Makes and checks signatures in SSH form: algorithm name, then bytes (RFC 4253 §6.6, RFC 5656 §3.1.2, RFC 8332, RFC 8709). */
import { type KeyObject, sign, verify } from 'node:crypto'
import { promisify } from 'node:util'
import { BadInput } from '../shape/bad-input.ts'
import { blobOf, blobType, keyOfBlob } from './ssh-key-blob.ts'
import { SshWireReader, sshMpint, sshStrings } from './ssh-wire.ts'

interface SignatureAlgorithm {
  readonly name: string
  /** The type of the signing key. */
  readonly keyType: string
  /** Null where the signature scheme itself defines the hash. */
  readonly hash: string | null
  /** Bytes of each of the two numbers of an ECDSA signature. */
  readonly numberBytes?: number
}

/** Without `ssh-rsa`, whose SHA-1 is insecure. We sign with the first algorithm that fits the key. */
const algorithms: readonly SignatureAlgorithm[] = [
  { name: 'ssh-ed25519', keyType: 'ssh-ed25519', hash: null },
  { name: 'ecdsa-sha2-nistp256', keyType: 'ecdsa-sha2-nistp256', hash: 'sha256', numberBytes: 32 },
  { name: 'ecdsa-sha2-nistp384', keyType: 'ecdsa-sha2-nistp384', hash: 'sha384', numberBytes: 48 },
  { name: 'ecdsa-sha2-nistp521', keyType: 'ecdsa-sha2-nistp521', hash: 'sha512', numberBytes: 66 },
  { name: 'rsa-sha2-512', keyType: 'ssh-rsa', hash: 'sha512' },
  { name: 'rsa-sha2-256', keyType: 'ssh-rsa', hash: 'sha256' },
]

/** Signs `data`, off the event loop, because a long RSA key takes several milliseconds. */
export async function signSsh(key: KeyObject, publicBlob: Buffer, data: Buffer): Promise<Buffer> {
  const type = blobType(publicBlob)
  const algorithm = algorithms.find(({ keyType }) => keyType === type)
  if (!algorithm) throw new Error(`a key of type ${type} cannot sign`)
  const { name, hash, numberBytes } = algorithm
  const made = await promisify(sign)(hash, data, { key, dsaEncoding: 'ieee-p1363' })
  if (numberBytes === undefined) return sshStrings(name, made)
  const [r, s] = [made.subarray(0, numberBytes), made.subarray(numberBytes)]
  return sshStrings(name, sshStrings(sshMpint(r), sshMpint(s)))
}

/** Whether `signature` is a valid signature of `data` by this key, with `algorithm` if that is given; never throws. */
export function isSignedSsh(
  publicBlob: Buffer,
  data: Buffer,
  signature: Buffer,
  { algorithm: wanted }: { readonly algorithm?: string } = {},
): boolean {
  try {
    const reader = new SshWireReader(signature, damagedInput)
    const name = reader.string().toString('latin1')
    const value = reader.string()
    reader.end()
    const algorithm = algorithms.find((each) => each.name === name)
    if (algorithm?.keyType !== blobType(publicBlob) || (wanted !== undefined && name !== wanted)) return false
    const { hash, numberBytes } = algorithm
    const bytes = numberBytes === undefined ? value : fixedNumbers(value, numberBytes)
    return verify(hash, data, { key: keyOfBlob(publicBlob), dsaEncoding: 'ieee-p1363' }, bytes)
  } catch {
    return false // the key or the signature is malformed
  }
}

/** The public blob of a private key. */
export function publicBlobOf(key: KeyObject): Buffer {
  const blob = blobOf(key)
  if (!blob) throw new Error('SSH has no public key form for this type of key')
  return blob
}

/** The two numbers of an ECDSA signature as OpenSSL expects them: concatenated, each padded to the same length. */
function fixedNumbers(value: Buffer, numberBytes: number): Buffer {
  const reader = new SshWireReader(value, damagedInput)
  const numbers = [reader.mpint(), reader.mpint()]
  reader.end()
  const fixed = Buffer.alloc(2 * numberBytes)
  for (const [i, number] of numbers.entries()) {
    if (number.length > numberBytes) throw damagedInput()
    number.copy(fixed, (i + 1) * numberBytes - number.length)
  }
  return fixed
}

function damagedInput(): Error {
  return new BadInput('The signature is damaged: its parts do not fit together.')
}
