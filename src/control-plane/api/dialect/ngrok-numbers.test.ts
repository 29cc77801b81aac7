import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ErrorCode } from '../../../model/errors.ts'
import { routeTable } from '../routes.ts'
import { numberOf } from './ngrok-numbers.ts'

const routes = routeTable()

/** The conditions that the vendor's error pages distinguish; clients compare these numbers. */
const numbers: [code: ErrorCode, operation: string | null, field: string, number: number][] = [
  ['UNAUTHENTICATED', null, '', 203],
  ['BODY_MALFORMED', 'create_api_key', '', 213],
  ['UNKNOWN_FIELD', 'create_api_key', 'x', 214],
  ['INVALID_VALUE', 'create_api_key', 'description', 215],
  ['VERSION_UNSUPPORTED', null, '', 217],
  ['VERSION_MISSING', null, '', 218],
  ['NOT_FOUND', 'get_api_key', '', 222],
  ['BAD_CURSOR', 'list_api_keys', '', 223],
  ['RATE_LIMITED', null, '', 226],
  ['UNKNOWN_QUERY', 'list_api_keys', '', 231],
  ['REPEATED_QUERY', 'list_api_keys', '', 232],
  ['BAD_LIMIT', 'list_api_keys', '', 233],
  ['BAD_ACL_RULE', 'create_credential', '', 600],
  ['FIELD_TOO_LONG', 'create_api_key', 'description', 604],
  ['FIELD_TOO_LONG', 'update_ssh_credential', 'metadata', 605],
  ['FIELD_TOO_LONG', 'create_tcp_edge', 'description', 7073],
  ['FIELD_TOO_LONG', 'create_https_edge_route', 'metadata', 7074],
  ['FIELD_TOO_LONG', 'create_http_response_backend', 'body', 6516],
  ['FIELD_TOO_LONG', 'create_tunnel_group_backend', 'labels["a"]', 215],
  ['FIELD_TOO_LONG', 'create_ip_policy', 'description', 215],
  ['PUBLIC_KEY_IN_USE', 'create_ssh_credential', '', 609],
  ['FIELD_REQUIRED', 'create_ssh_credential', 'public_key', 611],
  ['BAD_PUBLIC_KEY', 'create_ssh_credential', '', 612],
  ['FIELD_REQUIRED', 'create_ip_policy_rule', 'cidr', 215],
  ['FIELD_REQUIRED', 'create_https_edge_route', 'match', 7123],
  ['COMMAND_UNSUPPORTED', 'restart_tunnel_session', '', 804],
  ['COMMAND_UNSUPPORTED', 'stop_tunnel_session', '', 805],
  ['COMMAND_UNSUPPORTED', 'update_tunnel_session', '', 806],
  ['COMMAND_FAILED', 'stop_tunnel_session', '', 807],
  ['COMMAND_FAILED', 'restart_tunnel_session', '', 808],
  ['COMMAND_REFUSED', 'update_tunnel_session', '', 809],
  ['COMMAND_TIMEOUT', 'stop_tunnel_session', '', 810],
  ['RULE_IN_USE', 'create_ip_policy_rule', '', 1408],
  ['UNKNOWN_REFERENCE', 'create_ip_policy_rule', 'ip_policy_id', 1414],
  ['STILL_REFERENCED', 'delete_ip_policy', '', 1420],
  ['BAD_CERTIFICATE', 'create_certificate_authority', '', 1920],
  ['BAD_PRIVATE_KEY', 'create_tls_certificate', '', 1903],
  ['PRIVATE_KEY_MISMATCH', 'create_tls_certificate', '', 1923],
  ['INVALID_VALUE', 'create_ssh_certificate_authority', 'private_key_type', 1936],
  ['INVALID_VALUE', 'create_ssh_certificate_authority', 'key_size', 1939],
  ['KEY_SIZE_NOT_ALLOWED', 'create_ssh_certificate_authority', '', 1940],
  ['INVALID_VALUE', 'create_ssh_certificate_authority', 'elliptic_curve', 1941],
  ['CURVE_NOT_ALLOWED', 'create_ssh_certificate_authority', '', 1942],
  ['INVALID_VALUE', 'create_ssh_user_certificate', 'valid_after', 215],
  ['FIELD_TOO_LONG', 'create_ssh_certificate_authority', 'description', 1937],
  ['FIELD_TOO_LONG', 'update_ssh_host_certificate', 'metadata', 1946],
  ['FIELD_TOO_LONG', 'update_ssh_user_certificate', 'metadata', 1948],
  ['UNKNOWN_REFERENCE', 'create_ssh_host_certificate', 'ssh_certificate_authority_id', 1949],
  ['UNKNOWN_REFERENCE', 'create_ssh_user_certificate', 'ssh_certificate_authority_id', 1951],
  ['FIELD_REQUIRED', 'create_ssh_user_certificate', 'public_key', 1952],
  ['BAD_PUBLIC_KEY', 'create_ssh_host_certificate', '', 1934],
  ['BAD_VALIDITY', 'create_ssh_user_certificate', '', 1962],
  ['BAD_VALIDITY', 'create_ssh_host_certificate', '', 1963],
  ['STILL_REFERENCED', 'delete_ssh_certificate_authority', '', 1964],
  ['RESTRICTION_IN_USE', 'create_ip_restriction', '', 1802],
  ['DOMAIN_IN_USE', 'create_reserved_domain', '', 413],
  ['STILL_REFERENCED', 'delete_reserved_domain', '', 446],
  ['NO_FREE_PORT', 'create_reserved_addr', '', 503],
  ['NAME_IN_USE', 'create_bot_user', '', 4112],
  ['FIELD_TOO_LONG', 'create_reserved_domain', 'metadata', 421],
  ['UNKNOWN_REFERENCE', 'create_weighted_backend', 'backends["bkdtg_1"]', 6501],
  ['UNKNOWN_REFERENCE', 'create_tcp_edge', 'backend.backend_id', 6501],
  ['STILL_REFERENCED', 'delete_tunnel_group_backend', '', 6502],
  ['UNKNOWN_REFERENCE', 'put_tcp_edge_ip_restriction', 'ip_policy_ids[0]', 7007],
  ['UNKNOWN_REFERENCE', 'create_tls_edge', 'mutual_tls.certificate_authority_ids[11]', 7072],
  ['UNKNOWN_REFERENCE', 'put_tcp_edge_policy', 'inbound[0].actions[0].config', 223],
  ['INVALID_VALUE', 'put_tls_edge_tls_termination', 'terminate_at', 224],
  ['INVALID_VALUE', 'create_tls_edge', 'tls_termination.terminate_at', 224],
  ['INVALID_VALUE', 'put_https_edge_tls_termination', 'terminate_at', 7109],
  ['INVALID_VALUE', 'update_https_edge', 'tls_termination.terminate_at', 7109],
  ['INVALID_VALUE', 'put_tls_edge_tls_termination', 'min_version', 219],
  ['INVALID_VALUE', 'create_https_edge', 'tls_termination.min_version', 219],
  ['INVALID_VALUE', 'create_https_edge_route', 'match_type', 7130],
  ['INVALID_VALUE', 'update_https_edge_route', 'match', 7131],
  ['BAD_HOSTPORT', 'create_tcp_edge', '', 7104],
  ['BAD_HOSTPORT_PORT', 'create_tcp_edge', '', 7112],
  ['BAD_HOSTPORT_PORT', 'create_tls_edge', '', 7116],
  ['HOSTPORT_IN_USE', 'create_tls_edge', '', 7122],
  ['ROUTE_MATCH_IN_USE', 'create_https_edge_route', '', 7126],
  ['MODULE_NEEDS_TERMINATION', 'create_tls_edge', '', 7062],
  ['MIN_VERSION_NOT_ALLOWED', 'create_tls_edge', '', 7032],
  ['FIELD_REQUIRED', 'put_https_edge_route_oauth', 'provider.github.client_id', 7033],
  ['FIELD_REQUIRED', 'create_https_edge_route', 'oauth.provider.google.client_secret', 7033],
  ['SEVERAL_PROVIDERS', 'put_https_edge_route_oauth', '', 7036],
  ['PROVIDER_MISSING', 'put_https_edge_route_oauth', '', 7037],
  ['SEVERAL_LOGINS', 'update_https_edge_route', '', 7079],
  ['FIELD_TOO_LONG', 'put_https_edge_route_saml', 'idp_metadata', 7080],
  ['FIELD_REQUIRED', 'create_https_edge_route', 'oidc.issuer', 7088],
  ['FIELD_REQUIRED', 'put_https_edge_route_oidc', 'client_id', 7089],
  ['FIELD_REQUIRED', 'put_https_edge_route_oidc', 'client_secret', 7090],
  ['FIELD_REQUIRED', 'update_https_edge_route', 'saml.idp_metadata', 7091],
]
for (const [code, operation, field, number] of numbers) {
  test(`${code} of ${operation ?? 'any call'}${field && ` about ${field}`} is number ${number}`, () => {
    const route = routes.find((each) => each.operation === operation)
    assert.ok(route || operation === null, `no operation ${operation}`)
    assert.equal(numberOf({ code, field, reason: '' }, route), number)
  })
}

const reasons: [code: ErrorCode, reason: string, number: number][] = [
  ['BAD_CIDR', '', 1406],
  ['BAD_CIDR', 'no_mask', 1413],
  ['BAD_CIDR', 'not_lowest', 1409],
  ['BAD_CERTIFICATE', '', 1920],
  ['BAD_CERTIFICATE', 'not_a_ca', 1913],
  ['BAD_CERTIFICATE', 'a reason without its own number', 1920],
]
for (const [code, reason, number] of reasons) {
  test(`${code} for ${reason || 'no particular reason'} is number ${number}`, () => {
    assert.equal(numberOf({ code, field: '', reason }, routes[0]), number)
  })
}
