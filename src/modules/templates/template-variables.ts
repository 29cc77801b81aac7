/** The variables that a `${…}` may name, in their older and newer spellings. */
import { timestamp } from '../../lib/clock.ts'
import { clientCertificate } from '../client-certificate.ts'
import type { RequestContext, TlsFacts } from '../phases.ts'
import { tlsVersions } from '../policy/engine/variable-values.ts'
import type { TemplateMoment } from './templates.ts'

type Variable = (moment: TemplateMoment) => string

/** The function that reads a variable. A name that is not in the table is looked up in what modules found out. */
export function findVariable(name: string): Variable {
  return table.get(name) ?? (({ ctx }) => ctx.found.get(name) ?? '')
}

const onRequest = (read: (ctx: RequestContext) => string | number): Variable => {
  return ({ ctx }) => String(read(ctx))
}

const onTls = (read: (tls: TlsFacts) => string | undefined): Variable => {
  return ({ ctx: { tls } }) => (tls && read(tls)) ?? ''
}

const clientIp = onRequest(({ peer }) => peer.ip)
const requestId = onRequest(({ requestId: id }) => id)
const method = onRequest((ctx) => ctx.method)
const version = onRequest((ctx) => (ctx.version === '2' ? 'HTTP/2.0' : 'HTTP/1.1'))
const userAgent = onRequest(({ headers }) => headers.get('user-agent') ?? '')
const url = onRequest(({ scheme, authority, target }) => `${scheme}://${authority}${target}`)
const scheme = onRequest((ctx) => ctx.scheme)
const authority = onRequest((ctx) => ctx.authority)
const path = onRequest(({ target }) => target.split('?', 1)[0] ?? '')
const query = onRequest((ctx) => ctx.query)
const startedAt = onRequest(({ peer }) => timestamp(peer.startedAt))
const serverName = onRequest(({ tls, host }) => tls?.serverName ?? host)
const tlsVersion = onTls((tls) => tlsVersions[tls.version] ?? tls.version)
const cipherSuite = onTls((tls) => tls.cipher)
const certificateSubject = onTls((tls) => clientCertificate(tls)?.subject)
const certificateName = onTls((tls) => clientCertificate(tls)?.commonName)
const certificateSerial = onTls((tls) => clientCertificate(tls)?.serialNumber)
const status: Variable = ({ incoming }) => (incoming ? String(incoming.status) : '')

const table: ReadonlyMap<string, Variable> = new Map(
  Object.entries({
    'conn.client_ip': clientIp,
    'conn.client_port': onRequest(({ peer }) => peer.port),
    'conn.server_ip': onRequest(({ peer }) => peer.serverIp),
    'conn.server_name': serverName,
    'conn.server_port': onRequest(({ peer }) => peer.serverPort),
    'conn.server_region': ({ tools }) => tools.region,
    'conn.start_ts': startedAt,
    'conn.ts.start': startedAt,
    'conn.tls.cipher_suite': cipherSuite,
    'conn.tls.client.san.dns_names': onTls((tls) => clientCertificate(tls)?.dnsNames),
    'conn.tls.client.san.email_addresses': onTls((tls) => clientCertificate(tls)?.emailAddresses),
    'conn.tls.client.serial_number': certificateSerial,
    'conn.tls.client.subject': certificateSubject,
    'conn.tls.client.subject.common_name': certificateName,
    'conn.tls.negotiated_alpn': onTls((tls) => tls.alpn),
    'conn.tls.session_resumed': onTls((tls) => String(tls.isResumed)),
    'conn.tls.sni': onTls((tls) => tls.serverName),
    'conn.tls.version': tlsVersion,
    'endpoint.host': onRequest((ctx) => ctx.host),
    'endpoint.id': onRequest((ctx) => ctx.edgeId),
    'endpoint.protocol': scheme,
    'http.request.method': method,
    'http.request.url': url,
    'http.request.url.host': authority,
    'http.request.url.path': path,
    'http.request.url.query': query,
    'http.request.url.raw': url,
    'http.request.url.scheme': scheme,
    'http.request.user_agent': userAgent,
    'http.request.version': version,
    'http.request_id': requestId,
    'http.response.status_code': status,
    'ngrok.client_ip': clientIp,
    'ngrok.request_id': requestId,
    'ngrok.saml.subject': onRequest(({ found }) => found.get('saml.subject') ?? ''),
    'req.host': authority,
    'req.method': method,
    'req.url': url,
    'req.url.host': authority,
    'req.url.path': path,
    'req.url.query': query,
    'req.url.scheme': scheme,
    'req.user_agent': userAgent,
    'req.version': version,
    'res.status_code': status,
    'time.now': ({ tools }) => timestamp(tools.now()),
    'tls.cipher_suite': cipherSuite,
    'tls.client_cert.serial_number': certificateSerial,
    'tls.client_cert.subject': certificateSubject,
    'tls.client_cert.subject.cn': certificateName,
    'tls.version': tlsVersion,
    'webhook_validation.decision': onRequest(({ found }) => found.get('webhook_verification.decision') ?? ''),
  } satisfies Record<string, Variable>),
)
