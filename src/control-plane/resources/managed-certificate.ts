/** Managed certificates, which this server gets for a name: how a resource requests one, and shows its status. */
import { closedObject, nullable } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import type { Mention } from '../../modules/module.ts'
import type { Surroundings } from './resource.ts'

/** The field of a body that requests a certificate; `about` says what it means for the resource. */
export const managementPolicy = (about: string) =>
  Type.Optional(
    Type.Object(
      {
        authority: Type.Enum(['letsencrypt'], { description: 'The issuer.', default: 'letsencrypt' }),
        private_key_type: Type.Enum(['ecdsa', 'rsa'], { description: 'Kind of key to make.', default: 'ecdsa' }),
      },
      {
        additionalProperties: false,
        description: `${about} The issuer is always the authority of \`--acme-directory\`, whatever is named here. Without that setting nothing is issued: see \`certificate_management_status\`.`,
      },
    ),
  )

/** The field of an answer that shows the status of the certificate. */
export const managementStatus = nullable(
  closedObject(
    {
      renews_at: nullable(Type.String({ description: 'When the certificate is renewed, RFC 3339.' })),
      provisioning_job: nullable(
        closedObject(
          {
            error_code: nullable(Type.String({ description: 'Why the last try failed.' })),
            msg: Type.String({ description: 'What is happening, or why nothing is.' }),
            started_at: nullable(Type.String({ description: 'When it started, RFC 3339.' })),
            retries_at: nullable(Type.String({ description: 'When it will be retried, RFC 3339.' })),
          },
          { description: 'The order that is under way; null when there is none.' },
        ),
      ),
    },
    { description: 'Status of the managed certificate; null without a policy.' },
  ),
)

/** The field in which a resource refers to its certificate, uploaded or issued. */
export const CERTIFICATE_SLOT = 'certificate_id'

/** The reference to a certificate, if there is one. */
export function certificateMentions(id: string | null | undefined): Mention[] {
  return id ? [{ field: CERTIFICATE_SLOT, id, kinds: ['tls_certificate'] }] : []
}

/** The status of the certificate of a name with a management policy, as the API shows it. */
export interface ManagedStatus {
  readonly renews_at: string | null
  readonly provisioning_job: {
    readonly error_code: string | null
    readonly msg: string
    readonly started_at: string | null
    readonly retries_at: string | null
  } | null
}

/** What is stored for a resource with a management policy; only the code that orders certificates changes it. */
export interface ManagedCertificate {
  readonly certificate_id: string | null
  /** Null while this server does not order certificates. */
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

/** Keeps what is stored; a new policy starts without a certificate. */
export function managedOf(fields: object, { managesCertificates = false }: Surroundings): ManagedCertificate {
  const { managed } = fields as { readonly managed?: ManagedCertificate | null } // no form has it, so it is ours
  return {
    certificate_id: managed?.certificate_id ?? null,
    status: managesCertificates ? (managed?.status ?? WAITING) : null,
  }
}

/** The status of a resource; null without a policy. */
export function statusShown(
  policy: object | null | undefined,
  managed: ManagedCertificate | null | undefined,
): ManagedStatus | null {
  return policy ? (managed?.status ?? NOT_MANAGED) : null
}
