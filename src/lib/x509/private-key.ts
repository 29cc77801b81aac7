/** Reads the private key of a TLS certificate in PEM form; error messages never quote it. */

import { createPrivateKey, type KeyObject } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'

/** The most UTF-8 bytes of a key; an 8192-bit RSA key has 6.4 KiB. */
export const MAX_PRIVATE_KEY_BYTES = 16 * 1024

export type PrivateKeyType = 'rsa' | 'ecdsa' | 'ed25519'

const MIN_RSA_BITS = 2048
/** Larger ones make every handshake slow. */
const MAX_RSA_BITS = 8192
/** The curves that TLS clients support (RFC 8446 §4.2.7): OpenSSL's names for P-256, P-384 and P-521. */
const CURVES = ['prime256v1', 'secp384r1', 'secp521r1']

/** Reads PKCS#8, or the older forms for RSA and EC; throws an `Error` whose message can be shown. */
export function readPrivateKey(pem: string): { key: KeyObject; type: PrivateKeyType } {
  const labels = [...pem.matchAll(/-----BEGIN ([A-Z0-9 ]{1,64})-----/g)].map(([, label = '']) => label)
  const keys = labels.filter((label) => label.endsWith('PRIVATE KEY'))
  if (keys.length === 0) {
    throw new BadInput('There is no private key here; send it in PEM form, starting `-----BEGIN PRIVATE KEY-----`.')
  }
  if (keys.length > 1)
    throw new BadInput('There are several private keys here; send only the one that belongs to the certificate.')
  if (keys[0] === 'ENCRYPTED PRIVATE KEY' || /Proc-Type:[^\r\n]*ENCRYPTED/i.test(pem)) {
    throw new BadInput(
      'The private key is encrypted with a passphrase; send it without, as `openssl pkey -in key.pem` prints it.',
    )
  }
  return checkKey(parse(pem))
}

function parse(pem: string): KeyObject {
  try {
    return createPrivateKey({ key: pem, format: 'pem' })
  } catch {
    // The cause is left out: this goes into logs, and parsers may quote what they read.
    throw new BadInput(
      'The private key cannot be read; it may be cut short, or in another form than PKCS#8, SEC1 or PKCS#1.',
    )
  }
}

function checkKey(key: KeyObject): { key: KeyObject; type: PrivateKeyType } {
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  const kind = key.asymmetricKeyType
  if (kind === 'ed25519') return { key, type: 'ed25519' }
  if (kind === 'rsa') {
    if (modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS) return { key, type: 'rsa' }
    throw new BadInput(`An RSA key must have ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits; this one has ${modulusLength}.`)
  }
  if (kind !== 'ec') throw new BadInput('The private key must be RSA, EC or Ed25519.')
  if (!CURVES.includes(namedCurve)) throw new BadInput('An EC key must be on the curve P-256, P-384 or P-521.')
  return { key, type: 'ecdsa' }
}
