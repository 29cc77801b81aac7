/** The name of a header in the sender's spelling, with the facts that the proxy needs computed once. */
import { flatText } from '../text/flat-text.ts'
import { isHeaderName } from './http-header.ts'

/**
 * Size of the cache of names, a power of two. Every message has the same names; a new spelling replaces the one in its slot.
 */
const SLOTS = 1024

/** Longer names are rare and not cached, in characters. */
const LONGEST_KEPT = 40

const kept: (HeaderName | undefined)[] = new Array<HeaderName | undefined>(SLOTS).fill(undefined)

export class HeaderName {
  /** As the sender spelled it. */
  readonly spelling: string
  /** In lower case; names are compared by this. */
  readonly key: string
  /** Whether it is a valid name, which can be sent. */
  readonly isToken: boolean
  /** What HTTP/1.1 writes before the value: the end of the previous line, the name, and a colon. */
  readonly lineStart: string
  /** The spelling as bytes, which compare faster with those of a message than a string. */
  readonly bytes: Uint8Array
  /** Bits in which the proxy remembers what it found out about this name; 0 at first. */
  marks = 0

  constructor(spelling: string) {
    this.isToken = isHeaderName(spelling)
    this.spelling = flatText(spelling)
    this.bytes = new Uint8Array(Buffer.from(spelling, 'latin1'))
    this.key = unique(spelling.toLowerCase())
    this.lineStart = flatText(`\r\n${spelling}: `)
  }
}

/** The header name with this spelling. */
export function headerName(spelling: string): HeaderName {
  let hash = 0
  for (let i = 0; i < spelling.length; i++) hash = mixCode(hash, spelling.charCodeAt(i))
  const known = kept[slotOf(hash)]
  return known?.spelling === spelling ? known : keep(hash, spelling)
}

/** Adds one more character to the hash of a spelling; the hash begins with 0. */
export function mixCode(hash: number, code: number): number {
  return (Math.imul(hash, 31) + code) | 0
}

/** The name in `bytes` from `from` up to, but not including, `to`. It must be a token, and `hash` its hash. */
export function nameIn(bytes: Uint8Array, from: number, to: number, hash: number): HeaderName {
  const known = kept[slotOf(hash)]
  if (known?.isToken && isSame(bytes, from, to, known.bytes)) return known
  return keep(hash, Buffer.from(bytes.subarray(from, to)).toString('latin1'))
}

function isSame(bytes: Uint8Array, from: number, to: number, name: Uint8Array): boolean {
  if (name.length !== to - from) return false
  for (let i = 0; i < name.length; i++) if (bytes[from + i] !== name[i]) return false
  return true
}

function slotOf(hash: number): number {
  return (hash ^ (hash >>> 10)) & (SLOTS - 1)
}

function keep(hash: number, spelling: string): HeaderName {
  const name = new HeaderName(spelling)
  if (spelling.length <= LONGEST_KEPT) kept[slotOf(hash)] = name
  return name
}

/** V8's interned copy of `text`. Property names and literals are interned too, so a comparison compares addresses. */
function unique(text: string): string {
  return Object.keys({ [text]: true })[0] ?? text
}
