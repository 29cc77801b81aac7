/** A TLS certificate to upload, made for each run, so that no private key is in the repository. */
import { makeIdentity } from '../support/make-certificate.ts'

const { certificatePem, privateKeyPem } = await makeIdentity({ dnsNames: ['app.example.com'], ips: ['192.0.2.1'] })

export const tlsPair = { certificate_pem: certificatePem, private_key_pem: privateKeyPem } as const
