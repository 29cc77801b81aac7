/** Answers requests that Node's HTTP parser refuses: with our error body, after the answers to earlier requests. */
import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import type { IdSource } from '../../lib/ids.ts'
import { type ErrorCode, Refusal } from '../../model/errors.ts'
import { errorBody } from './answers.ts'
import { own } from './dialect/own.ts'

/** How long a refused peer may take to read the answer; closing at once would reset the connection and lose it. */
const LINGER_MS = 1000

/** Makes `server` answer with our error body where Node would send none, or no answer at all. */
export function guardConnections(
  server: Server,
  { ids, log }: { readonly ids: IdSource; readonly log: FastifyBaseLogger },
): void {
  /** Responses that are not finished, in the order of their requests. */
  const open = new WeakMap<Socket, Set<ServerResponse>>()
  const doomed = new WeakSet<Socket>()

  // A client may end its side after the request and still read; Node would then close before the answer is written.
  Object.assign(server, { httpAllowHalfOpen: true })
  // RFC 9110 §10.1.1: a server may ignore an expectation that it does not know.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.prependListener('request', (request, response) => {
    const all = open.get(request.socket) ?? new Set()
    open.set(request.socket, all)
    all.add(response)
    response.once('close', () => all.delete(response))
  })

  const refuse = (socket: Socket, code: ErrorCode, reason: string): void => {
    if (!socket.writable) {
      socket.destroy()
      return
    }
    const operationId = ids.next('op_')
    const refusal = new Refusal(code)
    const { status } = refusal
    log.info({ operation: operationId, status, peer: socket.remoteAddress, reason }, 'api request refused')
    socket.end(answer(refusal, operationId))
    const timer = setTimeout(() => socket.destroy(), LINGER_MS).unref()
    socket.once('close', () => clearTimeout(timer))
  }

  server.on('connect', (_request, socket: Socket) => {
    socket.on('error', () => {})
    refuse(socket, 'BAD_REQUEST', 'CONNECT')
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === 'ECONNRESET') {
      socket.destroy()
      return
    }
    // Further bytes cause the same error again.
    if (doomed.has(socket)) return
    doomed.add(socket)
    const code = parserErrors.get(error.code ?? '') ?? 'BAD_REQUEST'
    // Complete requests before the bad one must be answered first, or the client would take this answer for theirs.
    const ahead = [...(open.get(socket) ?? [])].filter(({ req }) => req.complete)
    const last = ahead.at(-1)
    if (!last || code === 'REQUEST_TIMEOUT') return refuse(socket, code, error.code ?? '')
    last.once('close', () => refuse(socket, code, error.code ?? ''))
  })
}

/** In our own dialect: the request cannot be parsed, so the header that selects another cannot be read. */
function answer(refusal: Refusal, operationId: string): string {
  const body = JSON.stringify(errorBody(refusal, operationId, own))
  const head = [
    `HTTP/1.1 ${refusal.status} Refused`,
    'content-type: application/json',
    ...own.operationHeaders.map((name) => `${name}: ${operationId}`),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

const parserErrors = new Map<string, ErrorCode>([
  ['HPE_HEADER_OVERFLOW', 'HEADERS_TOO_LARGE'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'REQUEST_TIMEOUT'],
])
