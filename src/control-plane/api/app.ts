/** The HTTP side of the API: one Fastify app that mounts the route table behind authentication. */
import type { IncomingMessage } from 'node:http'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerOptions,
  LogController,
} from 'fastify'
import { type IdSource, isId } from '../../lib/ids.ts'
import type { ConnectionCaps } from '../../lib/net/connection-caps.ts'
import { plainAddress } from '../../lib/net/ip-rules.ts'
import { Refusal } from '../../model/errors.ts'
import type { Principal } from '../records/find-caller.ts'
import { resourceOf } from '../resources/index.ts'
import type { Resource } from '../resources/resource.ts'
import { linksUnder } from '../resources/resource-links.ts'
import { answerError } from './answers.ts'
import { guardConnections } from './api-connections.ts'
import { type ApiAuthentication, enter, recognise } from './authenticate.ts'
import { MAX_BODY_BYTES, readBody } from './body.ts'
import { capConnections } from './caps.ts'
import { allowOrigin, answerPreflight, IN_FORCE, isPreflight } from './cors.ts'
import { type DashboardOptions, mountDashboard } from './dashboard.ts'
import type { Dialect } from './dialect/api-dialect.ts'
import { dialectOf } from './dialect/ngrok.ts'
import { sendFrontPage, wantsFrontPage } from './front-page.ts'
import { checkHost, originOf } from './host.ts'
import { jsonAnswer } from './json-answer.ts'
import { LargeAnswers } from './large-answers.ts'
import type { ApiMetrics } from './metrics.ts'
import { type Behind, perform } from './operations.ts'
import { INDEX } from './page-files.ts'
import { mountPublic, type PublicPages } from './public-pages.ts'
import { readQuery } from './query.ts'
import { type ApiRoute, isWrite, methodsAt, routeTable } from './routes.ts'

/** Long, since clients reuse connections: a POST on a connection that just closed would fail, and clients do not retry. */
const KEEP_ALIVE_MS = 75_000
/** From the first byte of a request to its last. */
const REQUEST_MS = 60_000
const HEADERS_MS = 15_000
/** As long as a request line can be: Fastify answers longer parameters itself, and before authentication. */
const MAX_PARAM = 16_384

/** Answered even at a cap: otherwise a flood would look like a dead process, and the server would be restarted. */
const probes: ReadonlySet<string | undefined> = new Set(['/healthz', '/readyz'])

/**
 * Keeps Fastify from loading its schema compilers, a hundred files that take a twentieth of a second at every start. No
 * route gives Fastify a schema, since `readBody` and `readQuery` check what comes in.
 */
const withoutSchemas: NonNullable<FastifyServerOptions['schemaController']> = {
  compilersFactory: { buildValidator: refuseSchema, buildSerializer: refuseSchema },
}

interface ApiOptions extends Omit<ApiAuthentication, 'pageKey'>, DashboardOptions, Behind, PublicPages {
  readonly ids: IdSource
  readonly metrics: ApiMetrics
  readonly log: FastifyBaseLogger
  /** Limits on connections and requests; none by default. */
  readonly caps?: ConnectionCaps
  /** Resolves with whether all that was written until now is in force. */
  readonly inForce: () => Promise<boolean>
  /** How callers reach the API; null when each caller's own Host says so. */
  readonly apiUrl: () => string | null
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal | null
    readonly dialect: Dialect
  }
  interface FastifyContextConfig {
    route?: ApiRoute
  }
}

export async function buildApi(options: ApiOptions): Promise<FastifyInstance> {
  const { ids, log, metrics, pageSessions, pageFiles } = options
  const pageKey: ApiAuthentication['pageKey'] = async (request) => (await pageSessions.sessionOf(request))?.key
  const authentication: ApiAuthentication = { ...options, pageKey }
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: () => ids.next('op_'),
    bodyLimit: MAX_BODY_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_MS,
    // Node would refuse a request without Host with its own answer; `checkHost` uses our error body.
    http: { headersTimeout: HEADERS_MS, requireHostHeader: false },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM, ignoreDuplicateSlashes: true, ignoreTrailingSlash: true },
    rewriteUrl: decodable,
    schemaController: withoutSchemas,
    // Switches off Fastify's own answer; `guardConnections` writes ours.
    clientErrorHandler: () => {},
  })
  guardConnections(app.server, options)
  const atCap = options.caps ? capConnections(app.server, options.caps) : () => undefined
  const turnedAway = new WeakSet<FastifyRequest>()

  // Bodies stay bytes here; `readBody` parses them by the schema of the route.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  app.decorateRequest('principal', null)
  app.decorateRequest('dialect', {
    getter() {
      return dialectOf(this.raw)
    },
  })
  app.setErrorHandler(async (error, _request, reply) => answerError(error, reply))

  const routes = routeTable()
  app.addHook('onRequest', async (request, reply) => {
    for (const name of request.dialect.operationHeaders) reply.header(name, request.id)
    const headers = atCap(request.raw)
    if (headers && !probes.has(request.routeOptions.url)) {
      turnedAway.add(request)
      throw new Refusal('SERVER_BUSY', undefined, { headers })
    }
    allowOrigin(request, reply)
    // Fastify would refuse unknown content types, but some routes accept any (D43), so it never sees the real one.
    request.raw.headers['content-type'] = 'application/octet-stream'
    const { isPublic } = request.routeOptions.config
    const isFrontPage = wantsFrontPage(request)
    const isPage = request.routeOptions.config.isPage || isFrontPage
    if (isPage && !(await options.admits('dashboard', request.socket.remoteAddress ?? '')))
      throw new Refusal('IP_NOT_ALLOWED')
    if (isFrontPage) return (await pageFiles?.send(request, reply, INDEX)) ?? sendFrontPage(reply)
    if (isPublic) return
    checkHost(request.raw)
    if (isPreflight(request)) return answerPreflight(request, reply, methodsAt(routes, request.url))
    request.principal = await enter(request.raw, authentication)
  })
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.served({ method: request.method, route, status: reply.statusCode, seconds: reply.elapsedTime / 1000 })
    // At debug level: probes, which come every few seconds, and refusals at a cap, which have one line a minute elsewhere.
    log[request.routeOptions.config.isPublic || turnedAway.has(request) ? 'debug' : 'info'](
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

  mountPublic(app, options, routes)
  mountDashboard(app, options)
  const behind = { ...options, authentication, largeAnswers: new LargeAnswers() }
  for (const route of routes) {
    app.route({
      method: route.method,
      url: route.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { route },
      handler: (request, reply) => serve(behind, route, request, reply),
    })
  }
  app.setNotFoundHandler((request) => {
    const allowed = methodsAt(routes, request.url)
    if (allowed.length === 0) throw new Refusal('ROUTE_NOT_FOUND')
    const allow = allowed.join(', ')
    throw new Refusal('METHOD_NOT_ALLOWED', `this path allows ${allow}`, { headers: { allow } })
  })
  return app
}

