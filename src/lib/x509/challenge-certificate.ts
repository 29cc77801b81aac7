/** The certificate that proves to an authority that a name is served here (RFC 8737). */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { distinguishedName, extensions, writeCertificate } from './x509-writer.ts'

const DAY_MS = 86_400_000

/** Makes the certificate for a name and the expected answer, with a new key, both in PEM. */
export function challengeCertificate(
  name: string,
  answer: string,
  { now = Date.now }: { readonly now?: Clock } = {},
): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = distinguishedName([['commonName', 'ACME challenge']])
  const cert = writeCertificate(
    {
      serialNumber: randomBytes(16),
      issuer: subject,
      subject,
      notBefore: now() - DAY_MS,
      notAfter: now() + DAY_MS,
      publicKey: publicKey.export({ type: 'spki', format: 'der' }),
      extensions: [
        extensions.subjectAltName([name], { isCritical: false }),
        extensions.acmeIdentifier(createHash('sha256').update(answer).digest()),
      ],
    },
    privateKey,
  )
  return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
