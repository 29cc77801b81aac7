/**
 * Demands a client certificate, checks after the handshake that it is still valid, and tells the upstream whose it is.
 *
 * @example
 * const phases = compileMutualTls({ authorities: ['-----BEGIN CERTIFICATE-----…'] }, tools)
 * phases.tls.clientAuthorities.length // 1
 * phases.handshake({ clientCertificate: undefined }) // { refuse: 'CLIENT_CERTIFICATE_REQUIRED' }
 */
import { type ClientCertificate, clientCertificate } from '../client-certificate.ts'
import type { ConnectionVerdict, Phases } from '../phases.ts'
import type { ModuleTools } from '../tools.ts'
import type { MutualTlsSettings } from './form.ts'

export function compileMutualTls({ authorities }: MutualTlsSettings, { now }: Pick<ModuleTools, 'now'>): Phases {
  // Without an authority, TLS would accept any certificate.
  if (authorities.length === 0) throw new Error('no certificate authority is named')
  return {
    tls: { clientAuthorities: authorities },
    handshake: ({ clientCertificate: certificate }) =>
      // TLS checks the chain, but a resumed session may outlive its certificate.
      certificate && certificate.validFromDate.getTime() <= now() && now() <= certificate.validToDate.getTime()
        ? undefined
        : refused,
    upstream({ headers }, { tls }) {
      const certificate = clientCertificate(tls)
      if (!certificate) return
      for (const [name, field] of sent) {
        const value = certificate[field]
        if (value !== '') headers.set(name, value)
      }
    },
  }
}

const refused: ConnectionVerdict = { refuse: 'CLIENT_CERTIFICATE_REQUIRED' }

/** */
const sent: readonly (readonly [string, keyof ClientCertificate])[] = [
  ['postern-mtls-subject-cn', 'commonName'],
  ['postern-mtls-subject-alt-name-dns', 'dnsNames'],
  ['postern-mtls-email-addresses', 'emailAddresses'],
  ['postern-mtls-serial-number', 'serialNumber'],
]
