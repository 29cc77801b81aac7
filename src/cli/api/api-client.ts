/** Calls the management API: resolves with the parsed response, or rejects with a `Failure` that says what to do. */
import { resolve } from 'node:path'
import { errorCode } from '../../lib/error-code.ts'
import { readSmallFile } from '../../lib/files/read-small-file.ts'
import { EventStreamReader, type ServerEvent } from '../../lib/http/event-stream-reader.ts'
import { printable } from '../../lib/text/printable.ts'
import { certificatesPem } from '../../link/options/file-values.ts'
import { baseUrl } from '../../server/config/parse-value.ts'
import { Failure, misuse } from '../command-failure.ts'
import type { Terminal } from '../terminal.ts'
import { openAnswer, requestOf, type WholeAnswer, wholeAnswer } from './request.ts'

export const DEFAULT_API_URL = 'http://127.0.0.1:7400'

/** The largest file of certificates, in bytes. */
const MAX_CA_BYTES = 1024 * 1024

/** How long one call may take, in milliseconds; commands to agents are answered within 10 s. */
const CALL_TIMEOUT_MS = 60_000

export type CallMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
export type ApiAnswer = Readonly<Record<string, unknown>>

/** Calls the API; `path` begins with a slash. Resolves with null for a 204. */
export type Call = (method: CallMethod, path: string, body?: unknown) => Promise<ApiAnswer | null>

/** Opens a stream of the API; it ends when the server ends it. */
export type Follow = (path: string) => AsyncIterable<ServerEvent>

export interface Access {
  readonly apiUrl?: string | undefined
  readonly apiKey?: string | undefined
  /** A file of certificates in PEM. */
  readonly ca?: string | undefined
}

/** What flags fall back to or refer to: the environment, and files. */
type Surrounding = Pick<Terminal, 'env' | 'cwd'>

/** Uses the address and key from the flags, or else from the environment. */
export function apiCaller(flags: Access, around: Surrounding): Call {
  const { base, headers, ca } = accessOf(flags, around)
  return async (method, path, body) => {
    const response = await requestOf(`${base}${path}`, {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
      ca,
      withinMs: CALL_TIMEOUT_MS,
    }).catch((error: unknown) => {
      throw unreachable(error, base)
    })
    return answerOf(response, base)
  }
}

export function apiFollower(flags: Access, around: Surrounding): Follow {
  const { base, headers, ca } = accessOf(flags, around)
  return async function* (path) {
    const accepts = { ...headers, accept: 'text/event-stream' }
    const response = await openAnswer(`${base}${path}`, { method: 'GET', headers: accepts, ca }).catch(
      (error: unknown) => {
        throw unreachable(error, base)
      },
    )
    if (response.statusCode !== 200 || !response.headers['content-type']?.startsWith('text/event-stream')) {
      answerOf(await wholeAnswer(response), base)
      throw new Failure(`${base} did not respond like the Postern API; check --api-url`)
    }
    yield* eventsIn(response as AsyncIterable<Buffer>)
  }
}

async function* eventsIn(body: AsyncIterable<Buffer>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder()
  const reader = new EventStreamReader()
  for await (const part of body) {
    try {
      yield* reader.read(decoder.decode(part, { stream: true }))
    } catch (cause) {
      throw new Failure('the event stream is malformed; check --api-url', { cause })
    }
  }
}

function accessOf(flags: Access, { env, cwd }: Surrounding) {
  const base = addressOf(flags.apiUrl || env.POSTERN_API_URL || DEFAULT_API_URL)
  const key = (flags.apiKey || env.POSTERN_API_KEY || '').trim()
  if (key === '') {
    throw misuse(
      'no API key: set POSTERN_API_KEY or give --api-key. The first start of `postern serve` prints one; ' +
        '`postern admin create-key --owner usr_…` creates another',
    )
  }
  // Checked here because Node quotes a bad header in its error, and this one is a secret.
  if (!/^[\x21-\x7e]+$/.test(key)) throw misuse('the API key contains a character that no key has; copy it again')
  const headers = { authorization: `Bearer ${key}`, 'service-version': '2', accept: 'application/json' }
  return { base, headers, ca: caOf(flags.ca || env.POSTERN_API_CA || '', cwd) }
}

function addressOf(text: string): string {
  try {
    return baseUrl(text)
  } catch (error) {
    throw misuse(`--api-url ${(error as Error).message}, for example ${DEFAULT_API_URL}`)
  }
}

/** Certificates to trust instead of those of this machine. */
function caOf(path: string, cwd: string): string | undefined {
  if (path === '') return undefined
  try {
    return certificatesPem(readSmallFile(resolve(cwd, path), MAX_CA_BYTES))
  } catch (error) {
    const code = errorCode(error)
    throw misuse(code ? `--ca cannot be read: ${code} ${path}` : `--ca ${(error as Error).message}`)
  }
}

function answerOf(response: WholeAnswer, base: string): ApiAnswer | null {
  const { status, location } = response
  if (status === 204) return null
  // Followed blindly, a redirect would turn a POST into a GET.
  if (status >= 300 && status < 400 && location) {
    throw new Failure(`${base} redirects to ${printable(location)}; set --api-url to the address of the API`)
  }
  const answer = parseJson(response.text)
  const isOk = status >= 200 && status < 300
  if (!isAnswer(answer) || (!isOk && typeof answer.msg !== 'string')) {
    throw new Failure(`${base} did not respond like the Postern API (HTTP ${status}); check --api-url`)
  }
  if (!isOk) throw new Failure(refusalText(answer))
  return answer
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

function isAnswer(value: unknown): value is ApiAnswer {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function refusalText({ msg, error_code, details }: ApiAnswer): string {
  const operation = isAnswer(details) ? details.operation_id : undefined
  const marks = [error_code, typeof operation === 'string' ? `operation ${operation}` : ''].filter(Boolean)
  return printable(`${String(msg)} (${marks.join(', ')})`)
}

function unreachable(error: unknown, base: string): Failure {
  const cause = error instanceof Error ? (error.cause ?? error) : error
  const code = typeof cause === 'object' && cause !== null && 'code' in cause ? String(cause.code) : ''
  const name = error instanceof Error ? error.name : ''
  const remedy =
    code === 'ECONNREFUSED'
      ? 'nothing is listening there; start the server with `postern serve`, or give another address with --api-url'
      : code === 'ENOTFOUND' || code === 'EAI_AGAIN'
        ? 'there is no such host; check --api-url'
        : name === 'TimeoutError'
          ? `no response within ${CALL_TIMEOUT_MS / 1000} s; check --api-url and the log of the server`
          : /CERT|SELF_SIGNED|ISSUER|ALTNAME|VERIFY/.test(code)
            ? `its certificate is not trusted (${code}); give its CA with --ca`
            : code || 'the connection failed'
  return new Failure(`cannot reach the API at ${base}: ${remedy}`, { cause: error })
}
