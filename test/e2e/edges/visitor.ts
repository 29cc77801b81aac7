/** A visitor of an edge over HTTP/1.1 or HTTP/2, with any source address and TLS options. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect as connectTcp, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls'
import { trustedContext } from '../../support/trusted-context.ts'
import { parseResponses, type StrictField, type StrictResponse } from './strict-http.ts'

export type HttpVersion = '1.1' | '2'

export const versions: readonly HttpVersion[] = ['1.1', '2']

/** How to reach an edge. */
export interface EdgeEntry {
  /** The name in the handshake. */
  readonly name: string
  readonly port: number
  /** PEM. */
  readonly ca: string
}

export interface Ask {
  readonly version?: HttpVersion
  readonly method?: string
  readonly path?: string
  /** `Host` or `:authority`; defaults to the name of the door. */
  readonly host?: string
  /** Several values of one name become several lines. */
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly trailers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** The visitor's own address. */
  readonly from?: string
  /** An existing connection to start TLS on, instead of a new one. */
  readonly below?: Socket
  readonly tls?: ConnectionOptions
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly trailers: Readonly<Record<string, string | string[] | undefined>>
  /** Statuses and headers of interim answers. */
  readonly interim: readonly { readonly status: number; readonly headers: Readonly<Record<string, unknown>> }[]
  readonly body: Buffer
  readonly text: string
  /** The error code of the edge; undefined when there is none. */
  readonly code: string | undefined
}

/** Sends a request on a new connection, and reads the whole answer. */
export async function ask(listener: EdgeEntry, about: Ask = {}): Promise<Answer> {
  const socket = dial(listener, about)
  try {
    if (about.version === '2') {
      const session = http2Over(socket, listener)
      try {
        return await askHttp2(session, listener, about)
      } finally {
        session.destroy()
      }
    }
    return await askHttp1(socket, listener, about)
  } finally {
    socket.destroy()
  }
}

/** Starts a connection; errors reach the code that waits for something on it. */
export function dial({ name, port, ca }: EdgeEntry, { version = '1.1', from, tls, below: given }: Ask = {}): TLSSocket {
  const own = { host: hostFor(from), port, ...(from !== undefined && { localAddress: from }) }
  const below = given ?? connectTcp(own)
  // The TLS socket reports these errors too.
  below.on('error', () => {})
  const protocols = [version === '2' ? 'h2' : 'http/1.1']
  const trust =
    tls && Object.keys(tls).some((option) => option !== 'session') ? { ca } : { secureContext: trustedContext(ca) }
  const socket = connectTls({ socket: below, servername: name, ...trust, ALPNProtocols: protocols, ...tls })
  socket.on('error', () => {})
  return socket
}

/** A connection after its TLS handshake. */
export async function dialled(listener: EdgeEntry, about: Ask = {}): Promise<TLSSocket> {
  const socket = dial(listener, about)
  await once(socket, 'secureConnect')
  return socket
}

/** Sends one HTTP/1.1 request on an open connection, which stays open. */
export async function askHttp1(socket: Socket, { name }: Pick<EdgeEntry, 'name'>, about: Ask = {}): Promise<Answer> {
  const { method = 'GET', path = '/', host = name, headers = {}, body = '', trailers } = about
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...pairs(headers).map((pair) => pair.join(': '))]
  const bytes = Buffer.from(body)
  if (trailers) lines.push('Transfer-Encoding: chunked')
  else if (about.body !== undefined) lines.push(`Content-Length: ${bytes.length}`)
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  if (trailers) socket.write(chunked(bytes, trailers))
  else if (bytes.length > 0) socket.write(bytes)
  return finalAnswer(await readResponses(socket, method))
}

/** The responses to one request, the final one last. Nothing may follow before the next request. */
function readResponses(socket: Socket, method: string): Promise<readonly StrictResponse[]> {
  const chunks: Buffer[] = []
  let total = 0
  let wanted = 0
  const read = (isEnded: boolean): readonly StrictResponse[] | undefined => {
    const bytes = Buffer.concat(chunks)
    const { messages, rest, reason, at } = parseResponses(bytes, { methods: [method], isEnded })
    const text = () => JSON.stringify(bytes.toString('latin1', 0, 2000))
    if (rest === 'malformed') throw new Error(`the answer is not HTTP: ${reason}: ${text()}`)
    if (messages.some(({ status }) => status >= 200 || status === 101)) return messages
    if (isEnded) throw new Error(`the connection closed after ${text()}`, { cause: socket.errored })
    // With a Content-Length, parsing can wait until the whole body is here.
    const [, length = '0'] = /\r\ncontent-length: *(\d+)\r\n/i.exec(bytes.toString('latin1', at, at + 8192)) ?? []
    wanted = Number(length)
    return undefined
  }
  return new Promise((resolve, reject) => {
    const look = (isEnded: boolean): void => {
      if (total < wanted && !isEnded) return
      try {
        const found = read(isEnded)
        if (!found) return
        resolve(found)
      } catch (error) {
        reject(error)
      }
      socket.off('data', onData).off('close', onClose)
    }
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk)
      total += chunk.length
      look(false)
    }
    const onClose = (): void => look(true)
    socket.on('data', onData).on('close', onClose)
    if (socket.closed) look(true)
  })
}

