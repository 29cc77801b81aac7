/** Refuses certificates of members for names by which callers and agents reach the server (D105). */
import { coveredBy } from '../../model/certificate-names.ts'
import { Refusal } from '../../model/errors.ts'
import { readNames } from '../../model/hostport.ts'
import { reservedDomains } from '../resources/reserved-domains.ts'
import type { Fields, Resource, Surroundings } from '../resources/resource.ts'
import { namesOf, tlsCertificates } from '../resources/tls-certificates.ts'
import type { Principal } from './find-caller.ts'

/** Uploaded certificates win at every listener, and no member decides which one those show that callers and agents reach. */
export function refuseKeptCertificate(
  { kind }: Resource,
  { role }: Principal,
  { before, after }: { readonly before?: Fields; readonly after: Fields },
  { keptNames }: Surroundings,
): void {
  const field = certificateFields[kind]
  if (role === 'admin' || field === undefined || !after[field] || before?.[field] === after[field]) return
  const names = kind === tlsCertificates.kind ? namesOf({ fields: after }) : readNames([String(after.domain)])
  const name = [...(keptNames?.() ?? [])].find(coveredBy(new Set(names)))
  if (name === undefined) return
  const msg = `\`${field}\`: callers or agents reach this server by \`${name}\`, so only an admin chooses a certificate that covers it; leave the name out, or ask an admin`
  throw new Refusal('DOMAIN_IN_USE', msg, { field })
}

/** By kind, the field that decides which certificate is shown for the names of the resource. */
const certificateFields: Readonly<Record<string, string>> = {
  [tlsCertificates.kind]: 'certificate_pem',
  [reservedDomains.kind]: 'certificate_id',
}
