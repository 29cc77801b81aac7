/** What HTTP itself refuses, before any handler: the same error body, written by hand and never ahead of its turn. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyBaseLogger } from 'fastify'
import type { IdSource } from '../lib/ids.ts'
import { type ErrorCode, Refusal } from '../model/errors.ts'
import { errorBody } from './answers.ts'
import { own } from './dialect/own.ts'

/** How long a refused peer has to read why; closing at once would reset what is still on its way. */
const LINGER_MS = 1000

/** A request that was handed to a handler, and its answer, not yet all written. */
interface Open {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Makes `server` answer what Node would answer without a body, or not at all. */
export function guardConnections(
  server: Server,
  { ids, log }: { readonly ids: IdSource; readonly log: FastifyBaseLogger },
): void {
  const open = new WeakMap<Socket, Set<Open>>()
  const doomed = new WeakSet<Socket>()

  // Who closes its side behind a request still reads; without this Node closes ours before the answer is written.
  Object.assign(server, { httpAllowHalfOpen: true })
  // RFC 9110 §10.1.1 lets a server pass over an expectation that it does not know.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.prependListener('request', (request, response) => {
    const all = open.get(request.socket) ?? new Set()
    open.set(request.socket, all)
    const one = { request, response }
    all.add(one)
    response.once('close', () => all.delete(one))
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
    // Each further byte is one more error.
    if (doomed.has(socket)) return
    doomed.add(socket)
    const code = parserErrors.get(error.code ?? '') ?? 'BAD_REQUEST'
    // Requests that came whole before the bad one are answered first, or their callers would read its answer as theirs.
    const ahead = [...(open.get(socket) ?? [])].filter(({ request }) => request.complete)
    const last = ahead.at(-1)
    if (!last || code === 'REQUEST_TIMEOUT') return refuse(socket, code, error.code ?? '')
    last.response.once('close', () => refuse(socket, code, error.code ?? ''))
  })
}

/** In our own dialect: what was sent cannot be read, so neither can the header that asks for another. */
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
