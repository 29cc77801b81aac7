/** Reads the private key of a TLS certificate in PEM form; error messages never quote it. */

import { createPrivateKey, type KeyObject } from 'node:crypto'
import { BadInput } from '../shape/bad-input.ts'

/** The most UTF-8 bytes of a key; an 8192-bit RSA key has 6.4 KiB. */
export const MAX_PRIVATE_KEY_BYTES = 16 * 1024

export type PrivateKeyType = 'rsa' | 'ecdsa' | 'ed25519'

const MIN_RSA_BITS = 2048
/** OpenSSL's names for the curves that TLS clients support (RFC 8446 §4.2.7). */
const CURVES = { prime256v1: 'P-256', secp384r1: 'P-384' }

/** Which keys are accepted (D109). All handshakes of a process wait for one another, and one with 8192 bits takes 90 ms. */
export type KeyLimits = Readonly<{ maxRsaBits: number; curves: Readonly<Record<string, string>> }>

const usualKeys: KeyLimits = { maxRsaBits: 4096, curves: CURVES }

/** Keys of the operator's own files. */
export const operatorsKeys: KeyLimits = { maxRsaBits: 8192, curves: { ...CURVES, secp521r1: 'P-521' } }

/** Whether certificates with this key, private or public, are accepted. */
export function isUsualKey(key: KeyObject): boolean {
  try {
    checkKey(key, usualKeys)
    return true
  } catch {
    return false
  }
}

/** Reads PKCS#8, or the older forms for RSA and EC; throws an `Error` whose message can be shown. */
export function readPrivateKey(pem: string, limits = usualKeys): { key: KeyObject; type: PrivateKeyType } {
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
  return checkKey(parse(pem), limits)
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

function checkKey(key: KeyObject, { maxRsaBits, curves }: KeyLimits): { key: KeyObject; type: PrivateKeyType } {
  const { modulusLength = 0, namedCurve = '' } = key.asymmetricKeyDetails ?? {}
  const kind = key.asymmetricKeyType
  if (kind === 'ed25519') return { key, type: 'ed25519' }
  if (kind === 'rsa') {
    if (modulusLength >= MIN_RSA_BITS && modulusLength <= maxRsaBits) return { key, type: 'rsa' }
    throw new BadInput(`An RSA key must have ${MIN_RSA_BITS} to ${maxRsaBits} bits; this one has ${modulusLength}.`)
  }
  if (kind !== 'ec') throw new BadInput('The private key must be RSA, EC or Ed25519.')
  if (!Object.hasOwn(curves, namedCurve)) {
    throw new BadInput(`An EC key must be on one of the curves ${Object.values(curves).join(', ')}.`)
  }
  return { key, type: 'ecdsa' }
}
