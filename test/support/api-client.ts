/** A plain API client for tests: sends exactly what it is given, and returns the answer. */
import assert from 'node:assert/strict'

/** A JSON object of an answer; tests look into it freely. */
// biome-ignore lint/suspicious/noExplicitAny: answers are checked by the assertions that read them
export type Json = any

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The parsed body; undefined when there is none. */
  readonly body: Json
}

export interface Sending {
  /** Sent as JSON; a string or bytes are sent as they are. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export class ApiClient {
  readonly #url: string
  readonly #token: string | null

  constructor(url: string, token: string | null) {
    this.#url = url
    this.#token = token
  }

  /** Sends one request with the usual headers. `headers` of `sending` are added; an empty one removes a usual one. */
  async send(method: string, path: string, { body, headers = {} }: Sending = {}): Promise<Answer> {
    const all = new Headers({ 'service-version': '2' })
    if (this.#token !== null) all.set('authorization', `Bearer ${this.#token}`)
    if (body !== undefined) all.set('content-type', 'application/json')
    for (const [name, value] of Object.entries(headers)) {
      if (value === '') all.delete(name)
      else all.set(name, value)
    }
    const isRaw = typeof body === 'string' || body instanceof Uint8Array
    const response = await fetch(new URL(path, this.#url), {
      method,
      headers: all,
      redirect: 'manual',
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body) }),
    })
    // An event stream has no end.
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream) await response.body?.cancel()
    const text = isStream ? '' : await response.text()
    return { status: response.status, headers: response.headers, text, body: parsed(text) }
  }

  /** Sends a request, asserts the status, and returns the body. */
  async #expect(status: number, method: string, path: string, sending?: Sending): Promise<Json> {
    const answer = await this.send(method, path, sending)
    assert.equal(answer.status, status, `${method} ${path}: ${answer.text}`)
    return answer.body
  }

  create(path: string, body: unknown = {}): Promise<Json> {
    return this.#expect(201, 'POST', path, { body })
  }

  get(path: string): Promise<Json> {
    return this.#expect(200, 'GET', path)
  }

  update(path: string, body: unknown): Promise<Json> {
    return this.#expect(200, 'PATCH', path, { body })
  }

  put(path: string, body: unknown): Promise<Json> {
    return this.#expect(200, 'PUT', path, { body })
  }

  async delete(path: string): Promise<void> {
    await this.#expect(204, 'DELETE', path)
  }

  /** Sends a request, asserts that it is refused with this code, and returns the body. */
  async refused(code: string, method: string, path: string, sending?: Sending): Promise<Json> {
    const answer = await this.send(method, path, sending)
    assert.equal(answer.body?.error_code, code, `${method} ${path}: ${answer.status} ${answer.text}`)
    assert.equal(answer.body.status_code, answer.status)
    return answer.body
  }
}

function parsed(text: string): Json {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}
