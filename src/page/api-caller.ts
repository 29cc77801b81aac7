/** Calls the API for the page: one function for every call, one for streams, and every failure as a value. */
import { EventStreamReader, type ServerEvent } from '../lib/http/event-stream-reader.ts'

/** The only version of the API there is. */
const VERSION = { 'Service-Version': '2' }

/** How long an answer may take, in milliseconds: commands wait for an agent for ten seconds. */
const ANSWER_MS = 30_000

/** How long a stream may be silent, in milliseconds: servers and agents say something every five seconds. */
const SILENCE_MS = 15_000

type CallVerb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Why a call failed. */
export interface CallFault {
  /**
   * `away`: no response. `signed_out`: the key no longer opens the API. `refused`: the API refused the call. `unseen`:
   * the page is hidden, so it did not ask.
   */
  readonly kind: 'away' | 'signed_out' | 'refused' | 'unseen'
  /** The sentence of the API, for people. */
  readonly text: string
  readonly code: string
  /** Path of the field at fault, such as `hostports[0]`; may be empty. */
  readonly field: string
  /** The operation id, which finds the call in the server's log; empty without a response. */
  readonly operation: string
}

export type CallOutcome<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly fault: CallFault }

interface ApiCallerOptions {
  readonly fetch: typeof fetch
  /** The address of the page; paths of the API are relative to it, since a proxy may serve it under a path. */
  readonly base: string
  /** Called after each call with whether there was a response. */
  readonly onAnswer: (isHere: boolean) => void
  readonly onSignedOut: () => void
  /** The secret of the sign-in, which proves that this page makes the call; null for none. */
  readonly secret: () => string | null
  /** Who answers. */
  readonly who: 'server' | 'agent'
}

export interface FollowOptions {
  /** Ends the stream. */
  readonly signal: AbortSignal
  /** Called for each chunk that arrives; `events` is empty for a keep-alive. */
  readonly onEvents: (events: readonly ServerEvent[]) => void
}

export class ApiCaller {
  readonly #options: ApiCallerOptions

  constructor(options: ApiCallerOptions) {
    this.#options = options
  }

  get<T>(path: string): Promise<CallOutcome<T>> {
    return this.call('GET', path)
  }

  /** `T` is what the API document promises for this path; the page trusts its own server to keep it. */
  async call<T>(method: CallVerb, path: string, body?: unknown): Promise<CallOutcome<T>> {
    const { fetch, onAnswer, onSignedOut } = this.#options
    try {
      const answer = await fetch(this.#address(path), {
        method,
        headers: { ...this.#headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_MS),
      })
      const text = await answer.text()
      onAnswer(true)
      if (answer.ok) return { ok: true, value: (text === '' ? undefined : JSON.parse(text)) as T }
      const fault = faultOf(answer.status, text)
      if (fault.kind === 'signed_out') onSignedOut()
      return { ok: false, fault }
    } catch {
      onAnswer(false)
      return { ok: false, fault: this.#away }
    }
  }

  /** Reads server-sent events until the stream ends or falls silent; resolves with the reason. */
  async follow(path: string, { signal, onEvents }: FollowOptions): Promise<CallFault> {
    const { fetch, onAnswer, onSignedOut } = this.#options
    const silence = new AbortController()
    let timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const answer = await fetch(this.#address(path), {
        headers: this.#headers,
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (!answer.ok || !answer.body) {
        const fault = faultOf(answer.status, await answer.text())
        onAnswer(true)
        if (fault.kind === 'signed_out') onSignedOut()
        return fault
      }
      const events = new EventStreamReader()
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        clearTimeout(timer)
        timer = setTimeout(() => silence.abort(), SILENCE_MS)
        onAnswer(true)
        onEvents(events.read(part.value))
      }
    } catch {
      // Handled like a stream that the server ends.
    } finally {
      clearTimeout(timer)
    }
    if (!signal.aborted) onAnswer(false)
    return this.#away
  }

  get #headers(): Record<string, string> {
    const secret = this.#options.secret()
    return secret === null ? VERSION : { ...VERSION, 'Postern-Page': secret }
  }

  get #away(): CallFault {
    return { kind: 'away', text: `The ${this.#options.who} is not responding.`, code: '', field: '', operation: '' }
  }

  #address(path: string): URL {
    return new URL(path.replace(/^\//, ''), this.#options.base)
  }
}

/** Reads an error body, which a proxy in between may have written. */
export function faultOf(status: number, text: string): CallFault {
  const body = parseObject(text)
  const details = isRecord(body.details) ? body.details : {}
  // Agents put the reason here, as the vendor's does.
  const why = typeof details.err === 'string' ? `: ${details.err}` : ''
  return {
    kind: status === 401 ? 'signed_out' : 'refused',
    text:
      typeof body.msg === 'string'
        ? `${body.msg.replace(/^[a-z]/, (letter) => letter.toUpperCase())}${why}`
        : `The request failed with status ${status}.`,
    code: typeof body.error_code === 'string' ? body.error_code : '',
    field: typeof details.field === 'string' ? details.field : '',
    operation: typeof details.operation_id === 'string' ? details.operation_id : '',
  }
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
