/** Issues certificates for one name each, like a public authority: for a given key, with the authority's own. */
import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto'
import { certificateParts } from '../../src/lib/x509/certificate-fields.ts'
import { derSequence } from '../../src/lib/x509/der-writer.ts'
import { distinguishedName, extensions, keyId, keyUsageBit, writeCertificate } from '../../src/lib/x509/x509-writer.ts'

export interface LeafRequest {
  readonly name: string
  /** DER. */
  readonly publicKey: Buffer
  /** In milliseconds since 1970, whole seconds. */
  readonly notBefore: number
  readonly notAfter: number
}

export interface IssuedLeaf {
  /** The certificate, followed by that of the authority. */
  readonly pem: string
  readonly serialNumber: Buffer
  readonly authorityKeyId: Buffer
}

/** The longest common name (X.520). */
const MAX_COMMON_NAME = 64

export function leafIssuer({ certPem, keyPem }: { readonly certPem: string; readonly keyPem: string }) {
  const root = new X509Certificate(certPem)
  const issuer = derSequence(certificateParts(root.raw).subject.body)
  const authorityKeyId = keyId(root.publicKey.export({ type: 'spki', format: 'der' }))
  const signs = createPrivateKey(keyPem)
  return ({ name, publicKey, notBefore, notAfter }: LeafRequest): IssuedLeaf => {
    const serialNumber = randomBytes(8)
    const leaf = {
      ...{ serialNumber, issuer, notBefore, notAfter, publicKey },
      subject: distinguishedName([['commonName', name.slice(0, MAX_COMMON_NAME)]]),
      extensions: [
        extensions.basicConstraints({ isCa: false }),
        extensions.keyUsage(keyUsageBit.digitalSignature),
        extensions.extendedKeyUsage('serverAuth'),
        extensions.subjectAltName([name], { isCritical: false }),
        extensions.authorityKeyId(authorityKeyId),
      ],
    }
    return { pem: writeCertificate(leaf, signs) + certPem, serialNumber, authorityKeyId }
  }
}
