/** `http-request`: calls another service, and lets the rules that follow read its answer. */

import { type Fetch, type FetchAnswer, FetchFault, type FetchRequest } from '../../../../lib/http/outbound-fetch.ts'
import { defineAction } from '../action.ts'
import { BudgetSpent } from '../budget.ts'
import { readDuration } from '../duration.ts'
import type { Evaluate } from '../evaluator.ts'
import { TooMuchToRead } from '../http-values.ts'
import type { Attempt, Moment } from '../moment.ts'
import { compileHeaders, mapOf } from '../phase-settings.ts'
import type { PolicyRequest, Verdict } from '../policy-traffic.ts'
import { checkHttpRequest, httpRequestForm } from '../request-parts.ts'

/** The most bytes of an answer that rules can read. */
const MAX_ANSWER_BYTES = 256 * 1024

const MAX_RETRIES = 3

/** The price of an attempt in steps, and how many bytes of its answer cost one. */
const CALL_STEPS = 20_000
const BYTES_A_STEP = 2

/** The most requests of one action at the same time; each may last as long as its timeout allows. */
const MAX_UNDER_WAY = 100

/** How many times a request may pass through our own `http-request` actions before we treat it as a loop. */
const MAX_HOPS = 3

/** Our name in `CDN-Loop` (RFC 8586). */
const OWN_NAME = 'postern'

export const httpRequest = defineAction({
  phases: ['request', 'response'],
  // The called service decides who is let in: by `on_error: halt`, or by rules that read its answer.
  guards: true,
  sources: {
    url: 'template',
    query_params: 'template',
    headers: 'template',
    body: 'template',
    retry_condition: 'retry',
  },
  config: httpRequestForm,
  refine: checkHttpRequest,
  compile: (config, { template, retryExpression, tools }) => {
    const { method, max_redirects: maxRedirects, on_error } = config
    const url = template(config.url)
    const params = config.query_params.map(({ key, value }) => [template(key), template(value)] as const)
    const headers = compileHeaders(config.headers ?? {}, template)
    const body = config.body === undefined ? undefined : template(config.body)
    const isWanted = config.retry_condition === undefined ? undefined : retryExpression(config.retry_condition)
    const timeoutMs = readDuration(config.timeout) * 1000
    const mayFollow = maxRedirects > 0 && body === undefined && (method === 'GET' || method === 'OPTIONS')
    let underWay = 0

    return {
      async run(moment) {
        const request = moment.ownRequest
        // Refused whatever `on_error` says: otherwise visitors could skip this action by sending a `CDN-Loop` header.
        if (hopsOf(request) >= MAX_HOPS) return { refuse: 'POLICY_REQUEST_LOOP' }
        if (underWay >= MAX_UNDER_WAY) return { refuse: 'SERVER_BUSY', headers: [['Retry-After', '5']] }
        moment.budget.call()
        underWay++
        try {
          return await ask(moment, request)
        } finally {
          underWay--
        }
      },
    }

    async function ask(moment: Moment, request: PolicyRequest): Promise<Verdict | undefined> {
      const sent = fill(moment, request)
      const endsAt = tools.now() + timeoutMs
      const tries: Try[] = []
      moment.attempts = []
      do {
        const startedAt = tools.now()
        moment.budget.charge(CALL_STEPS)
        const answer = await attempt(tools.fetch, sent, Math.max(1, endsAt - startedAt))
        if (!(answer instanceof FetchFault)) moment.budget.charge(answer.body.length / BYTES_A_STEP)
        const text = answer instanceof FetchFault ? '' : answer.body.toString('utf8')
        tries.push({ answer, text, millis: tools.now() - startedAt })
        moment.attempts = [...moment.attempts, attemptOf(sent, answer, text)]
      } while (tries.length <= MAX_RETRIES && tools.now() < endsAt && isRetried(isWanted, moment))
      moment.results.set('http_request', resultOf(sent, tries))
      const last = tries.at(-1)?.answer
      if (!(last instanceof FetchFault)) return undefined
      const { edgeId, routeId } = request
      tools.log.info({ edge: edgeId, route: routeId, reason: last.message }, 'policy request failed')
      return on_error === 'halt' ? { refuse: 'POLICY_REQUEST_FAILED' } : undefined
    }

    function fill(moment: Moment, request: PolicyRequest): Sent {
      return {
        url: withParams(
          url.text(moment),
          params.map(([key, value]) => [key.text(moment), value.text(moment)]),
        ),
        method,
        headers: {
          ...Object.fromEntries(headers(moment)),
          'x-forwarded-for': request.peer.ip,
          'cdn-loop': [...request.headers.all('cdn-loop'), OWN_NAME].join(', '),
        },
        ...(body && { body: body.text(moment) }),
        followsRedirects: mayFollow,
        maxRedirects,
        maxBytes: MAX_ANSWER_BYTES,
      }
    }
  },
})

