/** Sends calls over persistent connections, with any method and any header that Node's client can send. */
import { Agent, type IncomingHttpHeaders, request } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Json } from '../support/api-client.ts'

export interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer | undefined
}

export interface Received {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The parsed body; undefined when it is not JSON. */
  readonly body: Json
}

/** Reached only when the server hangs. */
const DEADLINE_MS = 60_000

export class Wire {
  readonly #agent: Agent
  readonly #url: string

  constructor(url: string, connections: number) {
    this.#url = url
    this.#agent = new Agent({ keepAlive: true, maxSockets: connections })
  }

  async send({ method, path, headers, body }: Sent): Promise<Received> {
    const { hostname, port } = new URL(this.#url)
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const { promise, resolve, reject } = Promise.withResolvers<Received>()
    // Node's client does not frame the body of a GET or DELETE, and the server would read it as the next request.
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const all = { ...headers, ...length }
    const call = request({ agent: this.#agent, hostname, port, method, path, headers: all, signal })
    call.on('error', reject)
    call.on('response', (response) => {
      text(response).then((text) => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text, body: parsed(text) })
      }, reject)
    })
    call.end(body)
    return promise
  }

  close(): void {
    this.#agent.destroy()
  }
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
