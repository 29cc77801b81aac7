/** The value of each variable when a rule runs: a table from its path to the function that reads it. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { type CertificateValues, certificateValues } from './certificate-values.ts'
import { cookiesOf, setCookiesOf } from './cookie-values.ts'
import { mediaType, queryParameters } from './http-values.ts'
import type { Moment } from './moment.ts'
import type { PolicyRequest, PolicyResponse, PolicyTls } from './policy-traffic.ts'
import { headerMap, requestHeaders } from './request-headers.ts'
import { readUserAgent } from './user-agent.ts'

/** Undefined: the variable is absent, and an expression that needs it fails. */
type ReadVariable = (moment: Moment) => unknown

/** A time, which the evaluator turns into its own kind of value. */
export class Instant {
  readonly millis: number

  constructor(millis: number) {
    this.millis = millis
  }
}

const empty = (): string => ''
const none = (): readonly string[] => []
const no = (): boolean => false

const peer = (read: (peer: Moment['connection']['peer']) => unknown): ReadVariable => {
  return ({ connection }) => read(connection.peer)
}
const tls = (read: (tls: PolicyTls) => unknown): ReadVariable => {
  return ({ connection }) => (connection.tls ? read(connection.tls) : undefined)
}
const request = (read: (request: PolicyRequest, moment: Moment) => unknown): ReadVariable => {
  return (moment) => (moment.request ? read(moment.request, moment) : undefined)
}
const response = (read: (response: PolicyResponse) => unknown): ReadVariable => {
  return (moment) => (moment.response ? read(moment.response) : undefined)
}
const certificate = (read: (values: CertificateValues) => unknown): ReadVariable => {
  return tls(({ clientCertificate }) => clientCertificate && read(certificateValues(clientCertificate)))
}

const name = (
  at: string,
  whole: (values: CertificateValues) => string,
  part: (values: CertificateValues) => CertificateValues['subjectPart'],
): Readonly<Record<string, ReadVariable>> => {
  const several = (which: Parameters<CertificateValues['subjectPart']>[0]): ReadVariable =>
    certificate((values) => [part(values)(which)].filter((text) => text !== ''))
  return {
    [at]: certificate(whole),
    [`${at}.common_name`]: certificate((values) => part(values)('commonName')),
    [`${at}.country`]: several('country'),
    [`${at}.locality`]: several('locality'),
    [`${at}.organization`]: several('organization'),
    [`${at}.organizational_unit`]: several('organizationalUnit'),
    [`${at}.province`]: several('province'),
  }
}

const location = (at: string): Readonly<Record<string, ReadVariable>> =>
  Object.fromEntries(
    // the server has no database of locations, so these are empty.
    ['city', 'country', 'country_code', 'latitude', 'longitude', 'radius', 'subdivision'].map((name) => [
      `${at}.${name}`,
      empty,
    ]),
  )

const message = (
  at: 'req' | 'res',
  headers: (read: (headers: HeaderList) => unknown) => ReadVariable,
): Readonly<Record<string, ReadVariable>> => ({
  [`${at}.content_encoding`]: headers((list) => list.all('content-encoding').flatMap((each) => each.split(/\s*,\s*/))),
  [`${at}.content_type`]: headers((list) => list.get('content-type') ?? ''),
  [`${at}.content_type.raw`]: headers((list) => list.get('content-type') ?? ''),
  [`${at}.content_type.parameters`]: headers((list) => mediaType(list.get('content-type') ?? '').parameters),
  [`${at}.headers`]: headers(headerMap),
  [`${at}.location`]: headers((list) => list.get('location') ?? ''),
  // Trailers come after the body; rules run before that.
  [`${at}.trailers`]: () => new Map(),
})

/** 0 where no length was announced: there is no body, or it comes in pieces. */
const announced = request(({ bodyLength }) => (typeof bodyLength === 'number' ? BigInt(bodyLength) : 0n))
const url = request(({ scheme, authority, target }) => `${scheme}://${authority}${target}`)
const agent = (read: (agent: ReturnType<typeof readUserAgent>) => unknown): ReadVariable => {
  return (moment) => moment.request && read(readUserAgent(moment.headers.get('user-agent') ?? ''))
}

/** The versions of TLS, from Node's names to those that rules read. */
export const tlsVersions: Readonly<Record<string, string>> = {
  TLSv1: '1.0',
  'TLSv1.1': '1.1',
  'TLSv1.2': '1.2',
  'TLSv1.3': '1.3',
}

