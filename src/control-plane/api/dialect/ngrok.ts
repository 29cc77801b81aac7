/** The dialect of ngrok's clients, chosen by their version header. */
import type { ApiRoute } from '../routes.ts'
import type { Dialect } from './api-dialect.ts'
import { spelled } from './ngrok-answers.ts'
import { readBody } from './ngrok-bodies.ts'
import { numberOf } from './ngrok-numbers.ts'

type Json = Readonly<Record<string, unknown>>

export const ngrok: Dialect = {
  operationHeaders: ['service-operation-id', 'ngrok-operation-id'],
  // The npm client writes the name as in its own code.
  queryAliases: new Map([['beforeId', 'before_id']]),
  ignoresEmptyQuery: true,
  errorCode: (refusal, route) => `ERR_NGROK_${numberOf(refusal, route)}`,
  readBody,
  // `traffic_policy` as well as `policy`: which of the two a client reads depends on its version.
  showsSpellings: true,
  answer(route, answer, userAgent) {
    if (answer === undefined) return breaksOnEmpty(route, userAgent) ? {} : undefined
    return spelled(route, answer as Json)
  },
}

/** The npm client parses the body of every answer, and the Python client treats a 204 to a command as a failure. */
function breaksOnEmpty({ action }: ApiRoute, userAgent: string): boolean {
  if (userAgent.startsWith('ngrok-api-typescript/')) return true
  return userAgent.startsWith('ngrok-api-python/') && action === 'command'
}
