/** Certificates for visitors and services, with keys, valid today unless a test says otherwise. */
import { type Identity, type IdentityOptions, loadX509, makeIdentity } from '../../support/make-certificate.ts'

export const DAY_MS = 24 * 3_600_000

/** In the form that `node:tls` takes. */
export interface Pair {
  readonly cert: string
  readonly key: string
}

export async function authority(name: string, options: IdentityOptions = {}): Promise<Identity> {
  return makeIdentity({ name: `CN=${name}`, isCa: true, ...validFor(1), ...options })
}

/** Valid from a day ago until this many days from now; negative: expired. */
export function validFor(days: number): Pick<IdentityOptions, 'notBefore' | 'notAfter'> {
  const end = Date.now() + days * DAY_MS
  return { notBefore: new Date(Math.min(Date.now(), end) - DAY_MS), notAfter: new Date(end) }
}

/** A certificate that `issuer` signed. */
export async function leaf(issuer: Identity | undefined, options: IdentityOptions = {}): Promise<Pair> {
  const made = await makeIdentity({ ...(issuer && { issuer }), ...validFor(1), ...options })
  return pairOf(made)
}

export function pairOf({ certificatePem, privateKeyPem }: Identity): Pair {
  return { cert: certificatePem, key: privateKeyPem }
}

/** Extensions: extended key usages, and e-mail addresses as alternative names. */
export async function extras({
  usage,
  dns = [],
  emails = [],
}: {
  usage?: 'serverAuth' | 'clientAuth'
  dns?: readonly string[]
  emails?: readonly string[]
}): Promise<NonNullable<IdentityOptions['extensions']>> {
  const x509 = await loadX509()
  const names = [
    ...dns.map((value) => ({ type: 'dns' as const, value })),
    ...emails.map((value) => ({ type: 'email' as const, value })),
  ]
  return [
    ...(usage ? [new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage[usage]])] : []),
    ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
  ]
}
