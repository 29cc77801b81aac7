/** Services for agents, on free ports, which visitors reach in the end. They close with the test. */
import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from 'node:http'
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { portToKeep } from './free-port.ts'

/**
 * How many connections may wait until a busy test accepts them. Of a thousand at once, Node's 511 would drop the rest,
 * which would come back only after seconds.
 */
const BACKLOG = 2048

/** A test, or anything else that closes what was started for it. */
export interface Owner {
  after(close: () => unknown): void
}

export interface Upstream {
  readonly port: number
  /** `127.0.0.1:<port>`. */
  readonly address: string
}

/** What an upstream that echoes saw of a request. */
export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: string
}

/** An HTTP/1.1 service. Without a listener it answers each request with a JSON description of it. */
export async function httpUpstream(
  owner: Owner,
  listener: RequestListener = echo,
  onUpgrade?: (request: IncomingMessage, socket: Duplex) => void,
): Promise<Upstream> {
  const server = createHttpServer((request, response) => listener(request, response))
  if (onUpgrade) server.on('upgrade', onUpgrade)
  owner.after(() => server.closeAllConnections())
  return listening(owner, server)
}

/** A service with unencrypted HTTP/2 and prior knowledge. */
export async function http2Upstream(
  owner: Owner,
  onStream: (stream: ServerHttp2Stream, headers: Record<string, unknown>) => void,
): Promise<Upstream> {
  const server = createHttp2Server()
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    onStream(stream, headers)
  })
  server.on('sessionError', () => {})
  return listening(owner, server)
}

/** A plain TCP service; its sockets may be half open. Without a listener it echoes. */
export async function tcpUpstream(owner: Owner, onSocket: (socket: Socket) => void = echoBytes): Promise<Upstream> {
  const server = createTcpServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    onSocket(socket)
  })
  return listening(owner, server)
}

/** A TLS service. Without a listener it echoes. */
export async function tlsUpstream(
  owner: Owner,
  options: TlsOptions,
  onSocket: (socket: Socket) => void = echoBytes,
): Promise<Upstream> {
  const server = createTlsServer({ allowHalfOpen: true, ...options }, (socket) => {
    socket.on('error', () => {})
    onSocket(socket)
  })
  server.on('tlsClientError', () => {})
  return listening(owner, server)
}

/** An address on which nothing listens. */
export async function nobody(): Promise<Upstream> {
  const port = await portToKeep()
  return { port, address: `127.0.0.1:${port}` }
}

async function listening(owner: Owner, server: Server): Promise<Upstream> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen({ port: 0, host: '127.0.0.1', backlog: BACKLOG })
  await once(server, 'listening')
  owner.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  const { port } = server.address() as AddressInfo
  return { port, address: `127.0.0.1:${port}` }
}

function echo(request: IncomingMessage, response: Parameters<RequestListener>[1]): void {
  const { method = '', url = '', headers } = request
  void buffer(request).then(
    (body) => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ method, url, headers, body: body.toString() }))
    },
    () => response.destroy(),
  )
}

function echoBytes(socket: Socket): void {
  socket.pipe(socket)
}
