/** The key that signs requests to identity providers, and its certificate, by which they recognise this server. */
import { generateKeyPair, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { Secret } from '../../lib/secrets/secret.ts'
import { distinguishedName, extensions, keyId, keyUsageBit, writeCertificate } from '../../lib/x509/x509-writer.ts'

export interface RequestKey {
  /** In PEM, as is the key. */
  readonly certificate: string
  readonly key: Secret
}

/** RSA, since most identity providers accept nothing else. */
const KEY_BITS = 2048

/** Long, since replacing it means telling every identity provider. */
const YEARS = 20
const YEAR_MS = 365.25 * 86_400_000
/** The certificate is valid from this long ago, for clocks that are slow. */
const SKEW_MS = 3_600_000

/** Made on another thread, since it takes a fraction of a second. */
export async function makeRequestKey(now: number): Promise<RequestKey> {
  const { publicKey, privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: KEY_BITS })
  const spki = publicKey.export({ type: 'spki', format: 'der' })
  const name = distinguishedName([
    ['organization', 'Postern'],
    ['commonName', 'Postern SAML requests'],
  ])
  const certificate = writeCertificate(
    {
      // RFC 5280 §4.1.2.2: positive, so the first bit is clear; and not zero.
      serialNumber: Buffer.concat([Buffer.from([1]), randomBytes(15)]),
      issuer: name,
      subject: name,
      notBefore: now - SKEW_MS,
      notAfter: now + YEARS * YEAR_MS,
      publicKey: spki,
      extensions: [
        extensions.basicConstraints({ isCa: false }),
        extensions.keyUsage(keyUsageBit.digitalSignature),
        extensions.subjectKeyId(keyId(spki)),
      ],
    },
    privateKey,
  )
  return { certificate, key: new Secret(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()) }
}
