/** Reads the cookies of a request, and removes some of them. */
import type { HeaderList } from './header-list.ts'

/** The wanted cookies, in order; HTTP/2 may spread them over several headers. */
export function readCookies(
  headers: Pick<HeaderList, 'all'>,
  isWanted: (name: string) => boolean,
): (readonly [string, string])[] {
  const found: (readonly [string, string])[] = []
  for (const header of headers.all('cookie')) {
    for (const pair of header.split(';')) {
      const name = nameIn(pair)
      if (isWanted(name)) found.push([name, trimBlanks(pair.slice(pair.indexOf('=') + 1))])
    }
  }
  return found
}

/** Removes cookies by name; a name that ends with `*` is a prefix. Other cookies are unchanged. */
export function cookieRemover(names: Iterable<string>): (headers: HeaderList) => void {
  const all = [...names]
  const whole = new Set(all.filter((name) => !name.endsWith('*')))
  const beginnings = all.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const isUnwanted = (name: string): boolean =>
    whole.has(name) || beginnings.some((beginning) => name.startsWith(beginning))
  const without = (value: string): string => withoutCookies(value, isUnwanted)
  return (headers) => headers.change('cookie', without)
}

/** The value of a `Cookie` header without the cookies of some names; the others keep their bytes and their order. */
export function withoutCookies(value: string, isUnwanted: (name: string) => boolean): string {
  const pairs = value.split(';')
  const kept = pairs.filter((pair) => !isUnwanted(nameIn(pair)))
  return kept.length === pairs.length ? value : trimBlanks(kept.join(';'))
}

/** The name of a cookie; empty for a value without one. */
function nameIn(pair: string): string {
  const equals = pair.indexOf('=')
  return equals < 0 ? '' : trimBlanks(pair.slice(0, equals))
}

/**
 * Trims spaces and tabs only (RFC 9110 §5.6.3). To browsers, other Unicode spaces are part of a name. If they were
 * trimmed too, a neighbouring domain could set a cookie that passes here for one that only this host can set.
 */
function trimBlanks(text: string): string {
  let [from, to] = [0, text.length]
  while (from < to && isBlank(text, from)) from++
  while (to > from && isBlank(text, to - 1)) to--
  return text.slice(from, to)
}

function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return code === 0x20 || code === 0x09
}
