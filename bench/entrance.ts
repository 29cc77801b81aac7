/** The address that visitors connect to; waits until it gives complete answers. */
import { once } from 'node:events'
import { request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { retry } from './stage/ports.ts'

/** How long it may take until the first request is answered, in milliseconds. */
const FIRST_ANSWER_MS = 15_000
const ANSWER_MS = 5000

export interface Entrance {
  readonly host: string
  readonly port: number
  /** The required `Host`; unset if any works. */
  readonly hostHeader?: string
  /** The cookie that a visitor needs, if any. */
  readonly cookie?: string
  /** Set for TLS: the server name, and the CA of its certificate in PEM. */
  readonly tls?: { readonly name: string; readonly ca: string }
}

/** Waits until the upstream answers through the entrance with 200 and this many bytes. */
export async function awaitAnswer(entrance: Entrance, path: string, bytes: number): Promise<void> {
  await retry(async () => void (await ask(entrance, path, bytes)), { timeoutMs: FIRST_ANSWER_MS })
}

/** Waits until answers through the entrance have a header. */
export async function awaitHeader(
  entrance: Entrance,
  path: string,
  { name, bytes }: { name: string; bytes: number },
): Promise<void> {
  const look = async (): Promise<void> => {
    if ((await ask(entrance, path, bytes))[name] === undefined) throw new Error(`the answer has no header ${name}`)
  }
  await retry(look, { timeoutMs: FIRST_ANSWER_MS })
}

async function ask(
  { host, port, hostHeader, cookie, tls }: Entrance,
  path: string,
  bytes: number,
): Promise<Answered['headers']> {
  const name = hostHeader ?? tls?.name
  const headers = { ...(name !== undefined && { host: name }), ...(cookie !== undefined && { cookie }) }
  const options = { host, port, path, headers, agent: false, signal: AbortSignal.timeout(ANSWER_MS) } as const
  const asked = tls ? secureRequest({ ...options, servername: tls.name, ca: tls.ca }) : plainRequest(options)
  asked.end()
  const [answer] = (await once(asked, 'response')) as [Answered]
  let length = 0
  for await (const chunk of answer) length += chunk.length
  if (answer.statusCode !== 200 || length !== bytes) {
    throw new Error(`the answer to ${path} was ${answer.statusCode} with ${length} bytes`)
  }
  return answer.headers
}

type Answered = AsyncIterable<Buffer> & { statusCode?: number; headers: Readonly<Record<string, unknown>> }
