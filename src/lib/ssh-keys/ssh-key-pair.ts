/** Makes a key pair that signs SSH certificates. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { blobType } from './ssh-key-blob.ts'
import { publicBlobOf } from './ssh-signature.ts'

const curves = { p256: 'P-256', p384: 'P-384', p521: 'P-521' } as const

/** The type of key to make. */
export type SshKeyChoice =
  | { readonly type: 'ed25519' }
  | { readonly type: 'ecdsa'; readonly curve: keyof typeof curves }
  | { readonly type: 'rsa'; readonly bits: number }

export interface SshKeyPair {
  /** `ssh-ed25519 AAAA…` */
  readonly publicLine: string
  /** PKCS#8, not encrypted. */
  readonly privatePem: string
}

/** Making an RSA key takes from tenths of a second to many seconds. */
export function makeSshKeyPair(choice: SshKeyChoice): SshKeyPair {
  const key = privateKey(choice)
  return {
    publicLine: publicLineOf(publicBlobOf(key)),
    privatePem: key.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}

/** The line of a `.pub` file for a key or certificate in wire form. */
export function publicLineOf(blob: Buffer): string {
  return `${blobType(blob)} ${blob.toString('base64')}`
}

function privateKey(choice: SshKeyChoice): KeyObject {
  switch (choice.type) {
    case 'ed25519':
      return generateKeyPairSync('ed25519').privateKey
    case 'ecdsa':
      return generateKeyPairSync('ec', { namedCurve: curves[choice.curve] }).privateKey
    case 'rsa':
      return generateKeyPairSync('rsa', { modulusLength: choice.bits }).privateKey
  }
}
