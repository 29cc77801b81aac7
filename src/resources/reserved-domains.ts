/** Reserved domains: names that are kept for the account, and the certificates that serve them. */
import { isIP } from 'node:net'
import { Type } from 'typebox'
import { BadValue } from '../lib/shape/check.ts'
import { closed, nullable } from '../lib/shape/schema.ts'
import { Refusal } from '../model/errors.ts'
import { readName } from '../model/hostport.ts'
import { RefSchema } from '../model/ref.ts'
import { description, metadata, readOr } from './fields.ts'
import { checkRegion, region } from './regions.ts'
import { type Surroundings, stored } from './resource.ts'

/** The scope of claims for the names of reserved domains. */
export const RESERVED_NAMES = 'reserved_name'

const domain = Type.Optional(
  Type.String({ description: 'The name, such as `app.example.com` or `*.example.com`.', maxBytes: 300 }),
)

export const reservedDomains = stored({
  kind: 'reserved_domain',
  noun: 'reserved domain',
  about: "Names that are kept for you, each with a certificate of your own, or else one of this server's authority.",
  prefix: 'rd_',
  path: '/reserved_domains',
  listKey: 'reserved_domains',
  access: 'account',
  form: {
    description,
    metadata,
    domain,
    name: Type.Optional(Type.String({ description: 'Another word for `domain`; send one of them.', maxBytes: 300 })),
    region,
    certificate_id: Type.Optional(
      Type.String({ description: 'The TLS certificate to serve; not beside a management policy.', maxBytes: 255 }),
    ),
    certificate_management_policy: Type.Optional(
      Type.Object(
        {
          authority: Type.Enum(['letsencrypt'], { description: 'Who issues.', default: 'letsencrypt' }),
          private_key_type: Type.Enum(['ecdsa', 'rsa'], { description: 'Kind of key to make.', default: 'ecdsa' }),
        },
        {
          additionalProperties: false,
          description:
            'How certificates are issued; not beside a `certificate_id`. The authority is the one of `--acme-directory`, whatever its name here; without that setting nothing is issued: see `certificate_management_status`.',
        },
      ),
    ),
  },
  fixed: ['domain', 'name', 'region'],
  hides: ['name', 'certificate_id'],
  shows: {
    domain: Type.String({ description: 'The name.' }),
    region: Type.String({ description: 'Where the name is served from.' }),
    cname_target: nullable(Type.String({ description: 'What a CNAME record of the name must point to, if anything.' })),
    certificate: nullable(RefSchema),
    certificate_management_status: nullable(
      closed(
        {
          renews_at: nullable(Type.String({ description: 'When the certificate is renewed, RFC 3339.' })),
          provisioning_job: nullable(
            closed(
              {
                error_code: nullable(Type.String({ description: 'Why the last try failed.' })),
                msg: Type.String({ description: 'What is being done.' }),
                started_at: nullable(Type.String({ description: 'When it began, RFC 3339.' })),
                retries_at: nullable(Type.String({ description: 'When it is tried again, RFC 3339.' })),
              },
              { description: 'The issuing that is under way; null when none is.' },
            ),
          ),
        },
        { description: 'How far the managed certificate is; null without a policy.' },
      ),
    ),
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
  read: ({ certificate_id, certificate_management_policy: policy, managed }, link) => {
    const id = certificate_id ?? managed?.certificate_id
    return {
      certificate: id ? link(id) : null,
      certificate_management_status: policy ? (managed?.status ?? NOT_MANAGED) : null,
    }
  },
  claims: ({ domain }) => [
    {
      scope: RESERVED_NAMES,
      key: readName(domain),
      taken: {
        code: 'DOMAIN_IN_USE',
        msg: `\`${domain}\` is reserved already; use that reservation or delete it`,
        field: 'domain',
      },
    },
  ],
  mentions: ({ certificate_id, managed }) => {
    const id = certificate_id ?? managed?.certificate_id
    return id ? [{ field: CERTIFICATE_SLOT, id, kinds: ['tls_certificate'] }] : []
  },
  clears: [
    { name: 'certificate', field: 'certificate_id' },
    { name: 'certificate_management_policy', field: 'certificate_management_policy' },
  ],
})

/** The field in which a domain refers to its certificate, uploaded or issued. */
export const CERTIFICATE_SLOT = 'certificate_id'

/** How far the certificate of a domain with a management policy is, as the API shows it. */
export interface ManagedStatus {
  readonly renews_at: string | null
  readonly provisioning_job: {
    readonly error_code: string | null
    readonly msg: string
    readonly started_at: string | null
    readonly retries_at: string | null
  } | null
}

/** What is kept of a domain with a management policy; only whoever orders certificates changes it. */
export interface ManagedDomain {
  readonly certificate_id: string | null
  /** Null while nobody orders certificates. */
  readonly status: ManagedStatus | null
}

const WAITING: ManagedStatus = {
  renews_at: null,
  provisioning_job: { error_code: null, msg: 'A certificate will be ordered.', started_at: null, retries_at: null },
}

/** The status where nothing issues certificates, so that callers do not wait for one. */
const NOT_MANAGED: ManagedStatus = {
  renews_at: null,
  provisioning_job: {
    error_code: 'ERR_CERTIFICATES_NOT_MANAGED',
    msg: "This server does not order certificates: it has no `--acme-directory`. Without a certificate in `/tls_certificates`, the name is served with one of the server's own authority.",
    started_at: null,
    retries_at: null,
  },
}

/** What is stored stays; a new policy begins with nothing. */
function managedOf(fields: object, { managesCertificates = false }: Surroundings): ManagedDomain {
  const { managed } = fields as { readonly managed?: ManagedDomain | null } // no form has it, so it is ours
  return {
    certificate_id: managed?.certificate_id ?? null,
    status: managesCertificates ? (managed?.status ?? WAITING) : null,
  }
}

/** The name as the API shows it: as it was sent, but in lower case, like a hostport (D26). */
function checkDomain(domain: string | undefined, name: string | undefined): string {
  const sent = domain ?? name
  if (sent === undefined) throw new BadValue('domain', 'required', '`domain` is required')
  if (domain !== undefined && name !== undefined) {
    throw new BadValue('name', 'value', '`name` is another word for `domain`; send only one of them')
  }
  const read = readOr('BAD_DOMAIN', 'domain', '', () => readName(sent))
  if (isIP(read)) throw new Refusal('BAD_DOMAIN', '`domain` must be a name, not an address', { field: 'domain' })
  return sent.toLowerCase()
}