function finalAnswer(responses: readonly StrictResponse[]): Answer {
  const final = responses.at(-1)
  if (!final) throw new Error('no answer')
  const { status, fields, trailers, body } = final
  const interim = responses.slice(0, -1).map((each) => ({ status: each.status, headers: objectOf(each.fields) }))
  return answered({ status, headers: objectOf(fields), trailers: objectOf(trailers), interim, body })
}

function objectOf(fields: readonly StrictField[]): Record<string, string | string[]> {
  const byName = Map.groupBy(fields, ({ name }) => name)
  return Object.fromEntries(
    [...byName].map(([name, all]) => [name, all.length === 1 ? (all[0]?.value ?? '') : all.map(({ value }) => value)]),
  )
}

function chunked(body: Buffer, trailers: Readonly<Record<string, string>>): Buffer {
  const data = body.length > 0 ? [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')] : []
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.concat([...data, Buffer.from(`0\r\n${lines.join('')}\r\n`, 'latin1')])
}

/** HTTP/2 on an open connection. */
export function http2Over(socket: TLSSocket, { name }: Pick<EdgeEntry, 'name'>): ClientHttp2Session {
  // Tests send invalid requests on purpose.
  const options = { createConnection: () => socket, strictSingleValueFields: false }
  const session = connectHttp2(`https://${name}`, options)
  session.on('error', () => {})
  return session
}

/** Sends one request on a session, which may carry others. */
export async function askHttp2(
  session: ClientHttp2Session,
  { name }: Pick<EdgeEntry, 'name'>,
  about: Ask = {},
): Promise<Answer> {
  const { method = 'GET', path = '/', host = name, headers = {}, body, trailers: sent } = about
  const stream = session.request(
    { ':method': method, ':path': path, ':authority': host, ...headers },
    { endStream: body === undefined && !sent, waitForTrailers: sent !== undefined },
  )
  stream.on('error', () => {})
  if (sent) stream.on('wantTrailers', () => stream.sendTrailers(sent))
  if (body !== undefined || sent) stream.end(body)
  const interim: Answer['interim'][number][] = []
  let trailers: Answer['trailers'] = {}
  stream.on('headers', ({ ':status': status, ...rest }) => interim.push({ status: Number(status), headers: rest }))
  stream.on('trailers', (given) => {
    trailers = given
  })
  const closed = once(stream, 'close').then(() => {
    throw new Error('the stream closed without an answer')
  })
  const [given] = (await Promise.race([once(stream, 'response'), closed])) as [Answer['headers']]
  const bytes = await buffer(stream)
  if (stream.rstCode !== 0) throw new Error(`the answer was cut off: ${stream.rstCode}`)
  const { ':status': status, ...rest } = given
  return answered({ status: Number(status), headers: rest, trailers, interim, body: bytes })
}

/** Reads until `isEnough`, and returns everything that came. */
export async function readUntil(socket: Socket, isEnough: (text: string) => boolean): Promise<string> {
  let text = ''
  while (!isEnough(text)) {
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    text += chunk.toString('latin1')
  }
  return text
}

/** Everything that a visitor reads until the connection ends, with or without an error. */
export async function readToEnd(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve))
  return Buffer.concat(chunks)
}

function answered(parts: Omit<Answer, 'text' | 'code'>): Answer {
  const code = parts.headers['postern-error-code']
  return { ...parts, text: parts.body.toString(), code: typeof code === 'string' ? code : undefined }
}

function pairs(headers: NonNullable<Ask['headers']>): string[][] {
  return Object.entries(headers).flatMap(([name, values]) => [values].flat().map((value) => [name, value]))
}

function hostFor(from: string | undefined): string {
  return from?.includes(':') ? '::1' : '127.0.0.1'
}
