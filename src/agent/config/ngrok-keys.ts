/** The keys of a tunnel in ngrok's configuration file and their names in ours; a key in no table is unknown. */
import { nearest } from '../../lib/text/nearest.ts'
import { isMap, type Problem } from '../../link/options/option-reader.ts'

type Path = readonly string[]

/** Maps ngrok's paths to ours. */
export type KeyTable = readonly (readonly [theirs: Path, ours: Path])[]

const same = (...names: string[]): KeyTable => names.map((name) => [name.split('.'), name.split('.')])
const renameKeys = (names: Readonly<Record<string, string>>): KeyTable =>
  Object.entries(names).map(([theirs, ours]) => [theirs.split('.'), ours.split('.')])

const login = ['client_id', 'client_secret', 'allow_emails', 'allow_domains', 'scopes']

/** The keys of tunnels, which versions 2 and 3 share. */
export const tunnelKeys: KeyTable = [
  ...same('addr', 'proto', 'schemes', 'url', 'domain', 'hostname', 'subdomain', 'remote_addr', 'labels', 'metadata'),
  ...same('description', 'host_header', 'proxy_proto', 'app_protocol', 'inspect', 'basic_auth', 'circuit_breaker'),
  ...same('compression', 'websocket_tcp_converter', 'terminate_at', 'crt', 'key', 'policy', 'traffic_policy'),
  ...same('user_agent_filter.allow', 'user_agent_filter.deny', 'oauth.provider', 'oidc.issuer_url'),
  ...same(...login.map((name) => `oauth.${name}`), ...login.map((name) => `oidc.${name}`)),
  ...renameKeys({
    mutual_tls_cas: 'mutual_tls',
    pooling_enabled: 'pooling',
    verify_upstream_tls: 'upstream_tls.verify',
    verify_upstream_tls_cas: 'upstream_tls.ca',
    'ip_restriction.allow_cidrs': 'ip_restriction.allow',
    'ip_restriction.deny_cidrs': 'ip_restriction.deny',
    'request_header.add': 'request_headers.add',
    'request_header.remove': 'request_headers.remove',
    'response_header.add': 'response_headers.add',
    'response_header.remove': 'response_headers.remove',
    'verify_webhook.provider': 'webhook_verification.provider',
    'verify_webhook.secret': 'webhook_verification.secret',
  }),
]

/** The keys that the local API accepts: ngrok's, and those of ours that are spelled differently. */
export const localTunnelKeys: KeyTable = [
  ...tunnelKeys,
  ...same('pooling', 'mutual_tls', 'upstream_tls.verify', 'upstream_tls.ca', 'upstream_tls.server_name'),
  ...same('ip_restriction.allow', 'ip_restriction.deny', 'request_headers.add', 'request_headers.remove'),
  ...same('response_headers.add', 'response_headers.remove', 'webhook_verification.provider'),
  ...same('webhook_verification.secret'),
]

/** The keys of the endpoints of version 3. */
export const endpointKeys: KeyTable = [
  ...same('url', 'metadata', 'description', 'traffic_policy', 'inspect'),
  ...renameKeys({
    'upstream.url': 'addr',
    'upstream.protocol': 'app_protocol',
    'upstream.proxy_protocol': 'proxy_proto',
    traffic_policy_file: 'traffic_policy',
    pooling_enabled: 'pooling',
  }),
]

/** Keys that are refused with a message of their own, which says why. */
export type RefusedKeys = Readonly<Record<string, string>>

/** The values under our keys; a key that is not in `table` is a problem. An empty string counts as absent, as in ngrok. */
export function translate(given: Readonly<Record<string, unknown>>, table: KeyTable, refused: RefusedKeys) {
  const values: Record<string, unknown> = {}
  const problems: Problem[] = []
  const walk = (map: Readonly<Record<string, unknown>>, path: Path): void => {
    for (const [key, value] of Object.entries(map)) {
      const at = [...path, key]
      // ngrok's manual writes nested keys with dots, and so do some people.
      const name = at.join('.')
      const entry = table.find(([theirs]) => theirs.join('.') === name)
      if (Object.hasOwn(refused, name)) problems.push({ path: at, fault: refused[name] ?? '' })
      else if (value === null || value === '') continue
      else if (entry) put(values, entry[1], value)
      else if (isMap(value) && table.some(([theirs]) => theirs.join('.').startsWith(`${name}.`))) walk(value, at)
      else problems.push({ path: at, fault: unknownKey(name, table) })
    }
  }
  walk(given, [])
  return { values, problems }
}

/** The path in ngrok's file for a path in ours. */
export function theirPath(ours: Path, table: KeyTable): Path {
  const whole = table.find(([, to]) => to.length <= ours.length && to.every((part, i) => part === ours[i]))
  if (whole) return [...whole[0], ...ours.slice(whole[1].length)]
  const part = table.find(([, to]) => ours.every((each, i) => each === to[i]))
  return part ? part[0].slice(0, ours.length) : ours
}

function put(values: Record<string, unknown>, [key = '', inner]: Path, value: unknown): void {
  const before = Object.hasOwn(values, key) ? values[key] : undefined
  values[key] = inner === undefined ? value : { ...(isMap(before) ? before : {}), [inner]: value }
}

function unknownKey(name: string, table: KeyTable): string {
  const known = new Set(table.flatMap(([theirs]) => theirs.map((_, i) => theirs.slice(0, i + 1).join('.'))))
  const meant = nearest(name, [...known])
  return meant ? `is not a known key; did you mean \`${meant}\`?` : 'is not a known key'
}
