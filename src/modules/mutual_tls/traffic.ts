/** Asks for a client certificate, looks again that there is one, and tells the upstream whose it is. */
import { type ClientCertificate, clientCertificate } from '../client-certificate.ts'
import type { ConnectionVerdict, Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'

export interface MutualTlsSettings {
  /** Certificates in PEM: a client certificate must chain to one of them. */
  readonly authorities: readonly string[]
}

export function compileMutualTls({ authorities }: MutualTlsSettings, { now }: Pick<ModuleTools, 'now'>): Phases {
  // TLS that asks without naming an authority would take any certificate.
  if (authorities.length === 0) throw new Error('no certificate authority is named')
  return {
    tls: { clientAuthorities: authorities },
    handshake: ({ clientCertificate: certificate }) =>
      // The chain is the business of TLS; but a session that is taken up again may outlive its certificate.
      certificate && certificate.validFromDate.getTime() <= now() && now() <= certificate.validToDate.getTime()
        ? undefined
        : refused,
    upstream({ headers }, { tls }) {
      const certificate = clientCertificate(tls)
      if (!certificate) return
      for (const [name, field] of told) {
        const value = certificate[field]
        if (value !== '') headers.set(name, value)
      }
    },
  }
}

const refused: ConnectionVerdict = { refuse: 'CLIENT_CERTIFICATE_REQUIRED' }

/** */
const told: readonly (readonly [string, keyof ClientCertificate])[] = [
  ['postern-mtls-subject-cn', 'commonName'],
  ['postern-mtls-subject-alt-name-dns', 'dnsNames'],
  ['postern-mtls-email-addresses', 'emailAddresses'],
  ['postern-mtls-serial-number', 'serialNumber'],
]
