/**
 * The name of a header, in the spelling of its sender: what is asked of a name with every message was answered when that
 * spelling was first seen. Names come again and again, so they are kept, as many as fit a table of a fixed size.
 */

/** Spellings that are kept at most; a power of two. One that finds its place taken takes it. */
const PLACES = 1024

/** Longer names are rare, and not worth a place, in characters. */
const LONGEST_KEPT = 40

/** RFC 9110 §5.6.2 */
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/

const kept: (HeaderName | undefined)[] = new Array<HeaderName | undefined>(PLACES).fill(undefined)

export class HeaderName {
  /** As it was spelled. */
  readonly spelling: string
  /** Lower case: what names are compared by. */
  readonly key: string
  /** Whether it can be sent. */
  readonly isToken: boolean
  /** What stands before its value in HTTP/1.1, and ends the line before. */
  readonly lineStart: string

  constructor(spelling: string) {
    this.isToken = token.test(spelling)
    this.spelling = this.isToken ? flat(spelling) : spelling
    this.key = this.spelling.toLowerCase()
    this.lineStart = flat(`\r\n${spelling}: `)
  }
}

/** The name of this spelling. */
export function headerName(spelling: string): HeaderName {
  let hash = 0
  for (let i = 0; i < spelling.length; i++) hash = mixed(hash, spelling.charCodeAt(i))
  const known = kept[placeOf(hash)]
  return known?.spelling === spelling ? known : keep(hash, spelling)
}

/** Takes another character into the hash of a spelling, which begins with 0. */
export function mixed(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) | 0
}

/** The name that stands in `text` from `from` to before `to`, whose hash is known. */
export function nameIn(text: string, from: number, to: number, hash: number): HeaderName {
  const known = kept[placeOf(hash)]
  if (known !== undefined && known.spelling.length === to - from && text.startsWith(known.spelling, from)) return known
  return keep(hash, text.slice(from, to))
}

function placeOf(hash: number): number {
  return (hash ^ (hash >>> 10)) & (PLACES - 1)
}

function keep(hash: number, spelling: string): HeaderName {
  const name = new HeaderName(spelling)
  if (spelling.length <= LONGEST_KEPT) kept[placeOf(hash)] = name
  return name
}

/** The same text in memory of its own: a part of a text keeps the whole alive, and one put together is put together anew by each who reads it. */
function flat(text: string): string {
  return Buffer.from(text).toString()
}
