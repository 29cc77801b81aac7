/** Turns described traffic into what an edge gets of real traffic: a head, a peer, the outcome of the handshake. */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { HeaderList } from '../../lib/http/header-list.ts'
import { isFieldContent, isHeaderName } from '../../lib/http/http-header.ts'
import { plainAddress } from '../../lib/net/ip-rules.ts'
import { BadValue } from '../../lib/shape/check.ts'
import type { Described, DescribedConnection, DescribedRequest } from '../../model/described.ts'
import type { EdgeConfig } from '../../model/edge-config.ts'
import type { Peer, TlsFacts } from '../../modules/phases.ts'
import { NameIndex } from '../edge/name-index.ts'
import { hostOf } from '../requests/host-authority.ts'
import type { RequestHead } from '../requests/http-exchange.ts'

/** A connection without a request, on a TCP or TLS edge. */
export interface DescribedVisit {
  readonly peer: Peer
  /** Undefined on TCP edges. */
  readonly serverName: string | undefined
  /** What a handshake would agree on if it ended here. */
  readonly tls: TlsFacts
  /** The certificates after the client's own. */
  readonly chain: readonly X509Certificate[]
}

export interface DescribedHttp extends DescribedVisit {
  readonly head: RequestHead
  readonly body: Buffer
  /** Whether it came to the plain listener. */
  readonly isPlain: boolean
}

interface Around {
  readonly config: EdgeConfig
  /** The route to be explained. */
  readonly routeId: string | undefined
  readonly now: number
}

/** The ports that URLs leave out. */
const HTTPS_PORT = 443
const HTTP_PORT = 80

/** Throws `BadValue`. */
export function connectionVisit(asked: Described, around: Around): DescribedVisit {
  const { config } = around
  const name = config.kind === 'tcp' ? undefined : (asked.connection?.server_name || usualName(config)).toLowerCase()
  if (name !== undefined) requireName(name, config, 'connection.server_name')
  const port = config.kind === 'tcp' ? (config.ports[0] ?? 0) : HTTPS_PORT
  return visitOf(asked.connection, { name: name ?? '', port, alpn: '', now: around.now, isTcp: config.kind === 'tcp' })
}

/** Throws `BadValue`. */
export function httpVisit(asked: Described, request: DescribedRequest, around: Around): DescribedHttp {
  const { config, routeId, now } = around
  const { scheme, authority, target } = addressOf(request, config, routeId)
  const headers = headersOf(request)
  const host = hostOf(authority)
  if (host === undefined) throw badVisit('request.url', 'has an invalid host')
  requireName(host, config, 'request.url')
  const name = (asked.connection?.server_name || host).toLowerCase()
  requireName(name, config, 'connection.server_name')
  const isPlain = scheme === 'http'
  if (config.kind === 'http' && !isPlain)
    throw badVisit('request.url', `must begin with \`http://\`: ${config.id} has no TLS`)
  const body = Buffer.from(request.body)
  const alpn = request.version === '2' ? 'h2' : 'http/1.1'
  const head: RequestHead = {
    method: request.method,
    target,
    authority,
    headers,
    version: request.version,
    body: body.length === 0 ? 'none' : body.length,
    upgrade: request.version === '1.1' ? upgradeOf(headers) : undefined,
  }
  if (!isHeaderName(head.method)) throw badVisit('request.method', 'is not a method')
  const port = isPlain ? HTTP_PORT : HTTPS_PORT
  return { ...visitOf(asked.connection, { name, port, alpn, now, isTcp: false }), head, body, isPlain }
}

function visitOf(
  described: DescribedConnection | undefined,
  { name, port, alpn, now, isTcp }: { name: string; port: number; alpn: string; now: number; isTcp: boolean },
): DescribedVisit {
  const { client_ip = '192.0.2.1', client_port = 50_000, server_ip = '192.0.2.2', server_port = 0 } = described ?? {}
  const { tls } = described ?? {}
  const [clientCertificate, ...chain] = certificates(tls?.client_certificate ?? '')
  return {
    peer: {
      ip: address(client_ip, 'connection.client_ip'),
      port: client_port,
      serverIp: address(server_ip, 'connection.server_ip'),
      serverPort: server_port || port,
      startedAt: now,
    },
    serverName: isTcp ? undefined : name,
    tls: {
      serverName: name,
      version: tlsVersion(tls?.version ?? '1.3'),
      cipher: tls?.cipher_suite ?? 'TLS_AES_128_GCM_SHA256',
      alpn: tls?.alpn || alpn,
      isResumed: tls?.session_resumed ?? false,
      clientCertificate,
    },
    chain,
  }
}

