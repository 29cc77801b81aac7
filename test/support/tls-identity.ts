/** A CA and a certificate for `localhost` and `127.0.0.1` that are valid today, for tests that check certificates. */
import { makeIdentity } from './make-certificate.ts'

const DAY_MS = 24 * 3_600_000

export interface TlsIdentity {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export async function tlsIdentity(names: readonly string[] = ['localhost']): Promise<TlsIdentity> {
  const valid = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + DAY_MS) }
  const ca = await makeIdentity({ name: 'CN=CA of a test', isCa: true, ...valid })
  const leaf = await makeIdentity({
    name: 'CN=localhost',
    issuer: ca,
    dnsNames: names,
    ips: ['127.0.0.1'],
    serialNumber: '02',
    ...valid,
  })
  return { ca: ca.certificatePem, cert: leaf.certificatePem, key: leaf.privateKeyPem }
}
