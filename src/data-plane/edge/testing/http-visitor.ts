/** For tests: visitors that speak HTTP/1.1 and HTTP/2, with Node's own clients. */
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request as requestPlain } from 'node:http'
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2'
import { request as requestSecure } from 'node:https'
import { buffer } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { socketStream } from '../../../lib/bytes/socket-stream.ts'
import { caPem, type Plane } from './test-http-plane.ts'

type Version = '1.1' | '2'
export const versions: readonly Version[] = ['1.1', '2']

/** Accepts the server's certificate for any name that a test makes up. */
const trust = { ca: caPem, checkServerIdentity: () => undefined }

/** Node's client reads no answers while it holds more than its limit; this raises the limit. */
const roomy = { maxSessionMemory: 64 }

interface Ask {
  readonly host?: string
  /** The name in the handshake, when it is another. */
  readonly serverName?: string
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
}

interface Answer {
  readonly status: number
  /** Names in lower case; several values are joined in their order. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
  readonly text: string
  readonly trailers: Readonly<Record<string, string | string[] | undefined>>
  readonly informed: readonly { readonly status: number; readonly headers: Readonly<Record<string, unknown>> }[]
}

/** Asks over TLS, and reads the answer to its end. */
export function ask(t: TestContext, plane: Plane, version: Version, request: Ask = {}): Promise<Answer> {
  return version === '2' ? askHttp2(t, plane, request) : askHttp1(plane, request)
}

/** Asks the plain listener. */
export async function askPlain(plane: Plane, { host = 'a.test', method = 'GET', path = '/', headers }: Ask = {}) {
  const to = { host: '127.0.0.1', port: plane.httpPort, agent: false }
  const request = requestPlain({ ...to, method, path, headers: { host, ...headers } })
  request.end()
  return answerOf(request)
}

async function askHttp1(plane: Plane, asked: Ask): Promise<Answer> {
  const request = beginHttp1(plane, asked)
  request.end(asked.body)
  return answerOf(request)
}

/** A request over TLS and HTTP/1.1 whose body the test writes. */
export function beginHttp1(
  plane: Plane,
  { host = 'a.test', serverName = host, method = 'GET', path = '/', headers = {} }: Ask,
): ClientRequest {
  const to = { host: '127.0.0.1', port: plane.httpsPort, servername: serverName, agent: false as const }
  return requestSecure({ ...to, ...trust, method, path, headers: { host, ...headers } })
}

async function answerOf(request: ClientRequest): Promise<Answer> {
  const informed: Answer['informed'][number][] = []
  request.on('information', ({ statusCode, headers }) => informed.push({ status: statusCode, headers }))
  request.on('continue', () => informed.push({ status: 100, headers: {} }))
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const body = await buffer(response)
  const { statusCode = 0, headers, trailers } = response
  return { status: statusCode, headers, body, text: body.toString(), trailers, informed }
}

export function openHttp2(t: TestContext, plane: Plane, serverName = 'a.test'): ClientHttp2Session {
  const session = connectHttp2(`https://127.0.0.1:${plane.httpsPort}`, { ...trust, servername: serverName, ...roomy })
  session.on('error', () => {})
  t.after(() => session.destroy())
  return session
}

async function askHttp2(t: TestContext, plane: Plane, asked: Ask): Promise<Answer> {
  const session = openHttp2(t, plane, asked.serverName ?? asked.host)
  try {
    return await askOver(session, asked)
  } finally {
    session.close()
  }
}

/** Asks over an existing connection. */
export async function askOver(session: ClientHttp2Session, asked: Ask): Promise<Answer> {
  const { host = 'a.test', method = 'GET', path = '/', headers = {}, body } = asked
  const pseudo: OutgoingHttpHeaders = { ':method': method, ':path': path, ':authority': host }
  const stream = session.request({ ...pseudo, ...headers }, { endStream: body === undefined })
  const informed: Answer['informed'][number][] = []
  let trailers: Answer['trailers'] = {}
  stream.on('headers', (given) => informed.push({ status: Number(given[':status']), headers: given }))
  stream.on('trailers', (given) => {
    // Without the symbol that Node adds.
    trailers = Object.fromEntries(Object.entries(given)) as Answer['trailers']
  })
  if (body !== undefined) stream.end(body)
  const gone = new AbortController()
  stream.on('close', () => gone.abort(new Error('the stream closed without an answer')))
  const [given] = (await once(stream, 'response', { signal: gone.signal })) as [
    Record<string, string | string[] | undefined>,
  ]
  const bytes = await buffer(stream)
  if (!stream.closed) await once(stream, 'close')
  const { ':status': status, ...rest } = given
  return { status: Number(status), headers: rest, body: bytes, text: bytes.toString(), trailers, informed }
}

/** A request whose answer is read by the test. */
export async function open(
  t: TestContext,
  plane: Plane,
  version: Version,
  {
    method = 'GET',
    path = '/',
    isLeftOpen = false,
    body,
  }: { method?: string; path?: string; isLeftOpen?: boolean; body?: Buffer } = {},
) {
  if (version === '1.1') {
    const asking = beginPlain(plane, method, path)
    if (isLeftOpen) asking.write('some')
    else asking.end(body)
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    response.on('error', () => {})
    const headers: Record<string, unknown> = { ...response.headers, status: response.statusCode }
    return { response: headers, data: response, close: () => cut(asking) }
  }
  const session = openHttp2(t, plane)
  const stream = session.request(
    { ':method': method, ':path': path, ':authority': 'a.test' },
    { endStream: !isLeftOpen && !body },
  )
  stream.on('error', () => {})
  if (isLeftOpen) stream.write('some')
  else if (body) stream.end(body)
  const [given] = (await once(stream, 'response')) as [Record<string, unknown>]
  const headers: Record<string, unknown> = { ...given, status: given[':status'] }
  return { response: headers, data: stream, close: () => session.destroy() }
}

export function beginPlain(plane: Plane, method: string, path = '/'): ClientRequest {
  const to = { port: plane.httpPort, host: '127.0.0.1', agent: false as const, headers: { host: 'a.test' } }
  return requestPlain({ ...to, method, path }).on('error', () => {})
}

/** Closes both directions: a visitor that only ends its own may still wait for its answer. */
export function cut({ socket }: ClientRequest): void {
  if (socket) socketStream(socket).reset()
}
