/** Which resources a field of a form refers to, so that their ids can be offered. */

const backends = [
  '/backends/tunnel_group',
  '/backends/static',
  '/backends/http_response',
  '/backends/weighted',
  '/backends/failover',
]

/** The lists of the API by the name of the field. */
const lists: Readonly<Record<string, readonly string[]>> = {
  backend_id: backends,
  backends,
  ip_policy_id: ['/ip_policies'],
  ip_policy_ids: ['/ip_policies'],
  certificate_authority_ids: ['/certificate_authorities'],
  certificate_id: ['/tls_certificates'],
  ssh_certificate_authority_id: ['/ssh_certificate_authorities'],
  // Of a capture, which is only for HTTP.
  edge_id: ['/edges/https'],
  endpoint_id: ['/endpoints'],
}

/** `path` is that of the field in its form, such as `ip_policy_ids[0]`. */
export function choicesFor(path: string): readonly string[] {
  const [, name = ''] = /(\w+)(\[[^\]]*\])?$/.exec(path) ?? []
  return Object.hasOwn(lists, name) ? (lists[name] ?? []) : []
}
