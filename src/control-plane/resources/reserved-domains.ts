/** Reserved domains: names that are kept for the account, and the certificates that serve them. */
import { timestamp } from '../../lib/clock.ts'
import { BadValue } from '../../lib/shape/check.ts'
import { nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import { readName } from '../../model/hostport.ts'
import { proofKey, readProof } from '../../model/name-proof.ts'
import { RefSchema } from '../../model/ref.ts'
import {
  certificateMentions,
  managedOf,
  managementPolicy,
  managementStatus,
  statusShown,
} from './managed-certificate.ts'
import { checkRegion, region } from './regions.ts'
import { storedKind } from './resource.ts'
import { description, domainName, metadata } from './resource-fields.ts'

/** The scope of claims for the names of reserved domains. */
export const RESERVED_NAMES = 'reserved_name'

const domain = Type.Optional(
  Type.String({ description: 'The name, such as `app.example.com` or `*.example.com`.', maxBytes: 300 }),
)

export const reservedDomains = storedKind({
  kind: 'reserved_domain',
  about: "Names that are kept for you, each with a certificate of your own or one from this server's authority.",
  prefix: 'rd_',
  access: 'account',
  form: {
    description,
    metadata,
    domain,
    name: Type.Optional(Type.String({ description: 'Another name for `domain`; send one of them.', maxBytes: 300 })),
    region,
    certificate_id: Type.Optional(
      Type.String({ description: 'The TLS certificate to serve; not with a management policy.', maxBytes: 255 }),
    ),
    certificate_management_policy: managementPolicy('How certificates are issued; not with a `certificate_id`.'),
  },
  fixed: ['domain', 'name', 'region'],
  hides: ['name', 'certificate_id'],
  shows: {
    domain: Type.String({ description: 'The name.' }),
    region: Type.String({ description: 'Where the name is served from.' }),
    cname_target: nullable(Type.String({ description: 'What a CNAME record of the name must point to, if anything.' })),
    proven_at: nullable(
      Type.String({
        description:
          'When the DNS record that proves the name was last seen, RFC 3339; null when the name needs none or the record is gone.',
      }),
    ),
    certificate: nullable(RefSchema),
    certificate_management_status: managementStatus,
    acme_challenge_cname_target: nullable(
      Type.String({ description: 'What `_acme-challenge` of the name must point to, if anything.' }),
    ),
  },
  settle({ name, ...fields }, around) {
    const domain = checkDomain(fields.domain, name)
    const cnameTarget = domain.startsWith('*.') ? undefined : around.cnameTarget?.(readName(domain))
    const kept = { ...fields, domain, region: checkRegion(fields.region, around), cname_target: cnameTarget ?? null }
    // D10: the empty string clears.
    const certificateId = fields.certificate_id || undefined
    const policy = fields.certificate_management_policy
    if (certificateId && policy) {
      throw new Refusal('CERTIFICATE_OR_POLICY', undefined, { field: 'certificate_id' })
    }
    return { ...kept, certificate_id: certificateId, managed: policy && managedOf(fields, around) }
  },
  fact: ({ domain }) => proofKey(readName(domain)),
  read: ({ certificate_id, certificate_management_policy: policy, managed }, link, fact) => {
    const id = certificate_id ?? managed?.certificate_id
    const proof = readProof(fact)
    return {
      proven_at: proof ? timestamp(proof.at) : null,
      certificate: id ? link(id) : null,
      certificate_management_status: statusShown(policy, managed),
    }
  },
  claims: ({ domain }) => [
    {
      scope: RESERVED_NAMES,
      key: readName(domain),
      taken: {
        code: 'DOMAIN_IN_USE',
        msg: `\`${domain}\` is already reserved or an agent ingress; use that one or delete it`,
        field: 'domain',
      },
    },
  ],
  mentions: ({ certificate_id, managed }) => certificateMentions(certificate_id ?? managed?.certificate_id),
  actions: [{ name: 'retry', about: 'Try again now to get the certificate of a reserved domain' }],
  clears: [
    { name: 'certificate', field: 'certificate_id' },
    { name: 'certificate_management_policy', field: 'certificate_management_policy' },
  ],
})

/** Checks the name; returns it as the API shows it. */
function checkDomain(domain: string | undefined, name: string | undefined): string {
  // Some clients always send both, one of them empty.
  const sent = domain || name || (domain ?? name)
  if (sent === undefined) throw new BadValue('domain', 'required', '`domain` is required')
  if (domain && name) {
    throw new BadValue('name', 'value', '`name` is another name for `domain`; send only one of them')
  }
  return domainName(sent)
}