export const variableValues: Readonly<Record<string, ReadVariable>> = {
  attempts: ({ attempts }) => BigInt(attempts.length),
  'conn.bytes_in': announced,
  'conn.bytes_out': () => 0n,
  'conn.client_ip': peer(({ ip }) => ip),
  'conn.client_ip.as.number': () => 0n,
  'conn.client_ip.as.organization': empty,
  'conn.client_ip.categories': none,
  'conn.client_ip.is_on_blocklist': no,
  'conn.client_ip.is_tor_node': no,
  ...location('conn.client_ip.geo.location'),
  'conn.client_port': peer(({ port }) => BigInt(port)),
  ...location('conn.geo'),
  'conn.server_ip': peer(({ serverIp }) => serverIp),
  'conn.server_port': peer(({ serverPort }) => BigInt(serverPort)),
  'conn.server_region': ({ region }) => region,
  'conn.ts.start': peer(({ startedAt }) => new Instant(startedAt)),
  'conn.tls.cipher_suite': tls(({ cipher }) => cipher),
  ...name(
    'conn.tls.client.issuer',
    ({ issuer }) => issuer,
    ({ issuerPart }) => issuerPart,
  ),
  'conn.tls.client.pem': certificate(({ pem }) => pem),
  'conn.tls.client.san': certificate(({ dnsNames }) => dnsNames.join(',')),
  'conn.tls.client.san.dns_names': certificate(({ dnsNames }) => dnsNames),
  'conn.tls.client.san.email_addresses': certificate(({ emailAddresses }) => emailAddresses),
  'conn.tls.client.san.ip_addresses': certificate(({ ipAddresses }) => ipAddresses),
  'conn.tls.client.serial_number': certificate(({ serialNumber }) => serialNumber),
  ...name(
    'conn.tls.client.subject',
    ({ subject }) => subject,
    ({ subjectPart }) => subjectPart,
  ),
  'conn.tls.client.validity.not_after': certificate(({ notAfter }) => new Instant(notAfter)),
  'conn.tls.client.validity.not_before': certificate(({ notBefore }) => new Instant(notBefore)),
  'conn.tls.negotiated_alpn': tls(({ alpn }) => alpn),
  'conn.tls.session_resumed': tls(({ isResumed }) => isResumed),
  'conn.tls.sni': ({ connection }) => connection.serverName ?? connection.tls?.serverName ?? '',
  'conn.tls.version': tls(({ version }) => tlsVersions[version] ?? version),
  'endpoint.addr': ({ connection, request: own }) =>
    `${own?.host ?? connection.serverName ?? connection.peer.serverIp}:${connection.peer.serverPort}`,
  'endpoint.host': ({ connection, request: own }) => own?.host ?? connection.serverName ?? connection.peer.serverIp,
  'endpoint.id': ({ connection }) => connection.edgeId,
  'endpoint.port': peer(({ serverPort }) => BigInt(serverPort)),
  'endpoint.protocol': ({ connection, request: own }) =>
    own?.scheme ?? (connection.serverName === undefined ? 'tcp' : 'tls'),
  'endpoint.url': ({ connection, request: own }) =>
    own
      ? `${own.scheme}://${own.authority}`
      : `${connection.serverName === undefined ? 'tcp' : 'tls'}://${connection.serverName ?? connection.peer.serverIp}:${connection.peer.serverPort}`,
  'last_attempt.error': ({ attempts }) => attempts.at(-1)?.error ?? '',
  'last_attempt.req': ({ attempts }) => attempts.at(-1)?.req,
  'last_attempt.res': ({ attempts }) => attempts.at(-1)?.res,
  ...message('req', (read) => (moment) => moment.request && read(moment.headers)),
  'req.content_length': announced,
  'req.cookies': request((_, { headers }) => cookiesOf(headers)),
  'req.headers': request((own, { headers }) => requestHeaders(own, headers)),
  'req.host': request(({ authority }) => authority),
  'req.method': request(({ method }) => method),
  'req.ts.body_received': request(({ startedAt }) => new Instant(startedAt)),
  'req.ts.header_received': request(({ startedAt }) => new Instant(startedAt)),
  'req.url': url,
  'req.url.authority': request(({ authority }) => authority),
  'req.url.host': request(({ host }) => host),
  'req.url.path': request(({ path }) => path),
  'req.url.port': request(({ authority, scheme }) => {
    const port = /:(\d{1,5})$/.exec(authority)?.[1]
    return BigInt(port ?? (scheme === 'https' ? 443 : 80))
  }),
  'req.url.query': request(({ query }) => query),
  'req.url.query_params': request(({ query }) => queryParameters(query)),
  'req.url.raw': url,
  'req.url.raw_path': request(({ target }) => target.split('?', 1)[0] ?? ''),
  'req.url.scheme': request(({ scheme }) => scheme),
  'req.url.uri': request(({ target }) => target),
  // RFC 9110 §4.2.4: a request that names a user in its URL is refused before rules run.
  'req.url.user_password': request(empty),
  'req.user_agent': request((_, { headers }) => headers.get('user-agent') ?? ''),
  'req.user_agent.device': agent(({ device }) => device),
  'req.user_agent.is_bot': agent(({ isBot }) => isBot),
  'req.user_agent.is_desktop': agent(({ isDesktop }) => isDesktop),
  'req.user_agent.is_mobile': agent(({ isMobile }) => isMobile),
  'req.user_agent.is_tablet': agent(({ isTablet }) => isTablet),
  'req.user_agent.name': agent(({ name }) => name),
  'req.user_agent.os': agent(({ os }) => os),
  'req.user_agent.os_version': agent(({ osVersion }) => osVersion),
  'req.user_agent.url': agent((found) => found.url),
  'req.user_agent.version': agent(({ version }) => version),
  'req.version': request(({ version }) => (version === '2' ? 'HTTP/2.0' : 'HTTP/1.1')),
  ...message('res', (read) => response(({ headers }) => read(headers))),
  'res.content_length': response(({ headers, bodyLength: known }) =>
    known === undefined ? bodyLength(headers) : BigInt(known),
  ),
  'res.cookies': response(({ headers }) => setCookiesOf(headers)),
  'res.status_code': response(({ status }) => BigInt(status)),
  'res.StatusCode': response(({ status }) => String(status)),
  'time.now': ({ now }) => new Date(now).toISOString(),
  vars: ({ vars }) => vars,
}

function bodyLength(headers: HeaderList): bigint {
  const length = headers.get('content-length') ?? ''
  return /^\d{1,16}$/.test(length) ? BigInt(length) : 0n
}
