/** Reads messages of the two bindings: a form in a body, or parameters of a URL. */
import { bodyMemoryRefusal, type RequestContext, type RequestVerdict } from '../phases.ts'
import type { SentLogout } from './logout-request.ts'

/** Identity providers send about 10 KiB, or 100 with very many groups. */
const MAX_BODY_BYTES = 256 * 1024

/** The posted form, or the refusal. Each field of `names` may occur once at most. */
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

/** Undefined when a name occurs twice, since two parsers could choose different values. */
function readParams(params: URLSearchParams, names: readonly string[]): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>()
  for (const name of names) {
    const [value, another] = params.getAll(name)
    if (another !== undefined) return undefined
    if (value !== undefined) found.set(name, value)
  }
  return found
}

/** The logout request in a query; undefined when there is none, or no signature. */
export function readSignedQuery(query: string): (SentLogout & { readonly relayState: string }) | undefined {
  const params = readParams(new URLSearchParams(query), ['SAMLRequest', 'RelayState', 'SigAlg', 'Signature'])
  const [request, algorithm, signature] = ['SAMLRequest', 'SigAlg', 'Signature'].map((name) => params?.get(name) ?? '')
  if (!request || !algorithm || !signature) return undefined
  // SAML bindings §3.4.4.1: the signature covers these three, in this order, in the sender's own encoding.
  const raw = (name: string): string[] => query.split('&').filter((pair) => pair.startsWith(`${name}=`))
  const pairs = [...raw('SAMLRequest'), ...raw('RelayState'), ...raw('SigAlg')]
  if (pairs.length !== (params?.has('RelayState') ? 3 : 2)) return undefined
  const relayState = params?.get('RelayState') ?? ''
  return { binding: 'redirect', request, signed: pairs.join('&'), algorithm, signature, relayState }
}
