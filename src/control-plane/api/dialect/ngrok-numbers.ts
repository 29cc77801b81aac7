/** The numbers of ngrok's errors: one for each code of ours, and finer ones where that vendor distinguishes more. */
import { type ErrorCode, errors } from '../../../model/errors.ts'
import type { ApiRoute } from '../routes.ts'
import type { Refused } from './api-dialect.ts'

/** The number of a refusal to a call of `route`, which is undefined where none was reached. */
export function numberOf({ code, field, reason }: Refused, route: ApiRoute | undefined): number {
  return (route && (reasons[reason] ?? finer[code]?.(route, lastName(field), field))) ?? errors[code].ngrok
}

/** Reasons that have their own number, within one code. */
const reasons: Numbers = { no_mask: 1413, not_lowest: 1409, not_a_ca: 1913 }

/** The name of the field itself: `ip_policy_ids` of `ip_restriction.ip_policy_ids[0]`. */
function lastName(field: string): string {
  return /(\w+)(\[[^\]]*\])*$/.exec(field)?.[1] ?? ''
}

/** `field` is the last name of a field's path, `path` the whole path. */
type Finer = (route: ApiRoute, field: string, path: string) => number | undefined

const finer: Readonly<Partial<Record<ErrorCode, Finer>>> = {
  FIELD_TOO_LONG: ({ resource }, field) => tooLong[resource.kind]?.[field],
  FIELD_REQUIRED: ({ resource }, field, path) =>
    OF_PROVIDER.test(path) ? 7033 : (ofCertificates[resource.kind]?.[field] ?? required[field]),
  INVALID_VALUE: ({ resource }, field) => invalid[resource.kind]?.[field],
  BAD_PUBLIC_KEY: ({ resource }) => (Object.hasOwn(ofCertificates, resource.kind) ? 1934 : undefined),
  BAD_VALIDITY: ({ resource }) => (resource.kind === 'ssh_host_certificate' ? 1963 : undefined),
  STILL_REFERENCED: ({ resource }) => referenced[resource.kind],
  UNKNOWN_REFERENCE: ({ resource }, field) =>
    field === 'ssh_certificate_authority_id' && resource.kind === 'ssh_user_certificate'
      ? 1951
      : unknownReference[field],
  BAD_HOSTPORT_PORT: ({ resource }) => (resource.kind === 'tcp_edge' ? 7112 : undefined),
  COMMAND_UNSUPPORTED: ({ command }) => command && { restart: 804, stop: 805, update: 806 }[command],
  SSH_COMMAND_UNSUPPORTED: ({ command }) => (command === 'restart' ? 1122 : undefined),
  COMMAND_REFUSED: ({ command }) => command && failed[command],
  COMMAND_FAILED: ({ command }) => command && failed[command],
}

const failed = { stop: 807, restart: 808, update: 809 } as const

type Numbers = Readonly<Record<string, number>>

const required: Numbers = {
  public_key: 611,
  match: 7123,
  name: 4109,
  issuer: 7088,
  client_id: 7089,
  client_secret: 7090,
  idp_metadata: 7091,
}

/** Fields of certificates that have their own numbers. */
const ofCertificates: Readonly<Record<string, Numbers>> = {
  ssh_user_certificate: { public_key: 1952 },
  ssh_host_certificate: { public_key: 1952 },
}

/** By kind of resource, then by field. */
const invalid: Readonly<Record<string, Numbers>> = {
  ssh_certificate_authority: { private_key_type: 1936, key_size: 1939, elliptic_curve: 1941 },
  tls_edge: { terminate_at: 224, min_version: 219 },
  https_edge: { terminate_at: 7109, min_version: 219 },
  https_edge_route: { match_type: 7130, match: 7131 },
}

/** The client id and secret of an `oauth` module, which have another number than those of `oidc`. */
const OF_PROVIDER = /(^|\.)provider\.\w+\.client_\w+$/

const referenced: Numbers = { ip_policy: 1420, reserved_domain: 446, ssh_certificate_authority: 1964 }

const unknownReference: Numbers = {
  backend_id: 6501,
  backends: 6501,
  ip_policy_id: 1414,
  ip_policy_ids: 7007,
  certificate_authority_ids: 7072,
  ssh_certificate_authority_id: 1949,
}

const ofCredentials: Numbers = { description: 604, metadata: 605 }
const ofEdges: Numbers = { description: 7073, metadata: 7074 }
const ofBackends: Numbers = { description: 6503, metadata: 6504 }

/** By kind of resource, then by field. */
const tooLong: Readonly<Record<string, Numbers>> = {
  api_key: ofCredentials,
  credential: ofCredentials,
  ssh_credential: ofCredentials,
  bot_user: { name: 4110 },
  tcp_edge: ofEdges,
  tls_edge: ofEdges,
  https_edge: ofEdges,
  https_edge_route: { ...ofEdges, idp_metadata: 7080 },
  tunnel_group_backend: ofBackends,
  http_response_backend: { ...ofBackends, body: 6516 },
  weighted_backend: ofBackends,
  failover_backend: ofBackends,
  static_backend: ofBackends,
  ip_policy_rule: { description: 1421 },
  reserved_domain: { description: 420, metadata: 421 },
  reserved_addr: { description: 504, metadata: 505 },
  ssh_certificate_authority: { description: 1937, metadata: 1938 },
  ssh_host_certificate: { description: 1945, metadata: 1946 },
  ssh_user_certificate: { description: 1947, metadata: 1948 },
}
