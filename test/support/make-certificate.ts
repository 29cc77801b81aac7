/** Makes certificates and their keys for tests. */
import assert from 'node:assert/strict'
import { KeyObject, type webcrypto } from 'node:crypto'
import type { Extension } from '@peculiar/x509'

export interface Identity {
  readonly certificatePem: string
  readonly privateKeyPem: string
  readonly name: string
  readonly keys: webcrypto.CryptoKeyPair
}

export interface IdentityOptions {
  /** Such as `CN=app.example.com, O=Example`. */
  readonly name?: string
  /** The issuer; self-signed when left out. */
  readonly issuer?: Identity
  readonly isCa?: boolean
  readonly dnsNames?: readonly string[]
  readonly ips?: readonly string[]
  readonly extensions?: readonly Extension[]
  readonly key?: keyof typeof algorithms
  readonly serialNumber?: string
  readonly notBefore?: Date
  readonly notAfter?: Date
}

const rsa = (modulusLength: number) => ({
  name: 'RSASSA-PKCS1-v1_5',
  hash: 'SHA-256',
  publicExponent: Uint8Array.of(1, 0, 1),
  modulusLength,
})

export const algorithms = {
  p256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  p384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-256' },
  p521: { name: 'ECDSA', namedCurve: 'P-521', hash: 'SHA-256' },
  rsa1024: rsa(1024),
  rsa2048: rsa(2048),
  rsa4096: rsa(4096),
  rsa4104: rsa(4104),
  ed25519: { name: 'Ed25519' },
} as const

/** A certificate, by default valid from 2020-05-01T16:27:59Z for a year, and its key. */
export async function makeIdentity({
  name = 'CN=app.example.com',
  issuer,
  isCa = false,
  dnsNames = [],
  ips = [],
  extensions = [],
  key = 'p256',
  serialNumber = '01',
  notBefore = new Date('2020-05-01T16:27:59Z'),
  notAfter = new Date('2021-05-01T16:27:59Z'),
}: IdentityOptions = {}): Promise<Identity> {
  const x509 = await loadX509()
  const algorithm: { name: string } = algorithms[key]
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  assert.ok('privateKey' in keys)
  const hosts = [
    ...dnsNames.map((value) => ({ type: 'dns' as const, value })),
    ...ips.map((value) => ({ type: 'ip' as const, value })),
  ]
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber,
    subject: name,
    issuer: issuer?.name ?? name,
    notBefore,
    notAfter,
    signingAlgorithm: { hash: 'SHA-256', ...(issuer?.keys ?? keys).privateKey.algorithm },
    publicKey: keys.publicKey,
    signingKey: (issuer?.keys ?? keys).privateKey,
    extensions: [
      new x509.BasicConstraintsExtension(isCa, undefined, true),
      ...(hosts.length > 0 ? [new x509.SubjectAlternativeNameExtension(hosts)] : []),
      ...extensions,
    ],
  })
  return {
    certificatePem: `${certificate.toString('pem')}\n`,
    privateKeyPem: KeyObject.from(keys.privateKey).export({ type: 'pkcs8', format: 'pem' }).toString(),
    name,
    keys,
  }
}

/** @peculiar/x509 needs `reflect-metadata` to load; this provides the part that it uses. */
export async function loadX509(): Promise<typeof import('@peculiar/x509')> {
  if (!('getMetadata' in Reflect)) {
    const stored = new WeakMap<object, Map<unknown, unknown>>()
    Object.assign(Reflect, {
      getMetadata: (key: unknown, target: object) => stored.get(target)?.get(key),
      getOwnMetadata: (key: unknown, target: object) => stored.get(target)?.get(key),
      // The real `reflect-metadata`, which comes with the ACME library, calls these when it finds another one loaded.
      getOwnMetadataKeys: (target: object) => [...(stored.get(target)?.keys() ?? [])],
      hasOwnMetadata: (key: unknown, target: object) => stored.get(target)?.has(key) ?? false,
      deleteMetadata: (key: unknown, target: object) => stored.get(target)?.delete(key) ?? false,
      defineMetadata: (key: unknown, value: unknown, target: object) => {
        stored.set(target, (stored.get(target) ?? new Map()).set(key, value))
      },
    })
  }
  return import('@peculiar/x509')
}
