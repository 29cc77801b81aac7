/** What comes to us by the two bindings: a form in a body, or parameters of an address. */
import { bodyMemoryRefusal, type RequestContext, type RequestVerdict } from '../phases.ts'
import type { SentLogout } from './logout-request.ts'

/** Far above what identity providers send, which is some ten KiB, or a hundred with very many groups. */
const MAX_BODY_BYTES = 256 * 1024

/** A form that a browser was made to post, or why it is not taken. Each field of `names` stands in it once at most. */
export async function readForm(
  ctx: RequestContext,
  names: readonly string[],
): Promise<ReadonlyMap<string, string> | { readonly verdict: RequestVerdict }> {
  const unreadable = { verdict: { refuse: 'LOGIN_ANSWER_UNREADABLE' } } as const
  const type = ctx.headers.get('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) return unreadable
  const body = await ctx.readBody(MAX_BODY_BYTES)
  if (body === 'no_memory') return { verdict: bodyMemoryRefusal }
  if (body === 'too_large') return { verdict: { refuse: 'BODY_TOO_LARGE_TO_CHECK' } }
  return readParams(new URLSearchParams(body.toString()), names) ?? unreadable
}

/** Undefined when one stands there twice: two readers could take another one each. */
export function readParams(params: URLSearchParams, names: readonly string[]): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>()
  for (const name of names) {
    const [value, another] = params.getAll(name)
    if (another !== undefined) return undefined
    if (value !== undefined) found.set(name, value)
  }
  return found
}

/** A request for a logout that came in the address; undefined when it is none, or lacks a signature. */
export function readSignedQuery(query: string): (SentLogout & { readonly relayState: string }) | undefined {
  const params = readParams(new URLSearchParams(query), ['SAMLRequest', 'RelayState', 'SigAlg', 'Signature'])
  const [request, algorithm, signature] = ['SAMLRequest', 'SigAlg', 'Signature'].map((name) => params?.get(name) ?? '')
  if (!request || !algorithm || !signature) return undefined
  // SAML bindings §3.4.4.1: these three, in this order, as they were encoded by whoever signed them.
  const raw = (name: string): string[] => query.split('&').filter((pair) => pair.startsWith(`${name}=`))
  const pairs = [...raw('SAMLRequest'), ...raw('RelayState'), ...raw('SigAlg')]
  if (pairs.length !== (params?.has('RelayState') ? 3 : 2)) return undefined
  const relayState = params?.get('RelayState') ?? ''
  return { binding: 'redirect', request, signed: pairs.join('&'), algorithm, signature, relayState }
}
