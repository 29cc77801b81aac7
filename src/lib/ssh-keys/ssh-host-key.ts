/** Makes the host key of an SSH server in the form of `ssh-keygen` (openssh/PROTOCOL.key). */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { sshStrings, sshUint32 } from './ssh-wire.ts'

interface SshHostKey {
  /** One line, as after the host in `known_hosts`: `ssh-ed25519 AAAA…`. */
  readonly publicLine: string
  /** A private key file in OpenSSH's own format, without a passphrase. */
  readonly privateText: string
}

const TYPE = 'ssh-ed25519'

/** The private part is padded to a multiple of this, in bytes: the block size of the cipher `none`. */
const BLOCK_BYTES = 8

/** Base64 characters in a line. */
const LINE = 70

export function makeSshHostKey(): SshHostKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url')
  const seed = Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url')
  const blob = sshStrings(TYPE, point)
  // The format has the same random number twice: after decryption with a wrong passphrase the two would differ.
  const check = randomBytes(4)
  const secret = Buffer.concat([check, check, blob, sshStrings(Buffer.concat([seed, point]), '')])
  const padding = Buffer.from(Array.from({ length: -secret.length & (BLOCK_BYTES - 1) }, (_, i) => i + 1))
  const file = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    sshStrings('none', 'none', ''),
    sshUint32(1),
    sshStrings(blob, Buffer.concat([secret, padding])),
  ])
  const lines = file.toString('base64').match(new RegExp(`.{1,${LINE}}`, 'g')) ?? []
  return {
    publicLine: `${TYPE} ${blob.toString('base64')}`,
    privateText: `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines.join('\n')}\n-----END OPENSSH PRIVATE KEY-----\n`,
  }
}
