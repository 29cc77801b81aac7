/** Our `fetch` in the shape of the web's, for libraries that take one: every address that they ask obeys D53. */
import type { Fetch } from '../../lib/http/outbound-fetch.ts'

export interface WebRequest {
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
    // The web's class takes no others; nobody can do anything with them either.
    if (status < 200 || status > 599) throw new Error(`an answer with the status ${status}`)
    const isBare = status === 204 || status === 205 || status === 304
    return new Response(isBare ? null : new Uint8Array(answer.body), { status, headers: answer.headers })
  }
}

/** What is sent to token endpoints. */
function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('a request has a body of another kind than text')
}
