/** Reads the fields of a head or of trailers: strictly, in one pass, with those that frame the message set apart. */
import { HeaderList } from '../../lib/header-list.ts'
import { COLON, CR, characters, LF, SPACE, TAB, TOKEN, UNDERSCORE, VALUE } from './characters.ts'
import { HeadFault, malformed } from './head-fault.ts'
import type { Head } from './head-reader.ts'

/** RFC 9112 §6: who may say how long a body is. Each at most once. */
export class Fields {
  /** All others, in their order. */
  readonly headers = new HeaderList()
  host: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  /** Whether `Connection` says that this is the last message. */
  closes = false
  /** Whether `Connection` names `Upgrade`. */
  namesUpgrade = false
  upgrade: string | undefined
  /** Whether something else than `100-continue` is expected. */
  isDemanding = false
  expectsContinue = false
}

export interface FieldRules {
  readonly maxFields: number
  /** In requests. */
  readonly dropsUnderscores: boolean
}

/** Reads the lines of `head` from `at` on. */
export function parseFields(head: Head, at: number, rules: FieldRules): Fields | HeadFault {
  const { bytes, from, to, text } = head
  const fields = new Fields()
  let count = 0
  for (let i = at; i < to; ) {
    if (++count > rules.maxFields) return new HeadFault('too_large', `more than ${rules.maxFields} fields`)
    const nameFrom = i
    let seen = 0
    for (let bits = bitsOf(bytes, i); (bits & TOKEN) !== 0; bits = bitsOf(bytes, ++i)) seen |= bits
    // A fold, a blank before the colon and an empty name all end here.
    if (i === nameFrom || bytes[i] !== COLON) return malformed('a line that does not begin with a name and a colon')
    const nameTo = i++
    while (bytes[i] === SPACE || bytes[i] === TAB) i++
    const valueFrom = i
    while ((bitsOf(bytes, i) & VALUE) !== 0) i++
    let valueTo = i
    while (valueTo > valueFrom && (bytes[valueTo - 1] === SPACE || bytes[valueTo - 1] === TAB)) valueTo--
    if (bytes[i] !== CR || bytes[i + 1] !== LF) return malformed('a value with a control character')
    i += 2
    if ((seen & UNDERSCORE) !== 0 && rules.dropsUnderscores) continue
    const value = text.slice(valueFrom - from, valueTo - from)
    const fault = setApart(fields, bytes, nameFrom, nameTo, value)
    if (fault === false) fields.headers.add(text.slice(nameFrom - from, nameTo - from), value)
    else if (fault !== true) return fault
  }
  return fields
}

function bitsOf(bytes: Buffer, at: number): number {
  return characters[bytes[at] ?? 0] ?? 0
}

/** Notes what says something about the message itself; true when that is all it is for. */
function setApart(fields: Fields, bytes: Buffer, from: number, to: number, value: string): boolean | HeadFault {
  switch (to - from) {
    case 4:
      if (!isName(bytes, from, 'host')) return false
      if (fields.host !== undefined) return malformed('two Host headers')
      fields.host = value
      return true
    case 6:
      if (isName(bytes, from, 'expect')) {
        if (value.toLowerCase() === '100-continue') fields.expectsContinue = true
        else fields.isDemanding = true
      }
      return false
    case 7:
      if (isName(bytes, from, 'upgrade')) {
        fields.upgrade = fields.upgrade === undefined ? value : `${fields.upgrade}, ${value}`
        return false
      }
      return isName(bytes, from, 'trailer')
    case 10:
      if (isName(bytes, from, 'connection')) readConnection(fields, value)
      return false
    case 14:
      if (!isName(bytes, from, 'content-length')) return false
      if (fields.contentLength !== undefined) return malformed('two Content-Length headers')
      fields.contentLength = value
      return true
    case 17:
      if (!isName(bytes, from, 'transfer-encoding')) return false
      if (fields.transferEncoding !== undefined) return malformed('two Transfer-Encoding headers')
      fields.transferEncoding = value
      return true
    default:
      return false
  }
}

/** Whether the name at `at`, of the same length, is `name`, which is of lower-case letters and hyphens. */
function isName(bytes: Buffer, at: number, name: string): boolean {
  // Of the bytes of a token, 0x20 joins nothing to a letter but its capital, and nothing to a hyphen.
  for (let i = 0; i < name.length; i++) if (((bytes[at + i] ?? 0) | 0x20) !== name.charCodeAt(i)) return false
  return true
}

function readConnection(fields: Fields, value: string): void {
  if (value === 'keep-alive') return
  for (const option of value.toLowerCase().split(',')) {
    const name = option.trim()
    if (name === 'close') fields.closes = true
    else if (name === 'upgrade') fields.namesUpgrade = true
  }
}
