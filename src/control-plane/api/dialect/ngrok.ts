/** The dialect of ngrok's clients, chosen by their version header. */
import type { IncomingMessage } from 'node:http'
import type { ApiRoute } from '../routes.ts'
import type { Dialect } from './api-dialect.ts'
import { readBody } from './ngrok-bodies.ts'
import { numberOf } from './ngrok-numbers.ts'
import { own } from './own.ts'

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

/** The answer to a call of `route`, or each item of its list, as ngrok's clients read it. */
function spelled({ resource, action }: Pick<ApiRoute, 'resource' | 'action'>, answer: Json): Json {
  const spell = spellings[resource.kind]
  if (!spell) return answer
  const items = action === 'list' ? answer[resource.listKey ?? ''] : undefined
  return Array.isArray(items) ? { ...answer, [resource.listKey ?? '']: items.map(spell) } : spell(answer)
}

/** By kind of resource. */
const spellings: Readonly<Record<string, (item: Json) => Json>> = {
  tunnel_session: (session) => ({
    ...session,
    transport: session.transport === 'service/v2' ? 'ngrok/v2' : session.transport,
  }),
  // As the hosted service answers, whose names have no region; with another value each Terraform plan shows changes.
  reserved_domain: (domain) => ({ ...domain, region: '' }),
  endpoint: (endpoint) => ({ ...endpoint, ...partsOf(endpoint) }),
}

/** The parts of an endpoint's address, which newer clients read one by one. */
function partsOf({ public_url, proto, hostport }: Json) {
  const text = String(hostport)
  const colon = text.lastIndexOf(':')
  return {
    url: public_url,
    scheme: proto,
    host: text.slice(0, colon),
    port: Number(text.slice(colon + 1)),
  }
}

/**
 * Which dialect a request speaks: its version header says so. D14a: with both version headers the vendor's decides, whatever
 * it says; errors about it are spelled its way too.
 */
export function dialectOf({ headers }: Pick<IncomingMessage, 'headers'>): Dialect {
  return headers['ngrok-version'] === undefined ? own : ngrok
}
