/** The texts in which explanations say what a module or an action did. */
import type { HeaderList } from '../lib/http/header-list.ts'
import { type VisitorErrorCode, visitorErrors } from './visitor-errors.ts'

type Judged =
  | { readonly refuse: VisitorErrorCode }
  | { readonly respond: { readonly status: number; readonly headers: readonly (readonly [string, string])[] } }
  | { readonly close: true }

/** `refuses with ERR_IP_REFUSED (403)`, `answers 302 to https://…`, `closes the connection`. */
export function verdictText(verdict: Judged): string {
  if ('close' in verdict) return 'closes the connection'
  if ('refuse' in verdict) return `refuses with ERR_${verdict.refuse} (${visitorErrors[verdict.refuse].status})`
  const { status, headers } = verdict.respond
  const location = headers.find(([name]) => name.toLowerCase() === 'location')?.[1]
  // Without the query: in a redirect to a provider it has secrets of the login.
  return `answers ${status}${location === undefined ? '' : `, to ${location.replace(/[?#].*$/s, '')}`}`
}

const logins: ReadonlySet<string> = new Set(['oauth', 'oidc', 'saml', 'openid-connect'])

/** The requests that a module or action would send to other servers, with their purpose if that is known. */
export function callText(name: string, asked: readonly string[]): string {
  const calls = asked.join(', ')
  return logins.has(name) ? `${calls} to log the visitor in at its provider` : calls
}

/** Which headers were added, removed or changed, as parts of a sentence. */
export function headerChanges(before: HeaderList, after: HeaderList): string[] {
  const [were, are] = [byName(before), byName(after)]
  const added = [...are].filter(([name, values]) => values.length > (were.get(name)?.length ?? 0))
  const removed = [...were].filter(([name]) => !are.has(name))
  const changed = [...are].filter(([name, values]) => isOther(were.get(name), values))
  return [sentence('adds', added), sentence('removes', removed), sentence('changes', changed)].filter(
    (each) => each !== '',
  )
}

function byName(headers: HeaderList): Map<string, string[]> {
  const names = new Map<string, string[]>()
  for (const [name, value] of headers) {
    const key = name.toLowerCase()
    names.set(key, [...(names.get(key) ?? []), value])
  }
  return names
}

function isOther(before: readonly string[] | undefined, after: readonly string[]): boolean {
  if (!before || before.length < after.length) return false
  return before.length !== after.length || before.some((value, i) => value !== after[i])
}

function sentence(verb: string, names: readonly (readonly [string, unknown])[]): string {
  return names.length === 0 ? '' : `${verb} ${names.map(([name]) => `\`${name}\``).join(', ')}`
}
