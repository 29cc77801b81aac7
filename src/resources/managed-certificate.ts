/** The certificate that this server is to get for a name: how a resource asks for one, and what it shows of it. */
import { closed, nullable } from '../lib/shape/schema.ts'
import { Type } from '../lib/shape/type.ts'
import type { Mention } from '../modules/module.ts'
import type { Surroundings } from './resource.ts'

/** The field of a body that asks for a certificate; `about` says what it means to the resource. */
export const managementPolicy = (about: string) =>
  Type.Optional(
    Type.Object(
      {
        authority: Type.Enum(['letsencrypt'], { description: 'Who issues.', default: 'letsencrypt' }),
        private_key_type: Type.Enum(['ecdsa', 'rsa'], { description: 'Kind of key to make.', default: 'ecdsa' }),
      },
      {
        additionalProperties: false,
        description: `${about} The authority is the one of \`--acme-directory\`, whatever its name here; without that setting nothing is issued: see \`certificate_management_status\`.`,
      },
    ),
  )

/** The field of an answer that says how far it is. */
export const managementStatus = nullable(
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
)

/** The field in which a resource refers to its certificate, uploaded or issued. */
export const CERTIFICATE_SLOT = 'certificate_id'

/** The reference to a certificate, if there is one. */
export function certificateMentions(id: string | null | undefined): Mention[] {
  return id ? [{ field: CERTIFICATE_SLOT, id, kinds: ['tls_certificate'] }] : []
}

/** How far the certificate of a name with a management policy is, as the API shows it. */
export interface ManagedStatus {
  readonly renews_at: string | null
  readonly provisioning_job: {
    readonly error_code: string | null
    readonly msg: string
    readonly started_at: string | null
    readonly retries_at: string | null
  } | null
}

/** What is kept of a resource with a management policy; only whoever orders certificates changes it. */
export interface ManagedCertificate {
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
export function managedOf(fields: object, { managesCertificates = false }: Surroundings): ManagedCertificate {
  const { managed } = fields as { readonly managed?: ManagedCertificate | null } // no form has it, so it is ours
  return {
    certificate_id: managed?.certificate_id ?? null,
    status: managesCertificates ? (managed?.status ?? WAITING) : null,
  }
}

/** The status of a resource, which has a policy or none. */
export function statusShown(
  policy: object | null | undefined,
  managed: ManagedCertificate | null | undefined,
): ManagedStatus | null {
  return policy ? (managed?.status ?? NOT_MANAGED) : null
}
