/** Sends requests to the token endpoint of a provider (RFC 6749 §4.1.3 and §6), and reads the tokens in the answers. */
import { type Fetch, FetchFault } from '../../lib/http/outbound-fetch.ts'
import { field, type Json } from './kind.ts'

/** The longest token that is stored, in characters. */
const MAX_TOKEN_LENGTH = 16_384

interface TokenClient {
  readonly tokenUrl: string
  readonly clientId: string
  readonly clientSecret: string
  readonly fetch: Fetch
}

export interface Tokens {
  readonly accessToken: string
  /** Empty when there is none. */
  readonly refreshToken: string
}

export interface TokenFault {
  /** For the log; holds no secret. */
  readonly error: string
  /** Whether the provider refused the code or the refresh token itself. */
  readonly isRefused: boolean
}

/** RFC 6749 §5.2, and what GitHub says instead. */
const refusals: ReadonlySet<string> = new Set(['invalid_grant', 'bad_verification_code', 'bad_refresh_token'])

export async function exchange(
  { tokenUrl, clientId, clientSecret, fetch }: TokenClient,
  grant: Readonly<Record<string, string>>,
): Promise<Tokens | TokenFault> {
  const form = new URLSearchParams({ ...grant, client_id: clientId, client_secret: clientSecret })
  const headers = { accept: 'application/json', 'content-type': 'application/x-www-form-urlencoded' }
  try {
    const { status, body } = await fetch(tokenUrl, { method: 'POST', headers, body: form.toString() })
    return readTokens(status, readJson(body))
  } catch (error) {
    if (error instanceof FetchFault) return { error: error.message, isRefused: false }
    throw error
  }
}

/** GitHub reports errors with a 200, Facebook as an object. */
function readTokens(status: number, json: Json): Tokens | TokenFault {
  const error = field(json, 'error')
  if (typeof error === 'string') {
    const said = /^[\w.-]{1,64}$/.test(error) ? error : 'an error'
    return { error: `the provider answered ${said}`, isRefused: refusals.has(error) }
  }
  const accessToken = tokenIn(json, 'access_token')
  if (status !== 200 || error !== undefined || accessToken === '') {
    return { error: `the provider answered ${status} and no token`, isRefused: false }
  }
  return { accessToken, refreshToken: tokenIn(json, 'refresh_token') }
}

/** RFC 6749 §A.12: visible ASCII, so that it can be sent in a header. */
function tokenIn(json: Json, name: string): string {
  const token = field(json, name)
  return typeof token === 'string' && token.length <= MAX_TOKEN_LENGTH && /^[\x21-\x7e]+$/.test(token) ? token : ''
}

/** Undefined when it is not JSON. */
export function readJson(body: Buffer): Json {
  try {
    return JSON.parse(body.toString('utf8')) as Json
  } catch {
    return undefined
  }
}
