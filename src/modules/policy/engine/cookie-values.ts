/** Reads cookies as expressions see them: those of a request, and those that a response sets. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { split, TooMuchToRead } from './http-values.ts'

/** The most cookies that are read; browsers keep fewer for one site. */
const MAX_COOKIES = 200
/** The most attributes of a cookie that a response sets. */
const MAX_ATTRIBUTES = 20

type Fields = Readonly<Record<string, unknown>>

/** RFC 6265 §5.4: the cookies of a request by name, in their order. */
export function cookiesOf(headers: HeaderList): ReadonlyMap<string, readonly Fields[]> {
  const pairs = headers.all('cookie').flatMap((line) => split(line, ';', MAX_COOKIES, 'cookies'))
  return byName(pairs.map(splitPair))
}

/** RFC 6265 §5.2: the cookies that a response sets by name. */
export function setCookiesOf(headers: HeaderList): ReadonlyMap<string, readonly Fields[]> {
  return byName(headers.all('set-cookie').map(readSetCookie))
}

function byName(cookies: readonly Fields[]): ReadonlyMap<string, readonly Fields[]> {
  if (cookies.length > MAX_COOKIES) throw new TooMuchToRead('cookies')
  return Map.groupBy(cookies, ({ name }) => String(name))
}

function splitPair(text: string): { name: string; value: string } {
  const equals = text.indexOf('=')
  if (equals < 0) return { name: '', value: text.trim() }
  return { name: text.slice(0, equals).trim(), value: text.slice(equals + 1).trim() }
}

function readSetCookie(line: string): Fields {
  const [pair = '', ...attributes] = split(line, ';', 1 + MAX_ATTRIBUTES, 'attributes of a cookie')
  const known = new Map<string, string>()
  const unparsed: string[] = []
  for (const each of attributes) {
    const { name, value } = each.includes('=') ? splitPair(each) : { name: each.trim(), value: '' }
    if (attributeNames.has(name.toLowerCase())) known.set(name.toLowerCase(), value)
    else unparsed.push(each.trim())
  }
  const maxAge = known.get('max-age') ?? ''
  return {
    ...splitPair(pair),
    domain: known.get('domain') ?? '',
    expires: known.get('expires') ?? '',
    http_only: known.has('httponly'),
    max_age: /^-?\d{1,15}$/.test(maxAge) ? BigInt(maxAge) : 0n,
    path: known.get('path') ?? '',
    same_site: known.get('samesite') ?? '',
    secure: known.has('secure'),
    unparsed_attributes: unparsed,
  }
}

const attributeNames: ReadonlySet<string> = new Set([
  'domain',
  'expires',
  'httponly',
  'max-age',
  'path',
  'samesite',
  'secure',
])