/** As Node spells it. */
function tlsVersion(version: string): string {
  return version === '1.0' ? 'TLSv1' : `TLSv${version}`
}

const url = /^(https?):\/\/([^/?#]*)([^#]*)$/i
const visible = /^[\x21-\x7e]+$/

function addressOf(
  { url: given, headers }: DescribedRequest,
  config: EdgeConfig,
  routeId: string | undefined,
): { scheme: string; authority: string; target: string } {
  const [, host] = Object.entries(headers).find(([name]) => name.toLowerCase() === 'host') ?? []
  const [whole, scheme = config.kind, authority = '', rest = ''] = url.exec(given) ?? []
  const usual = host?.[0] ?? usualName(config)
  const path = whole === undefined ? given || usualPath(config, routeId) : rest
  const target = path === '' || path.startsWith('?') ? `/${path}` : path
  if (!visible.test(target) || target.includes('#') || !(target.startsWith('/') || target === '*')) {
    throw badVisit('request.url', 'must be a URL, or a path that begins with `/`, as sent in a request')
  }
  return { scheme: scheme.toLowerCase(), authority: host?.[0] ?? (authority || usual), target }
}

/** The first name of the edge; of a wildcard, a name below it. */
function usualName({ names, kind }: EdgeConfig): string {
  const [first] = names
  if (first === undefined)
    throw badVisit(kind === 'tls' ? 'connection.server_name' : 'request.url', 'has no name to go to')
  return first.replace(/^\*/, 'any')
}

function usualPath({ routes }: EdgeConfig, routeId: string | undefined): string {
  return encodeURI(routes.find(({ id }) => id === routeId)?.match ?? '/')
}

function requireName(name: string, { names, id }: EdgeConfig, field: string): void {
  const index = new NameIndex<true>()
  for (const each of names) index.set(each, true)
  if (index.find(name)) return
  const known = names.map((each) => `\`${each}\``).join(', ')
  throw badVisit(field, `asks for \`${name.slice(0, 100)}\`, which ${id} does not serve; it has ${known || 'no names'}`)
}

/** Headers about framing, since the body is described separately, and the host, which is part of the address. */
const apart: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding', 'trailer'])

function headersOf({ headers, version }: DescribedRequest): HeaderList {
  const list = new HeaderList()
  for (const [name, values] of Object.entries(headers)) {
    const field = `request.headers[${JSON.stringify(name)}]`
    if (!isHeaderName(name)) throw badVisit(field, 'is not the name of a header')
    if (!values.every(isFieldContent)) throw badVisit(field, 'holds a character that no header can hold')
    if (apart.has(name.toLowerCase())) continue
    for (const value of values) list.add(version === '2' ? name.toLowerCase() : name, value.trim())
  }
  return list
}

function upgradeOf(headers: HeaderList): string | undefined {
  const options = headers.all('connection').flatMap((value) => value.toLowerCase().split(/\s*,\s*/))
  return options.includes('upgrade') ? headers.get('upgrade') : undefined
}

function address(text: string, field: string): string {
  if (isIP(text) === 0) throw badVisit(field, 'must be an IP address')
  return plainAddress(text)
}

function certificates(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? []
  try {
    if (pem.trim() !== '' && blocks.length === 0) throw new Error('there is none')
    return blocks.map((block) => new X509Certificate(block))
  } catch {
    throw badVisit('connection.tls.client_certificate', 'must be certificates in PEM')
  }
}

export function badVisit(field: string, what: string): BadValue {
  return new BadValue(field, 'value', `\`${field}\` ${what}`)
}
