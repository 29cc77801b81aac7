/** Reads what a bind says about TLS: authorities of client certificates, and a certificate to end TLS with. */
import { BadInput } from '../../lib/shape/bad-input.ts'
import { Type } from '../../lib/shape/type.ts'
import { readCaCertificates } from '../../lib/x509/certificate.ts'
import { decodeBase64 } from '../../lib/x509/pem.ts'
import { BadTlsCertificate, readTlsCertificate } from '../../lib/x509/tls-certificate.ts'
import { refusals } from '../../model/agent-errors.ts'
import type { MutualTlsSettings } from '../mutual_tls/form.ts'
import type { TlsTerminationSettings } from '../tls_termination/form.ts'
import { fieldsOf } from './values.ts'

const bytes = Type.Optional(Type.String())
const authoritiesForm = Type.Object({ mutual_tls_ca: Type.String() })

export function readClientAuthorities(value: unknown, name: string): MutualTlsSettings {
  const { mutual_tls_ca } = fieldsOf(authoritiesForm, value, name)
  try {
    const { certificates } = readCaCertificates(pem(mutual_tls_ca, `${name}.mutual_tls_ca`))
    return { authorities: certificates.map((each) => each.pem) }
  } catch (error) {
    if (!(error instanceof BadInput)) throw error
    throw refusals.badTlsCertificate(`${name}.mutual_tls_ca`, error.message)
  }
}

const certificateForm = Type.Object({ cert: bytes, key: bytes, sealed_key: bytes })

/** Without a certificate, the server uses one of its own. */
export function readCertificate(value: unknown, name: string): TlsTerminationSettings {
  const { cert, key, sealed_key } = fieldsOf(certificateForm, value, name)
  const settings = { terminate: 'edge', minVersion: null } as const
  if (cert === undefined && key === undefined && sealed_key === undefined) return settings
  if (cert === undefined || key === undefined) {
    throw refusals.badOption(`\`${name}\` needs \`cert\` and \`key\` together, or neither`)
  }
  const certificate = { cert: pem(cert, `${name}.cert`), key: pem(key, `${name}.key`) }
  try {
    readTlsCertificate(certificate.cert, certificate.key)
  } catch (error) {
    if (!(error instanceof BadTlsCertificate)) throw error
    throw partRefusals[error.part](name, error.message)
  }
  return { ...settings, certificate }
}

const partRefusals = {
  certificate: refusals.badTlsCertificate,
  chain: refusals.badTlsCertificate,
  key: refusals.badKey,
  pair: refusals.keyMismatch,
} as const

function pem(base64: string, field: string): string {
  const decoded = decodeBase64(base64)
  if (!decoded) throw refusals.badOption(`\`${field}\` must be PEM in base64`)
  return decoded.toString('utf8')
}
