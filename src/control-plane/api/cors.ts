/** CORS: any page may call the API with its own key, since browsers send no credentials by themselves (D13). */
import type { FastifyReply, FastifyRequest } from 'fastify'

const MAX_AGE_SECONDS = 600
const MAX_ECHOED_HEADERS = 2048

/** The header that says whether a write is in force. */
export const IN_FORCE = 'service-in-force'

/** Lets the calling page read the answer. */
export function allowOrigin(request: FastifyRequest, reply: FastifyReply): void {
  const { origin } = request.headers
  if (origin === undefined) return
  reply.header('access-control-allow-origin', origin)
  reply.header(
    'access-control-expose-headers',
    [...request.dialect.operationHeaders, IN_FORCE, 'retry-after'].join(', '),
  )
  reply.header('vary', 'origin')
}

/** Whether a request is a CORS preflight. */
export function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers.origin !== undefined && headers['access-control-request-method'] !== undefined
}

/** Answers a preflight for a path that allows `methods`. */
export function answerPreflight(
  request: FastifyRequest,
  reply: FastifyReply,
  methods: readonly string[],
): FastifyReply {
  const asked = request.headers['access-control-request-headers'] ?? ''
  if (asked !== '' && asked.length <= MAX_ECHOED_HEADERS) reply.header('access-control-allow-headers', asked)
  return reply
    .header('access-control-allow-methods', methods.join(', '))
    .header('access-control-max-age', String(MAX_AGE_SECONDS))
    .code(204)
    .send()
}
