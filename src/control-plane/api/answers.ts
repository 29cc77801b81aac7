/** Turns every error into the one error body of the API. */
import type { FastifyReply } from 'fastify'
import { type ErrorCode, Refusal } from '../../model/errors.ts'
import { refusalOf } from './body.ts'
import type { Dialect } from './dialect/api-dialect.ts'
import { readRest } from './read-rest.ts'
import type { ApiRoute } from './routes.ts'

/** The body of an error; `details` holds strings only, since some clients read nothing else. */
export function errorBody(refusal: Refusal, operationId: string, dialect: Dialect, route?: ApiRoute) {
  return {
    error_code: dialect.errorCode(refusal, route),
    status_code: refusal.status,
    msg: refusal.message,
    details: { operation_id: operationId, ...(refusal.field !== '' && { field: refusal.field }) },
  }
}

/** Answers `error`. An unexpected one is logged with its cause; the caller does not see the cause. */
export async function answerError(error: unknown, reply: FastifyReply): Promise<FastifyReply> {
  const refusal = toRefusal(error)
  // Refusals at a cap are not logged here: the caps log one line a minute.
  if (refusal.status >= 500 && refusal.code !== 'SERVER_BUSY')
    reply.log.error({ err: refusal.cause ?? refusal, operation: reply.request.id }, 'request failed')
  const { dialect, id, routeOptions } = reply.request
  if (refusal.code === 'BODY_TOO_LARGE') {
    reply.header('connection', 'close')
    readRest(reply.request.raw)
  }
  return reply
    .code(refusal.status)
    .headers(refusal.headers)
    .type('application/json')
    .send(JSON.stringify(errorBody(refusal, id, dialect, routeOptions.config.route)))
}

function toRefusal(error: unknown): Refusal {
  const known = refusalOf(error)
  if (known instanceof Refusal) return known
  const code = known instanceof Error && 'code' in known ? frameworkErrors.get(String(known.code)) : undefined
  return code ? new Refusal(code, undefined, { cause: known }) : new Refusal('INTERNAL', undefined, { cause: known })
}

/** Errors of Fastify itself, before a handler runs. */
const frameworkErrors = new Map<string, ErrorCode>([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 'BODY_TOO_LARGE'],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 'BAD_REQUEST'],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'BODY_TYPE'],
  ['ECONNRESET', 'BAD_REQUEST'],
])
