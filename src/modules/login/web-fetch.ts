/** Adapts our `fetch` to the web's interface for libraries, so that all their requests obey D53. */
import type { Fetch } from '../../lib/http/outbound-fetch.ts'

interface WebRequest {
  readonly method?: string | undefined
  readonly headers?: ConstructorParameters<typeof Headers>[0]
  readonly body?: unknown
}

/** Rejects with `FetchFault`. */
export function webFetch(fetch: Fetch): (url: string, request: WebRequest) => Promise<Response> {
  return async (url, { method = 'GET', headers, body }) => {
    const answer = await fetch(url, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      ...(body !== undefined && body !== null && { body: textOf(body) }),
    })
    const { status } = answer
    // `Response` accepts no other status, and no caller could use one.
    if (status < 200 || status > 599) throw new Error(`an answer with the status ${status}`)
    const isBare = status === 204 || status === 205 || status === 304
    return new Response(isBare ? null : new Uint8Array(answer.body), { status, headers: answer.headers })
  }
}

/** The text of a body; requests to token endpoints have no other kind. */
function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('a request has a body of another kind than text')
}