/** Serves one call: checks access, ids, query and body, and runs the operation. */
async function serve(
  options: ApiOptions & { readonly authentication: ApiAuthentication; readonly largeAnswers: LargeAnswers },
  route: ApiRoute,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { principal, dialect } = request
  if (!principal) throw new Error('the door let a request in without a principal')
  if (route.resource.access === 'admin' && principal.role !== 'admin') throw new Refusal('FORBIDDEN')

  // Fastify gives path parameters as decoded strings.
  const params = request.params as Readonly<Record<string, string>>
  const { resource } = route
  const parentId = resource.parent?.in === 'path' ? (params[resource.parent.field] ?? '') : null
  if (resource.parent && parentId !== null) requireId(resourceOf(resource.parent.kind), parentId)
  if (params.id !== undefined) requireId(resource, params.id)
  const page = readQuery(route, /\?.*/.exec(request.url)?.[0] ?? '', dialect)
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const contentType = request.raw.headersDistinct['content-type']?.[0]
  const body = await readBody(route, { bytes, contentType, params }, dialect)

  const links = linksUnder(options.apiUrl() ?? originOf(request.raw))
  if (route.events !== undefined) {
    reply.type('text/event-stream').header('cache-control', 'no-store')
    if (request.method === 'HEAD') return reply.send()
  }
  const given = await perform(options, {
    route,
    principal,
    ip: plainAddress(request.socket.remoteAddress ?? ''),
    recognise: () => recognise(request.raw, options.authentication),
    turn: () => options.largeAnswers.turn(principal.id, reply.raw),
    links,
    spellings: dialect.showsSpellings,
    target: { id: params.id ?? '', ...(parentId !== null && { parentId }) },
    parentId,
    page,
    body,
  })
  if (route.events !== undefined) return reply.send(given)
  if (isWrite(route)) {
    const isInForce = !prefersNotToWait(request, reply) && (await options.inForce())
    reply.header(IN_FORCE, isInForce ? 'yes' : 'pending')
  }
  const answer = dialect.answer(route, given, request.headers['user-agent'] ?? '')
  reply.code(route.status === 204 && answer !== undefined ? 200 : route.status)
  if (answer === undefined) return reply.send()
  const written = await jsonAnswer(answer)
  return reply.type('application/json').header('content-length', written.bytes).send(written.body)
}

/** RFC 7240 §4.1. */
function prefersNotToWait({ headers: { prefer } }: FastifyRequest, reply: FastifyReply): boolean {
  const preferences = [prefer ?? []].flat().flatMap((each) => each.split(','))
  if (!preferences.some((each) => /^\s*respond-async\s*(;|$)/i.test(each))) return false
  reply.header('preference-applied', 'respond-async')
  return true
}

/** D5: an id of the wrong form is answered like one that does not exist. */
function requireId({ noun, prefix }: Pick<Resource, 'noun' | 'prefix'>, id: string): void {
  if (!isId(id, prefix)) throw new Refusal('NOT_FOUND', `there is no ${noun} with this id`)
}

/** Replaces a path that cannot be decoded by an unknown one, so that it is authenticated like any other. */
function decodable(request: IncomingMessage): string {
  const url = request.url ?? '/'
  const path = url.split('?')[0] ?? ''
  // The router would cut off a fragment, but a request target has none (RFC 9112 §3.2).
  if (path.includes('#')) return '/not-decodable'
  try {
    decodeURI(path)
    return url
  } catch {
    return '/not-decodable'
  }
}

function refuseSchema(): never {
  throw new Error('schemas of routes are not for Fastify')
}
