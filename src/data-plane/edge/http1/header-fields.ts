/** Reads the fields of a head or of trailers: strictly, in one pass, with those that frame the message set apart. */
import { HeaderList } from '../../../lib/http/header-list.ts'
import { mixCode, nameIn } from '../../../lib/http/header-name.ts'
import { COLON, CR, inToken, inValue, LF, SPACE, TAB } from './characters.ts'
import { HeadFault, malformedHead } from './head-fault.ts'
import type { Head } from './head-reader.ts'

/** RFC 9112 §6: the headers that give the length of a body. Each at most once. */
export class HeadFields {
  /** All others, in their order. */
  readonly headers = new HeaderList()
  host: string | undefined
  contentLength: string | undefined
  transferEncoding: string | undefined
  /** Whether `Connection` says that this is the last message. */
  closes = false
  /** Whether `Connection` asks to keep it, as clients of HTTP/1.0 do. */
  keepsAlive = false
  /** Whether `Connection` names `Upgrade`. */
  namesUpgrade = false
  upgrade: string | undefined
  /** Whether `Expect` asks for anything but `100-continue`. */
  isDemanding = false
  expectsContinue = false
}

interface FieldRules {
  readonly maxFields: number
  /** Requests only. */
  readonly dropsUnderscores: boolean
}

/** Reads the lines of `head` from `at` on. */
export function parseFields(head: Head, at: number, rules: FieldRules): HeadFields | HeadFault {
  const { bytes, from, to, text } = head
  const fields = new HeadFields()
  let count = 0
  for (let i = at; i < to; ) {
    if (++count > rules.maxFields) return new HeadFault('too_large', `more than ${rules.maxFields} fields`)
    const nameFrom = i
    let hash = 0
    for (let byte = bytes[i] ?? 0; inToken(byte); byte = bytes[++i] ?? 0) hash = mixCode(hash, byte)
    // Folded lines, spaces before the colon and empty names are refused here.
    if (i === nameFrom || bytes[i] !== COLON) return malformedHead('a line that does not begin with a name and a colon')
    const nameTo = i++
    while (bytes[i] === SPACE || bytes[i] === TAB) i++
    const valueFrom = i
    while (inValue(bytes[i] ?? 0)) i++
    let valueTo = i
    while (valueTo > valueFrom && (bytes[valueTo - 1] === SPACE || bytes[valueTo - 1] === TAB)) valueTo--
    if (bytes[i] !== CR || bytes[i + 1] !== LF) return malformedHead('a value with a control character')
    i += 2
    const name = nameIn(bytes, nameFrom, nameTo, hash)
    if (rules.dropsUnderscores && name.key.includes('_')) continue
    const value = text.slice(valueFrom - from, valueTo - from)
    const fault = setApart(fields, name.key, value)
    if (fault === false) fields.headers.addChecked(name, value)
    else if (fault !== true) return fault
  }
  return fields
}

/** Notes headers about the message itself; true when a header has no other purpose. */
function setApart(fields: HeadFields, key: string, value: string): boolean | HeadFault {
  switch (key) {
    case 'host':
      if (fields.host !== undefined) return malformedHead('two Host headers')
      fields.host = value
      return true
    case 'expect':
      if (value.toLowerCase() === '100-continue') fields.expectsContinue = true
      else fields.isDemanding = true
      return false
    case 'upgrade':
      fields.upgrade = fields.upgrade === undefined ? value : `${fields.upgrade}, ${value}`
      return false
    case 'trailer':
      return true
    case 'connection':
      readConnection(fields, value)
      return false
    case 'content-length':
      if (fields.contentLength !== undefined) return malformedHead('two Content-Length headers')
      fields.contentLength = value
      return true
    case 'transfer-encoding':
      if (fields.transferEncoding !== undefined) return malformedHead('two Transfer-Encoding headers')
      fields.transferEncoding = value
      return true
    default:
      return false
  }
}

function readConnection(fields: HeadFields, value: string): void {
  if (value === 'keep-alive') {
    fields.keepsAlive = true
    return
  }
  for (const option of value.toLowerCase().split(',')) {
    const name = option.trim()
    if (name === 'close') fields.closes = true
    else if (name === 'keep-alive') fields.keepsAlive = true
    else if (name === 'upgrade') fields.namesUpgrade = true
  }
}
