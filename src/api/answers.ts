/** Errors as the API answers them: one body for all, whatever went wrong. */
import type { FastifyReply } from 'fastify'
import { type ErrorCode, errors, Refusal } from '../model/errors.ts'
import { refusalOf } from './body.ts'

export const OPERATION_HEADER = 'service-operation-id'

/** The body of an error; `details` holds strings only, since some clients read nothing else. */
export function errorBody(code: ErrorCode, msg: string, operationId: string) {
  return { error_code: `ERR_${code}`, status_code: errors[code].status, msg, details: { operation_id: operationId } }
}

/** Answers `error`. What was not meant is logged with its cause and answered without it. */
export async function answerError(error: unknown, reply: FastifyReply): Promise<FastifyReply> {
  const refusal = meant(error)
  if (refusal.status >= 500)
    reply.log.error({ err: refusal.cause ?? refusal, operation: reply.request.id }, 'request failed')
  const { code, status, headers, message } = refusal
  return reply
    .code(status)
    .headers(headers)
    .type('application/json')
    .send(JSON.stringify(errorBody(code, message, reply.request.id)))
}

function meant(error: unknown): Refusal {
  const known = refusalOf(error)
  if (known instanceof Refusal) return known
  const code = known instanceof Error && 'code' in known ? frameworkErrors.get(String(known.code)) : undefined
  return code ? new Refusal(code, undefined, { cause: known }) : new Refusal('INTERNAL', undefined, { cause: known })
}

/** What Fastify itself refuses before a handler runs. */
const frameworkErrors = new Map<string, ErrorCode>([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 'BODY_TOO_LARGE'],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 'BAD_REQUEST'],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 'BODY_TYPE'],
  ['ECONNRESET', 'BAD_REQUEST'],
])
