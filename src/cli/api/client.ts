/** Calls the management API: resolves with the parsed response, or rejects with a `Failure` that says what to do. */
import { baseUrl } from '../../config/parse.ts'
import { printable } from '../../lib/text/printable.ts'
import { Failure, misuse } from '../failure.ts'

export const DEFAULT_API_URL = 'http://127.0.0.1:7400'

/** How long one call may take, in milliseconds; commands to agents are answered within 10 s. */
const CALL_TIMEOUT_MS = 60_000

export type CallMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
export type ApiAnswer = Readonly<Record<string, unknown>>

/** Calls the API; `path` begins with a slash. Resolves with null for a 204. */
export type Call = (method: CallMethod, path: string, body?: unknown) => Promise<ApiAnswer | null>

export interface Access {
  readonly apiUrl?: string | undefined
  readonly apiKey?: string | undefined
}

/** Uses the address and key from the flags, or else from the environment. */
export function apiCaller(flags: Access, env: Readonly<Record<string, string | undefined>>): Call {
  const base = addressOf(flags.apiUrl || env.POSTERN_API_URL || DEFAULT_API_URL)
  const key = (flags.apiKey || env.POSTERN_API_KEY || '').trim()
  if (key === '') {
    throw misuse(
      'no API key: set POSTERN_API_KEY or give --api-key. The first start of `postern serve` prints one; ' +
        '`postern admin create-key --owner usr_…` makes another',
    )
  }
  // Checked here because fetch quotes a bad header in its error, and this one is a secret.
  if (!/^[\x21-\x7e]+$/.test(key)) throw misuse('the API key contains a character that no key has; copy it again')
  const headers = { authorization: `Bearer ${key}`, 'service-version': '2', accept: 'application/json' }
  return async (method, path, body) => {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // Followed blindly, a redirect would turn a POST into a GET.
      redirect: 'manual',
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw unreachable(error, base)
    })
    return answerOf(response, base)
  }
}

function addressOf(text: string): string {
  try {
    return baseUrl(text)
  } catch (error) {
    throw misuse(`--api-url ${(error as Error).message}, for example ${DEFAULT_API_URL}`)
  }
}

async function answerOf(response: Response, base: string): Promise<ApiAnswer | null> {
  if (response.status === 204) return null
  const location = response.headers.get('location')
  if (response.status >= 300 && response.status < 400 && location) {
    throw new Failure(`${base} redirects to ${printable(location)}; set --api-url to the address of the API`)
  }
  const answer: unknown = await response.json().catch(() => null)
  if (!isAnswer(answer) || (!response.ok && typeof answer.msg !== 'string')) {
    throw new Failure(`${base} does not answer as the API of Postern does (HTTP ${response.status}); check --api-url`)
  }
  if (!response.ok) throw new Failure(refusalText(answer))
  return answer
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
      ? 'nothing listens there; start it with `postern serve`, or name another address with --api-url'
      : code === 'ENOTFOUND' || code === 'EAI_AGAIN'
        ? 'there is no such host; check --api-url'
        : name === 'TimeoutError'
          ? `no answer within ${CALL_TIMEOUT_MS / 1000} s; check --api-url and the log of the server`
          : /CERT|SELF_SIGNED|ISSUER/.test(code)
            ? `its certificate is not trusted (${code}); name its CA in NODE_EXTRA_CA_CERTS`
            : code || 'the connection failed'
  return new Failure(`cannot reach the API at ${base}: ${remedy}`, { cause: error })
}
