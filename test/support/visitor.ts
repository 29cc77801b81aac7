/** Visitors of a platform. They use Node's own clients, which check certificates and names as real programs do. */
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { request as requestSecure } from 'node:https'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { readAll } from './read-all.ts'
import { trustedContext } from './trusted-context.ts'

export type HttpVersion = '1.1' | '2'

export interface Ask {
  readonly version?: HttpVersion
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The source address, for HTTP/1.1; `127.0.0.1` when left out. */
  readonly from?: string
  /** The client certificate, for mutual TLS. */
  readonly identity?: { readonly cert: string; readonly key: string }
}

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly trailers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  readonly text: string
}

/** The CA that a visitor trusts. */
export interface Trust {
  /** PEM. */
  readonly ca: string
}

/** Requests `url`, whose name need not be in DNS, and reads the whole answer. */
export async function visit(url: string, { ca }: Trust, ask: Ask = {}): Promise<Answered> {
  return ask.version === '2' ? visitHttp2(url, { ca }, ask) : answerOf(beginVisit(url, { ca }, ask))
}

/** Begins a request over HTTP/1.1 whose answer the test reads itself. */
export function beginVisit(url: string, { ca }: Trust, ask: Ask = {}): ClientRequest {
  const { method = 'GET', path = '/', headers = {}, body, from = '127.0.0.1', identity } = ask
  const { protocol, host, hostname, port } = new URL(url)
  const where = { host: '127.0.0.1', port, localAddress: from, agent: false as const }
  const to = { ...where, method, path, headers: { host, ...headers } }
  const request =
    protocol === 'https:'
      ? requestSecure({ ...to, ...clientTls(ca, identity), servername: hostname })
      : requestPlain(to)
  request.end(body)
  return request
}

function clientTls(ca: string, identity: Ask['identity']) {
  return identity ? { ca, ...identity } : { secureContext: trustedContext(ca) }
}

export async function answerOf(request: ClientRequest): Promise<Answered> {
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const body = await buffer(response)
  const { statusCode = 0, headers, trailers } = response
  return { status: statusCode, headers, trailers, body, text: body.toString() }
}

/** An HTTP/2 connection for parallel requests; the test must destroy it. */
export function openHttp2(url: string, { ca }: Trust, identity?: Ask['identity']): ClientHttp2Session {
  const { hostname, port } = new URL(url)
  const session = connectHttp2(`https://127.0.0.1:${port}`, { ...clientTls(ca, identity), servername: hostname })
  session.on('error', () => {})
  return session
}

async function visitHttp2(url: string, trust: Trust, ask: Ask): Promise<Answered> {
  const session = openHttp2(url, trust, ask.identity)
  try {
    return await askHttp2(session, url, ask)
  } finally {
    session.destroy()
  }
}

/** Sends a request over an open connection. */
export async function askHttp2(session: ClientHttp2Session, url: string, ask: Ask = {}): Promise<Answered> {
  const { method = 'GET', path = '/', headers = {}, body } = ask
  const stream = session.request(
    { ':method': method, ':path': path, ':authority': new URL(url).host, ...headers },
    { endStream: body === undefined },
  )
  if (body !== undefined) stream.end(body)
  let trailers: Answered['trailers'] = {}
  stream.on('trailers', (given) => {
    trailers = given
  })
  const [given] = (await once(stream, 'response')) as [Record<string, string | string[] | undefined>]
  const bytes = await buffer(stream)
  const { ':status': status, ...rest } = given
  return { status: Number(status), headers: rest, trailers, body: bytes, text: bytes.toString() }
}

/** Opens a connection to a `tcp://` address, which stays half open when one side ends. Any name means this machine. */
export async function dialTcp(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const host = isIP(hostname) === 0 ? '127.0.0.1' : hostname
  const socket = connectTcp({ port: Number(port), host, allowHalfOpen: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

/** Opens a TLS connection to a `tls://` or `https://` address, which stays half open when one side ends. */
export async function dialTls(url: string, options: ConnectionOptions): Promise<TLSSocket> {
  const { hostname, port } = new URL(url)
  const socket = connectTls({ port: Number(port), host: '127.0.0.1', servername: hostname, ...options })
  socket.allowHalfOpen = true
  await once(socket, 'secureConnect')
  socket.on('error', () => {})
  return socket
}

/** Sends `text`, ends, and returns everything that comes back. */
export async function exchange(socket: Socket, text: string | Buffer): Promise<string> {
  socket.end(text)
  return (await readAll(socket)).toString()
}
