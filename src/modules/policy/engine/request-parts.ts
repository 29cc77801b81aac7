/** The settings of `http-request`: the request, its retries, and what happens when there is no answer. */
import type { Static } from 'typebox'
import { FETCH_MAX_REDIRECTS, FETCH_TIMEOUT_MS } from '../../../lib/http/outbound-fetch.ts'
import { Type } from '../../../lib/shape/type.ts'
import { checkHeaders } from '../../../model/header-rules.ts'
import { badSetting, checkDuration, closedObject, duration, headerMap, text } from './phase-settings.ts'
import { isTrustworthyUrl } from './trustworthy-url.ts'

const MAX_BODY_BYTES = 64 * 1024

/** Methods with which a body is sent. */
const withBody: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE'])

const parameter = closedObject({
  key: text(128, 'Name of the parameter.'),
  value: Type.String({ maxBytes: 8192, description: 'Its value.' }),
})

export const httpRequestForm = closedObject({
  url: text(4096, 'The URL to call; https, or http to this machine.'),
  method: Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], {
    default: 'GET',
    description: 'The method of the request.',
  }),
  query_params: Type.Array(parameter, {
    default: [],
    maxItems: 32,
    description: 'Parameters to add to the query of the URL.',
  }),
  headers: Type.Optional(headerMap('Headers of the request, by name.')),
  body: Type.Optional(
    Type.String({ maxBytes: MAX_BODY_BYTES, description: 'Body of the request; with POST, PUT, PATCH and DELETE.' }),
  ),
  max_redirects: Type.Integer({
    default: FETCH_MAX_REDIRECTS,
    minimum: 0,
    maximum: FETCH_MAX_REDIRECTS,
    description: 'Redirects to follow, with GET and OPTIONS; with 0 the redirect itself is the answer.',
  }),
  timeout: duration(
    '3s',
    `Time for all attempts together, 1s to 30s; each takes at most ${FETCH_TIMEOUT_MS / 1000} seconds.`,
  ),
  retry_condition: Type.Optional(
    text(
      4096,
      'CEL that decides after an attempt whether to try again, up to 3 times: it reads `attempts`, `last_attempt.req`, `last_attempt.res` and `last_attempt.error`.',
    ),
  ),
  on_error: Type.Enum(['continue', 'halt'], {
    default: 'continue',
    description: 'What happens when there is no answer: `continue` goes on, `halt` lets nothing pass.',
  }),
})

type HttpRequest = Static<typeof httpRequestForm>

/** Throws `BadValue` for what the form cannot express. */
export function checkHttpRequest({ url, method, headers = {}, body, timeout }: HttpRequest, at: string): void {
  // A URL with `${…}` is checked when the request is sent.
  if (!url.includes('${') && !isTrustworthyUrl(url)) {
    throw badSetting(`${at}.url`, 'must be an https URL without a password; http is for loopback addresses only')
  }
  if (body !== undefined && !withBody.has(method)) {
    throw badSetting(`${at}.body`, `cannot go with \`${method}\`; use POST, PUT, PATCH or DELETE`)
  }
  checkDuration(timeout, `${at}.timeout`, { least: '1s', most: '30s' })
  checkHeaders(`${at}.headers`, headers)
  for (const name of Object.keys(headers)) {
    if (ownHeaders.has(name.toLowerCase())) {
      throw badSetting(
        `${at}.headers[${JSON.stringify(name)}]`,
        'is a header that the server writes itself; leave it out',
      )
    }
  }
}

/** Headers that only the server sets: they say where the request goes and on whose behalf. */
const ownHeaders: ReadonlySet<string> = new Set(['host', 'cdn-loop', 'x-forwarded-for', 'accept-encoding'])
