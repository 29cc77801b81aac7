/** HTTP requests that, unlike `fetch`, can be told to trust only one CA. */
import type { IncomingMessage } from 'node:http'
import { request as requestSecure } from 'node:https'
import { request as requestPlain } from '../../lib/http/node-http.ts'

interface SentRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | undefined
  /** Certificates in PEM to trust instead of those of this machine. */
  readonly ca?: string | undefined
  readonly signal?: AbortSignal
}

export interface WholeAnswer {
  readonly status: number
  readonly location: string | undefined
  /** The clock of the server. */
  readonly date: string | undefined
  readonly text: string
}

/** The largest response that is read, in bytes; a page of a list is much smaller. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

/** Resolves with the whole response, of any status; redirects are not followed. Rejects with the error of the system. */
export async function requestOf(
  url: string,
  { withinMs, ...request }: Omit<SentRequest, 'signal'> & { readonly withinMs: number },
): Promise<WholeAnswer> {
  return wholeAnswer(await openAnswer(url, { ...request, signal: AbortSignal.timeout(withinMs) }))
}

/** Resolves when the head of the response has arrived. */
export async function openAnswer(
  url: string,
  { method, headers, body, ca, signal }: SentRequest,
): Promise<IncomingMessage> {
  const options = {
    ...{ method, headers: body === undefined ? headers : { ...headers, ...lengthOf(body) } },
    ...(signal && { signal }),
  }
  return new Promise((resolve, reject) => {
    const request = url.startsWith('https:')
      ? requestSecure(url, { ...options, agent: false, ...(ca !== undefined && { ca }) })
      : requestPlain(url, { ...options, agent: false })
    request.on('response', resolve).on('error', (error) => reject(signal?.aborted ? signal.reason : error))
    request.end(body)
  })
}

export async function wholeAnswer(response: IncomingMessage): Promise<WholeAnswer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of response as AsyncIterable<Buffer>) {
    bytes += part.length
    if (bytes > MAX_ANSWER_BYTES) throw new Error('the response is too large')
    parts.push(part)
  }
  return {
    status: response.statusCode ?? 0,
    location: response.headers.location,
    date: response.headers.date,
    text: Buffer.concat(parts).toString(),
  }
}

function lengthOf(body: string): Readonly<Record<string, string>> {
  return { 'content-length': String(Buffer.byteLength(body)) }
}
