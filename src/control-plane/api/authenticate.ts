/** Authenticates every API call: checks the key, the address, the rate and the version (D1, D2, D14). */
import type { IncomingMessage } from 'node:http'
import { Refusal } from '../../model/errors.ts'
import type { RateLimit } from '../records/api-rate-limit.ts'
import type { Principal } from '../records/find-caller.ts'

export interface ApiAuthentication {
  /** The principal behind a token; undefined when it opens nothing. */
  readonly authenticate: (token: string) => Promise<Principal | undefined>
  /** Whether the IP restriction of the API, or of its pages, lets an address in. */
  readonly admits: (part: 'api' | 'dashboard', address: string) => Promise<boolean>
  readonly rateLimit: RateLimit
  /** The API key of a signed-in browser, when the dashboard made the request; an `Authorization` header wins. */
  readonly pageKey: (request: IncomingMessage) => Promise<string | undefined>
}

/** Lets a request in and returns the caller; throws `Refusal`. */
export async function enter(request: IncomingMessage, authentication: ApiAuthentication): Promise<Principal> {
  const { principal, isAdmitted } = await callerOf(request, authentication)
  if (!principal) {
    throw new Refusal('UNAUTHENTICATED', undefined, { headers: { 'www-authenticate': 'Bearer' } })
  }
  if (!isAdmitted) throw new Refusal('IP_NOT_ALLOWED')
  const wait = authentication.rateLimit.take(principal.id)
  if (wait > 0) throw new Refusal('RATE_LIMITED', undefined, { headers: { 'retry-after': String(wait) } })
  checkVersion(request)
  return principal
}

/** Returns the caller without counting a call, to check again while an answer is still being sent. */
export async function recognise(
  request: IncomingMessage,
  authentication: Omit<ApiAuthentication, 'rateLimit'>,
): Promise<Principal | undefined> {
  const { principal, isAdmitted } = await callerOf(request, authentication)
  return isAdmitted ? principal : undefined
}

async function callerOf(
  request: IncomingMessage,
  { authenticate, admits, pageKey }: Omit<ApiAuthentication, 'rateLimit'>,
): Promise<{ readonly principal: Principal | undefined; readonly isAdmitted: boolean }> {
  const pageToken = request.headersDistinct.authorization === undefined ? await pageKey(request) : undefined
  const token = pageToken ?? bearerToken(request)
  const principal = token === undefined ? undefined : await authenticate(token)
  if (!principal) return { principal, isAdmitted: false }
  // D64: a call of the dashboard is also a call of the API, so both restrictions apply.
  const parts = pageToken === undefined ? (['api'] as const) : (['dashboard', 'api'] as const)
  for (const part of parts) {
    if (!(await admits(part, request.socket.remoteAddress ?? ''))) return { principal, isAdmitted: false }
  }
  return { principal, isAdmitted: true }
}

function bearerToken(request: IncomingMessage): string | undefined {
  // Node keeps only the first of two headers; two are refused, because it is unclear which one counts.
  const [header, another] = request.headersDistinct.authorization ?? []
  if (header === undefined || another !== undefined) return undefined
  return /^bearer +([^\s]+)$/i.exec(header)?.[1]
}

/** `Ngrok-Version` is an alias; both may be sent when both say the same (D14a). */
function checkVersion(request: IncomingMessage): void {
  const { 'service-version': ours = [], 'ngrok-version': alias = [] } = request.headersDistinct
  const sent = [ours, alias]
  if (sent.flat().length === 0) throw new Refusal('VERSION_MISSING')
  const isFine = sent.every((values) => values.length === 0 || (values.length === 1 && values[0] === '2'))
  if (!isFine)
    throw new Refusal(
      'VERSION_UNSUPPORTED',
      'send the version header once and say `2`, which is the only supported version',
    )
}
