/** Mounts the dashboard: its files, and the sign-in that keeps an API key in a cookie. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { timestamp } from '../../lib/clock.ts'
import { check } from '../../lib/shape/check.ts'
import { closedObject } from '../../lib/shape/schema.ts'
import { Type } from '../../lib/shape/type.ts'
import { Refusal } from '../../model/errors.ts'
import type { ApiAuthentication } from './authenticate.ts'
import { parseBody } from './body.ts'
import { checkHost } from './host.ts'
import type { PageFiles } from './page-files.ts'
import type { PageSessions } from './page-session.ts'

export interface DashboardOptions extends Pick<ApiAuthentication, 'authenticate' | 'admits'> {
  readonly pageSessions: PageSessions
  /** Undefined when the page was not built. */
  readonly pageFiles: PageFiles | undefined
}

const page = { config: { isPublic: true, isPage: true } } as const

const signInForm = closedObject({ api_key: Type.String({ minLength: 1, maxBytes: 255, description: 'An API key.' }) })

export function mountDashboard(app: FastifyInstance, options: DashboardOptions): void {
  const { pageSessions, pageFiles, authenticate, admits } = options

  app.get('/page/:file', page, async (request, reply) => {
    // Fastify gives path parameters as decoded strings.
    const { file } = request.params as { readonly file: string }
    if (!(await pageFiles?.send(request, reply, file))) throw new Refusal('ROUTE_NOT_FOUND')
    return reply
  })

  // Never a 401: for the page, not being signed in is not an error.
  app.get('/page/session', page, async (request, reply) => {
    checkHost(request.raw)
    const session = await pageSessions.sessionOf(request.raw)
    const principal = session && (await authenticate(session.key))
    if (!session || !principal) return answer(reply, { session: null })
    return answer(reply, { session: showCaller(principal, session.until) })
  })

  app.post('/page/session', page, async (request, reply) => {
    const origin = ownPage(request)
    const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
    const body = await parseBody(bytes, request.raw.headersDistinct['content-type']?.[0])
    const { api_key: key } = check(signInForm, body) as { readonly api_key: string }
    const principal = await authenticate(key)
    if (!principal)
      throw new Refusal('UNAUTHENTICATED', 'no such API key, or its owner is inactive', { field: 'api_key' })
    // The page calls the API, so an address that may not reach the API cannot sign in.
    if (!(await admits('api', request.socket.remoteAddress ?? ''))) throw new Refusal('IP_NOT_ALLOWED')
    const { cookie, secret, until } = pageSessions.begin(key, origin)
    request.log.info({ operation: request.id, key: principal.keyId, peer: request.ip }, 'signed in to the page')
    return answer(reply.header('set-cookie', cookie), { session: showCaller(principal, until), secret })
  })

  app.delete('/page/session', page, async (request, reply) => {
    const cookie = await pageSessions.end(request.raw, ownPage(request))
    return reply.header('set-cookie', cookie).code(204).send()
  })

  function ownPage(request: FastifyRequest): string {
    checkHost(request.raw)
    const origin = pageSessions.ownPage(request.raw)
    if (origin === undefined) throw new Refusal('PAGE_NOT_HERE')
    return origin
  }
}

function showCaller(
  { id, role, keyId }: NonNullable<Awaited<ReturnType<ApiAuthentication['authenticate']>>>,
  until: number,
) {
  return { user_id: id, role, key_id: keyId, expires_at: timestamp(until) }
}

function answer(reply: FastifyReply, body: unknown): FastifyReply {
  return reply.header('cache-control', 'no-store').type('application/json').send(JSON.stringify(body))
}
