/** Requests and responses for the tests of modules, with everything that a phase may look at. */
import { HeaderList } from '../../lib/http/header-list.ts'
import type { Incoming, Peer, ReachedEdge, RequestContext, TlsFacts } from '../phases.ts'

export const visitor: Peer = {
  ip: '192.0.2.7',
  port: 40_000,
  serverIp: '198.51.100.1',
  serverPort: 443,
  startedAt: Date.UTC(2026, 0, 2, 3, 4, 5),
}

export const reached: ReachedEdge = { edgeId: 'edghts_1', serverName: 'app.example.com' }

/** A GET over HTTPS; headers by name, several values as a list. */
export function request({
  headers = {},
  body = Buffer.alloc(0),
  ...rest
}: Partial<Omit<RequestContext, 'headers' | 'readBody'>> & {
  headers?: Readonly<Record<string, string | readonly string[]>>
  body?: Buffer | string
} = {}): RequestContext {
  const bytes = Buffer.from(body)
  return {
    peer: visitor,
    tls: undefined,
    edgeId: 'edghts_1',
    routeId: 'edghtsrt_1',
    requestId: '0123456789abcdef0123456789abcdef',
    startedAt: visitor.startedAt,
    scheme: 'https',
    version: '1.1',
    method: 'GET',
    host: 'app.example.com',
    authority: 'app.example.com',
    target: '/',
    path: '/',
    query: '',
    reservedPath: undefined,
    isUpgrade: false,
    bodyLength: bytes.length === 0 ? 'none' : bytes.length,
    found: new Map(),
    slots: new Map(),
    replacedHost: undefined,
    replacedTarget: undefined,
    ...rest,
    headers: headerList(headers),
    readBody: (maxBytes) => Promise.resolve(bytes.length > maxBytes ? 'too_large' : bytes),
  }
}

export function headerList(headers: Readonly<Record<string, string | readonly string[]>>): HeaderList {
  return HeaderList.of(
    Object.entries(headers).flatMap(([name, value]) => [value].flat().map((each) => [name, each] as const)),
  )
}

/** A response of an upstream; `encoders` holds what the body was sent through. */
export function response({
  headers = {},
  ...rest
}: Partial<Omit<Incoming, 'headers' | 'encodeBody'>> & {
  headers?: Readonly<Record<string, string | readonly string[]>>
} = {}): Incoming & { encoders: Parameters<Incoming['encodeBody']>[0][] } {
  const encoders: Parameters<Incoming['encodeBody']>[0][] = []
  return {
    status: 200,
    isFromUpstream: true,
    hasBody: true,
    ...rest,
    headers: headerList(headers),
    encoders,
    encodeBody: (encode) => void encoders.push(encode),
  }
}

export function handshake(certificate?: TlsFacts['clientCertificate']): TlsFacts {
  return {
    serverName: 'app.example.com',
    version: 'TLSv1.3',
    cipher: 'TLS_AES_128_GCM_SHA256',
    alpn: 'http/1.1',
    isResumed: false,
    clientCertificate: certificate,
  }
}
