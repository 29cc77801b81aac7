/**
 * The name of a header, in the spelling of its sender: what is asked of a name with every message was answered when that
 * spelling was first seen. Names come again and again, so they are kept, as many as fit a table of a fixed size.
 */
import { flatText } from '../text/flat-text.ts'
import { isHeaderName } from './http-header.ts'

/** Spellings that are kept at most; a power of two. One that finds its place taken takes it. */
const PLACES = 1024

/** Longer names are rare, and not worth a place, in characters. */
const LONGEST_KEPT = 40

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
  /** What the proxy has found out about it; 0 before it looked. */
  marks = 0

  constructor(spelling: string) {
    this.isToken = isHeaderName(spelling)
    this.spelling = flatText(spelling)
    this.key = unique(spelling.toLowerCase())
    this.lineStart = flatText(`\r\n${spelling}: `)
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

/** The name that stands in `bytes` from `from` to before `to`, all of them a token, whose hash is known. */
export function nameIn(bytes: Uint8Array, from: number, to: number, hash: number): HeaderName {
  const known = kept[placeOf(hash)]
  if (known?.isToken && isSame(bytes, from, to, known.spelling)) return known
  return keep(hash, Buffer.from(bytes.subarray(from, to)).toString('latin1'))
}

function isSame(bytes: Uint8Array, from: number, to: number, spelling: string): boolean {
  if (spelling.length !== to - from) return false
  for (let i = 0; i < spelling.length; i++) if (bytes[from + i] !== spelling.charCodeAt(i)) return false
  return true
}

function placeOf(hash: number): number {
  return (hash ^ (hash >>> 10)) & (PLACES - 1)
}

function keep(hash: number, spelling: string): HeaderName {
  const name = new HeaderName(spelling)
  if (spelling.length <= LONGEST_KEPT) kept[placeOf(hash)] = name
  return name
}

/** The same text, as the engine keeps it once for all who spell it as a name in code: comparing such is comparing addresses. */
function unique(text: string): string {
  return Object.keys({ [text]: true })[0] ?? text
}
