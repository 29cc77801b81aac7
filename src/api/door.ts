/** The door of every API call: who calls, how often, and in which version (D1, D2, D14). */
import type { IncomingMessage } from 'node:http'
import { authenticate, type Principal } from '../control/principal.ts'
import type { RateLimit } from '../control/rate-limit.ts'
import { Refusal } from '../model/errors.ts'
import type { Store } from '../store/store.ts'

/** Lets a request in and says whose it is; throws `Refusal`. */
export async function enter(
  request: IncomingMessage,
  { store, rateLimit }: { store: Store; rateLimit: RateLimit },
): Promise<Principal> {
  const principal = await caller(request, store)
  if (!principal) {
    throw new Refusal('UNAUTHENTICATED', undefined, { headers: { 'www-authenticate': 'Bearer' } })
  }
  const wait = rateLimit.take(principal.keyId)
  if (wait > 0) throw new Refusal('RATE_LIMITED', undefined, { headers: { 'retry-after': String(wait) } })
  checkVersion(request)
  return principal
}

async function caller(request: IncomingMessage, store: Store): Promise<Principal | undefined> {
  // Node keeps only the first of two, and two are one too many to know which is meant.
  const [header, another] = request.headersDistinct.authorization ?? []
  if (header === undefined || another !== undefined) return undefined
  const token = /^bearer +([^\s]+)$/i.exec(header)?.[1]
  return token === undefined ? undefined : authenticate(store, token)
}

/** `Ngrok-Version` is an alias; both may be sent when both say the same (D14a). */
function checkVersion(request: IncomingMessage): void {
  const sent = [...versions(request, 'service-version'), ...versions(request, 'ngrok-version')]
  if (sent.flat().length === 0) throw new Refusal('VERSION_MISSING')
  const isFine = [versions(request, 'service-version'), versions(request, 'ngrok-version')].every(
    (values) => values.length === 0 || (values.length === 1 && values[0] === '2'),
  )
  if (!isFine)
    throw new Refusal('VERSION_UNSUPPORTED', 'send `Service-Version: 2` once; `2` is the only supported version')
}

function versions(request: IncomingMessage, name: string): readonly string[] {
  return request.headersDistinct[name] ?? []
}
