/** Reads an SSH public key in any of the usual forms, and computes the fingerprint that they share. */

import { createHash, createPublicKey, type KeyObject } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'
import { derOnly, derTag } from '../x509/der.ts'
import { decodeBase64, holdsPrivateKey } from '../x509/pem.ts'
import { advice, blobOf, blobType, keyOfBlob, sshKeyTypes } from './ssh-key-blob.ts'

/** The most UTF-8 bytes in the text of a key; an 8192-bit RSA key needs under 2 KiB. */
export const MAX_PUBLIC_KEY_BYTES = 16 * 1024

interface SshPublicKey {
  readonly type: string
  /** As printed by `ssh-keygen -l`: `SHA256:` and the unpadded base64 hash of `blob`. */
  readonly fingerprint: string
  /** The wire form, which clients offer when they log in. */
  readonly blob: Buffer
}

/** Reads one OpenSSH line, an RFC 4716 file, or PEM (SPKI, PKCS#1); throws an `Error` that says what is wrong with it. */
export function readSshPublicKey(text: string): SshPublicKey {
  if (Buffer.byteLength(text) > MAX_PUBLIC_KEY_BYTES) {
    throw new BadInput(`The public key is over ${MAX_PUBLIC_KEY_BYTES / 1024} KiB; send one key.`)
  }
  if (holdsPrivateKey(text)) {
    throw new BadInput('This is a private key, which must not be sent to anyone; send the public key, the `.pub` file.')
  }
  const blob = readForm(text.trim())
  const type = blobType(blob)
  if (!sshKeyTypes.includes(type)) throw notAccepted(type)
  keyOfBlob(blob)
  return { type, fingerprint: fingerprintOf(blob), blob }
}

/** The fingerprint of a key in wire form. */
export function fingerprintOf(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace('=', '')}`
}

function readForm(text: string): Buffer {
  if (text === '') throw new BadInput('The public key is empty; send the contents of the `.pub` file.')
  const begins = text.match(/-----? ?BEGIN /g)?.length ?? 0
  if (begins > 1) throw severalKeys()
  if (begins === 1 && !text.startsWith('----')) throw new BadInput('There is text before the `BEGIN` line; remove it.')
  if (text.startsWith('-----')) return readPem(text)
  if (text.startsWith('---- ')) return readRfc4716(text)
  return readLine(text)
}

/** `type base64 comment`, the line of a `.pub` or `authorized_keys` file (sshd(8), AUTHORIZED_KEYS FILE FORMAT). */
function readLine(line: string): Buffer {
  const words = line.split(/\s+/)
  const [type = '', base64 = ''] = words
  if (words.filter((word, i) => isKeyType(word) && isKeyStart(words[i + 1])).length > 1) throw severalKeys()
  if (/[\r\n]/.test(line)) throw new BadInput('The public key has line breaks in it; send it as one line.')
  if (!isKeyType(type)) {
    if (words.some((word, i) => isKeyType(word) && isKeyStart(words[i + 1]))) {
      throw new BadInput('The public key has options in front of it; remove everything before the key type.')
    }
    if (!isKeyStart(type)) throw unknownForm()
    throw new BadInput('The public key lacks its type in front, such as `ssh-ed25519`; send the whole line.')
  }
  if (!sshKeyTypes.includes(type)) throw notAccepted(type)
  const blob = decodeBase64(base64)
  if (!blob) throw cutShort()
  if (blobType(blob) !== type) {
    throw new BadInput(`The public key says \`${type}\` in front but holds a key of another type; copy the line again.`)
  }
  return blob
}

/** RFC 4716 §3: a begin line, headers with a backslash before continuation lines, base64, an end line. */
function readRfc4716(text: string): Buffer {
  const lines = text.split(/\r\n|\r|\n/).map((line) => line.trim())
  if (lines.shift() !== '---- BEGIN SSH2 PUBLIC KEY ----') throw unknownForm()
  if (lines.pop() !== '---- END SSH2 PUBLIC KEY ----') throw cutShort()
  let bodyAt = 0
  while (lines[bodyAt]?.includes(':')) {
    while (lines[bodyAt]?.endsWith('\\')) bodyAt++
    bodyAt++
  }
  const blob = decodeBase64(lines.slice(bodyAt).join(''))
  if (!blob) throw cutShort()
  return blob
}

function readPem(text: string): Buffer {
  const [, label = '', base64 = '', end] =
    /^-----BEGIN ([A-Z0-9 ]{1,64})-----([^-]*)-----END ([A-Z0-9 ]{1,64})-----$/.exec(text) ?? []
  if (label === '') throw cutShort()
  if (label === 'CERTIFICATE') {
    throw new BadInput(
      'This is a certificate, not a public key; send what `openssl x509 -pubkey -noout` prints for it.',
    )
  }
  const type = pemTypes.get(label)
  if (!type) throw unknownForm()
  const der = label === end ? decodeBase64(base64) : undefined
  if (!der) throw cutShort()
  const key = readDer(der, type)
  const blob = blobOf(key)
  if (!blob) throw key.asymmetricKeyType === 'dsa' ? notAccepted('ssh-dss') : notAccepted('')
  return blob
}

const pemTypes: ReadonlyMap<string, 'spki' | 'pkcs1'> = new Map([
  ['PUBLIC KEY', 'spki'],
  ['RSA PUBLIC KEY', 'pkcs1'],
])

function readDer(der: Buffer, type: 'spki' | 'pkcs1'): KeyObject {
  try {
    // OpenSSL ignores trailing bytes; this refuses them.
    derOnly(der, derTag.sequence)
    return createPublicKey({ key: der, format: 'der', type })
  } catch (cause) {
    throw new BadInput('The PEM block does not hold a public key that can be read; copy it again.', { cause })
  }
}

/** Whether a word is an SSH key type, accepted or not. */
function isKeyType(word: string): boolean {
  return /^(sk-|webauthn-sk-)?(ssh|ecdsa-sha2|rsa-sha2)-[a-z0-9@.-]{1,64}$/.test(word)
}

/** Every wire blob starts with the length of a short name, so its base64 starts with these letters. */
function isKeyStart(word = ''): boolean {
  return word.startsWith('AAAA')
}

function notAccepted(type: string): Error {
  if (type.includes('-cert-v'))
    return new BadInput('This is an SSH certificate; send the plain public key it was made from.')
  if (/^(webauthn-)?sk-/.test(type)) return new BadInput(`Keys on a security key (\`sk-\`) are not accepted. ${advice}`)
  if (type === 'ssh-dss') return new BadInput(`DSA keys are too weak and are not accepted. ${advice}`)
  return new BadInput(
    `Keys of this type are not accepted; the types are ${sshKeyTypes.map((each) => `\`${each}\``).join(', ')}.`,
  )
}

function severalKeys(): Error {
  return new BadInput('There is more than one public key here; send one.')
}

function cutShort(): Error {
  return new BadInput(
    'The public key is cut short or changed: its base64 cannot be read. Copy the whole `.pub` file again.',
  )
}

function unknownForm(): Error {
  return new BadInput(
    'This is not a public key; send the line of a `.pub` file (`ssh-ed25519 AAAA...`), or an RFC 4716 or PEM file.',
  )
}