interface Sent extends FetchRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

interface Try {
  readonly answer: FetchAnswer | FetchFault
  /** The body of the answer. */
  readonly text: string
  readonly millis: number
}

/** How many times our name is in `CDN-Loop`, the header that lists the proxies a request went through. */
function hopsOf({ headers }: PolicyRequest): number {
  const names = headers.all('cdn-loop').flatMap((value) => value.split(','))
  return names.filter((each) => each.split(';', 1)[0]?.trim().toLowerCase() === OWN_NAME).length
}

function withParams(text: string, params: readonly (readonly [string, string])[]): string {
  const url = URL.parse(text)
  // `fetch` refuses it, and says what is wrong with it.
  if (!url) return text
  for (const [key, value] of params) url.searchParams.append(key, value)
  return url.href
}

async function attempt(fetch: Fetch, { url, ...request }: Sent, timeoutMs: number): Promise<FetchAnswer | FetchFault> {
  try {
    return await fetch(url, { ...request, timeoutMs })
  } catch (error) {
    if (error instanceof FetchFault) return error
    throw error
  }
}

/** A condition that fails, such as by reading a field that is absent, counts as false: no retry. */
function isRetried(isWanted: Evaluate | undefined, moment: Moment): boolean {
  try {
    return isWanted?.(moment) === true
  } catch (error) {
    if (error instanceof BudgetSpent || error instanceof TooMuchToRead) throw error
    return false
  }
}

function attemptOf(sent: Sent, answer: FetchAnswer | FetchFault, body: string): Attempt {
  const req = requestOf(sent)
  if (answer instanceof FetchFault) return { req, error: answer.message }
  const res = { ...answerOf(answer), statusCode: BigInt(answer.status), body }
  return { req, res: mapOf(res) }
}

/** as the vendor documents it: `actions.ngrok.http_request`. */
function resultOf(sent: Sent, tries: readonly Try[]): ReadonlyMap<string, unknown> {
  const attempts = tries.map(({ answer, millis }) => {
    const { header, status_code, resolved_ip } = answer instanceof FetchFault ? noAnswer : answerOf(answer)
    return mapOf({
      response_header: header,
      response_status_code: status_code,
      response_time_ms: String(millis),
      resolved_ip,
    })
  })
  const last = tries.at(-1)
  const req = requestOf(sent)
  if (!last || last.answer instanceof FetchFault) {
    const { reason = 'unreachable', message = '' } = last?.answer instanceof FetchFault ? last.answer : {}
    return mapOf({ attempts, req, error: mapOf({ code: reason, message }) })
  }
  const res = mapOf({ ...answerOf(last.answer), time_ms: String(last.millis), body: last.text })
  return mapOf({ attempts, req, res })
}

const noAnswer = { header: new Map<string, unknown>(), status_code: 0n, resolved_ip: '' }

function requestOf({ method, headers, url, body = '' }: Sent): ReadonlyMap<string, unknown> {
  return mapOf({ method, header: new Map(Object.entries(headers).map(([name, value]) => [name, [value]])), url, body })
}

function answerOf({ headers, status, address = '' }: FetchAnswer) {
  const header = new Map<string, string[]>()
  for (const [name, value] of headers) header.set(name, [...(header.get(name) ?? []), value])
  return { header, status_code: BigInt(status), resolved_ip: address }
}
