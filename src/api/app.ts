/** The HTTP side of the API: one Fastify app that mounts the route table behind the door. */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import { linksUnder } from '../control/links.ts'
import type { Principal } from '../control/principal.ts'
import { type IdSource, isId } from '../lib/ids.ts'
import { type ErrorCode, errors, Refusal } from '../model/errors.ts'
import { resourceOf } from '../resources/index.ts'
import type { Resource } from '../resources/resource.ts'
import { answerError, errorBody, OPERATION_HEADER } from './answers.ts'
import { MAX_BODY_BYTES, readBody } from './body.ts'
import { allowOrigin, answerPreflight, isPreflight } from './cors.ts'
import { type Door, enter } from './door.ts'
import type { ApiMetrics } from './metrics.ts'
import { type Behind, perform } from './operations.ts'
import { methodsAt } from './paths.ts'
import { mountPublic, type PublicPages } from './public-pages.ts'
import { readQuery } from './query.ts'
import { type Route, routeTable } from './routes.ts'

/** Clients keep connections; one that closes under a POST would lose it, since none of them retries. */
const KEEP_ALIVE_MS = 75_000
/** From the first byte of a request to its last. */
const REQUEST_MS = 60_000
const HEADERS_MS = 15_000
/** Prefix and id, and nothing longer. */
const MAX_PARAM = 100

export interface ApiOptions extends Door, Behind, PublicPages {
  readonly ids: IdSource
  readonly metrics: ApiMetrics
  readonly log: FastifyBaseLogger
  /** How callers reach the API; null when each caller's own Host says so. */
  readonly apiUrl: string | null
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | null
  }
}

export async function buildApi(options: ApiOptions): Promise<FastifyInstance> {
  const { ids, log, metrics } = options
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => ids.next('op_'),
    bodyLimit: MAX_BODY_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    http: { headersTimeout: HEADERS_MS },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM, ignoreDuplicateSlashes: true, ignoreTrailingSlash: true },
    rewriteUrl: decodable,
    clientErrorHandler: (error, socket) => refuseConnection(error, socket, ids),
  })

  // Bytes are bytes until a route says what it takes.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.decorateRequest('principal', null)
  app.setErrorHandler(async (error, _request, reply) => answerError(error, reply))

  const routes = routeTable()
  app.addHook('onRequest', async (request, reply) => {
    reply.header(OPERATION_HEADER, request.id)
    allowOrigin(request, reply)
    if (request.routeOptions.config.isPublic) return
    if (isPreflight(request)) return answerPreflight(request, reply, methodsAt(routes, request.url))
    request.principal = await enter(request.raw, options)
  })
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.served({ method: request.method, route, status: reply.statusCode, seconds: reply.elapsedTime / 1000 })
    // Probes come every few seconds and say nothing.
    log[request.routeOptions.config.isPublic ? 'debug' : 'info'](
      {
        operation: request.id,
        method: request.method,
        route,
        status: reply.statusCode,
        ms: Math.round(reply.elapsedTime * 10) / 10,
        peer: request.ip,
        key: request.principal?.keyId,
      },
      'api request',
    )
  })

  await mountPublic(app, options, routes)
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      handler: (request, reply) => serve(options, route, request, reply),
    })
  }
  app.setNotFoundHandler((request) => {
    const allowed = methodsAt(routes, request.url)
    if (allowed.length === 0) throw new Refusal('ROUTE_NOT_FOUND')
    const allow = allowed.join(', ')
    throw new Refusal('METHOD_NOT_ALLOWED', `this address takes ${allow}`, { headers: { allow } })
  })
  return app
}

/** One call, from its parts on the wire to its answer. */
async function serve(
  options: ApiOptions,
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { principal } = request
  if (!principal) throw new Error('the door let a request in without a principal')
  if (route.resource.access === 'admin' && principal.role !== 'admin') throw new Refusal('FORBIDDEN')

  // Fastify decodes path parameters to strings.
  const params = request.params as Readonly<Record<string, string>>
  const { resource } = route
  const parentId = resource.parent?.in === 'path' ? (params[resource.parent.field] ?? '') : null
  if (resource.parent && parentId !== null) requireId(resourceOf(resource.parent.kind), parentId)
  if (params.id !== undefined) requireId(resource, params.id)
  const page = readQuery(route, request.url.split('?')[1] ?? '')
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const body = readBody(route, { bytes, contentType: request.headers['content-type'], params })

  const answer = await perform(options, {
    route,
    principal,
    links: linksUnder(options.apiUrl ?? originOf(request)),
    target: { id: params.id ?? '', ...(parentId !== null && { parentId }) },
    parentId,
    page,
    body,
  })
  reply.code(route.status)
  return answer === undefined ? reply.send() : reply.type('application/json').send(JSON.stringify(answer))
}

/** D5: an id of the wrong form is one that does not exist. */
function requireId({ noun, prefix }: Pick<Resource, 'noun' | 'prefix'>, id: string): void {
  if (!isId(id, prefix)) throw new Refusal('NOT_FOUND', `there is no ${noun} with this id`)
}

/** The caller's own origin, when its Host can be one; it ends up in every `uri` of the answer. */
function originOf({ headers, socket }: FastifyRequest): string {
  const { host } = headers
  if (host === undefined) return `http://${socket.localAddress}:${socket.localPort}`
  if (!/^([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$/i.test(host)) {
    throw new Refusal('BAD_REQUEST', 'the `Host` header is not a host name and port')
  }
  return `http://${host}`
}

/** A path that cannot be decoded names nothing; it goes through the door like any other unknown one. */
function decodable(request: IncomingMessage): string {
  const url = request.url ?? '/'
  try {
    decodeURI(url.split('?')[0] ?? '')
    return url
  } catch {
    return '/not-decodable'
  }
}

/** What Node's parser refuses never reaches a handler; it gets the same body, written by hand. */
function refuseConnection(error: NodeJS.ErrnoException, socket: Socket, ids: IdSource): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const code = parserErrors.get(error.code ?? '') ?? 'BAD_REQUEST'
  const { status, text } = errors[code]
  const operationId = ids.next('op_')
  const body = JSON.stringify(errorBody(code, text, operationId))
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n${OPERATION_HEADER}: ${operationId}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  )
}

const parserErrors = new Map<string, ErrorCode>([
  ['HPE_HEADER_OVERFLOW', 'HEADERS_TOO_LARGE'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'REQUEST_TIMEOUT'],
])
