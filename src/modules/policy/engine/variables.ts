/** The variables that expressions can read, by place and phase (listed in docs/policy.md). */
import { actionNames } from './actions.ts'
import { placeName, type Site } from './policy-phases.ts'
import { absent, any, bool, int, list, map, record, type Shape, string, stringWith, timestamp } from './policy-shape.ts'

const names = list(string)

const location = {
  city: string,
  country: string,
  country_code: string,
  latitude: string,
  longitude: string,
  radius: string,
  subdivision: string,
}

const clientIp = stringWith({
  as: record({ number: int, organization: string }),
  categories: names,
  geo: record({ location: record(location) }),
  is_on_blocklist: bool,
  is_tor_node: bool,
})

const distinguishedName = stringWith({
  common_name: string,
  country: names,
  locality: names,
  organization: names,
  organizational_unit: names,
  province: names,
})

const certificate = {
  issuer: distinguishedName,
  pem: string,
  san: stringWith({ dns_names: names, email_addresses: names, ip_addresses: names }),
  serial_number: string,
  subject: distinguishedName,
  validity: record({ not_before: timestamp, not_after: timestamp }),
}

const tls = record({
  cipher_suite: string,
  client: record(certificate),
  ja4_fingerprint: absent('which this server does not compute'),
  negotiated_alpn: string,
  server: absent('which is for the owner of the edge to know; read `conn.tls.client` for the certificate of a visitor'),
  session_resumed: bool,
  sni: string,
  version: string,
})

const connection = {
  client_ip: clientIp,
  client_port: int,
  geo: record(location),
  server_ip: string,
  server_port: int,
  server_region: string,
  ts: record({ start: timestamp }),
}

const endpoint = record({ addr: string, host: string, id: string, port: int, protocol: string, url: string })

const contentType = stringWith({ parameters: map(string), raw: string })

const message = {
  content_encoding: names,
  content_length: int,
  content_type: contentType,
  headers: map(names),
  location: string,
  trailers: map(names),
}

const req = record({
  ...message,
  cookies: map(list(record({ name: string, value: string }))),
  host: string,
  method: string,
  ts: record({ body_received: timestamp, header_received: timestamp }),
  url: stringWith({
    authority: string,
    host: string,
    path: string,
    port: any,
    query: string,
    query_params: map(names),
    raw: string,
    raw_path: string,
    scheme: string,
    uri: string,
    user_password: string,
  }),
  user_agent: stringWith({
    device: string,
    is_bot: bool,
    is_desktop: bool,
    is_mobile: bool,
    is_tablet: bool,
    name: string,
    os: string,
    os_version: string,
    url: string,
    version: string,
  }),
  version: string,
})

const res = record({
  ...message,
  cookies: map(
    list(
      record({
        domain: string,
        expires: any,
        http_only: bool,
        max_age: int,
        name: string,
        path: string,
        same_site: string,
        secure: bool,
        unparsed_attributes: any,
        value: string,
      }),
    ),
  ),
  status_code: int,
  // Not just an older spelling of `status_code`: this one is a string.
  StatusCode: string,
})

/** The findings of actions, by name with underscores: `actions.ngrok.restrict_ips` for `restrict-ips`. */
const results = record({
  ...Object.fromEntries(actionNames.map((name) => [name.replaceAll('-', '_'), any])),
  // The vendor's name for the result of `openid-connect`.
  oidc: any,
})

/** Every variable, with `absent` ones where this place or phase does not have them. */
export function variables(site: Site): Readonly<Record<string, Shape>> {
  const { place } = site
  const http = place === 'route'
  const noHttp = absent(`which only routes of HTTPS edges have; ${placeName(place)} sees connections, not requests`)
  const counted = http ? int : noHttp
  return {
    actions: record({ ngrok: results }),
    conn: record({
      ...connection,
      bytes_in: counted,
      bytes_out: counted,
      tls: place === 'tcp' ? absent('which a TCP edge does not have') : tls,
    }),
    endpoint,
    req: http ? req : noHttp,
    res: http ? response(site) : noHttp,
    ...(site.isRetry && { attempts: int, last_attempt: record({ error: string, req: any, res: any }) }),
    time: record({ now: string }),
    vars: http ? any : absent('which only `set-vars` fills, an action of routes of HTTPS edges'),
  }
}

function response({ phase, lists }: Site): Shape {
  if (phase === 'response') return res
  return absent(`which does not exist before the response; move the rule to \`${lists.outbound}\``)
}
