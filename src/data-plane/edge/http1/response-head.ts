/** Reads the head of a response, and says how its body is framed. */
import type { ResponseHead } from '../../requests/http-exchange.ts'
import { RESPONSE_HEADERS } from './bounds.ts'
import { CR, inValue, LF, SPACE } from './characters.ts'
import { announcedBody } from './framing.ts'
import { HeadFault, malformedHead } from './head-fault.ts'
import type { Head } from './head-reader.ts'
import { type HeadFields, parseFields } from './header-fields.ts'

/** How the body ends on the wire; with `none` no byte follows, whatever is announced. */
type ResponseFraming = 'none' | 'length' | 'chunked' | 'until_close'

export interface ParsedResponse extends ResponseHead {
  readonly framing: ResponseFraming
  /** The connection cannot be used for another request. */
  readonly closes: boolean
}

/** The fixed part that every response begins with. */
export const RESPONSE_BEGIN = 'HTTP/1.'

const STATUS_AT = RESPONSE_BEGIN.length + 2
const REASON_AT = STATUS_AT + 3
const ZERO = '0'.charCodeAt(0)

export function parseResponseHead(head: Head, { method }: { method: string }): ParsedResponse | HeadFault {
  const { bytes, from, text } = head
  const minor = digitAt(bytes, from + RESPONSE_BEGIN.length)
  const status = statusAt(bytes, from + STATUS_AT)
  const isStatus = bytes[from + STATUS_AT - 1] === SPACE && status >= 100
  if (!text.startsWith(RESPONSE_BEGIN) || !(minor <= 1) || !isStatus) return malformedHead('no status line')
  let i = from + REASON_AT
  while (inValue(bytes[i] ?? 0)) i++
  const hasReason = bytes[from + REASON_AT] === SPACE
  // Without a reason phrase the space is still required, though many servers leave it out.
  if ((i > from + REASON_AT && !hasReason) || bytes[i] !== CR || bytes[i + 1] !== LF)
    return malformedHead('no status line')
  const fields = parseFields(head, i + 2, { maxFields: RESPONSE_HEADERS, dropsUnderscores: false })
  if (fields instanceof HeadFault) return fields
  const reason = hasReason ? text.slice(REASON_AT + 1, i - from) : ''
  return assemble({ status, reason, fields, isOld: minor === 0, method })
}

/** Three digits; NaN when they are not. */
function statusAt(bytes: Buffer, at: number): number {
  return digitAt(bytes, at) * 100 + digitAt(bytes, at + 1) * 10 + digitAt(bytes, at + 2)
}

/** NaN for anything but a digit, so that every comparison with it is false. */
function digitAt(bytes: Buffer, at: number): number {
  const digit = (bytes[at] ?? 0) - ZERO
  return digit >= 0 && digit <= 9 ? digit : Number.NaN
}

interface Parts {
  readonly status: number
  readonly reason: string
  readonly fields: HeadFields
  /** HTTP/1.0: many small servers still speak it. Their connections are not kept. */
  readonly isOld: boolean
  readonly method: string
}

function assemble({ status, reason, fields, isOld, method }: Parts): ParsedResponse | HeadFault {
  const { headers } = fields
  const announced = announcedBody(fields)
  if (announced instanceof HeadFault) return announced
  if (announced === 'unknown' && isOld) return malformedHead('chunked in HTTP/1.0')
  const isFramed = announced !== 'none' && announced !== 0
  let closes = fields.closes || isOld
  if (status < 200 || status === 204) {
    if (isFramed && status < 200) return malformedHead('an interim response with a body')
    // Such a response cannot have a body. If one follows anyway, it must not be read as the next response.
    closes ||= isFramed
    return { status, reason, headers, body: 'none', framing: 'none', closes }
  }
  // RFC 9110 §8.6: the length is that of the body that a GET would have had.
  if (method === 'HEAD' || status === 304) {
    const body = typeof announced === 'number' ? announced : 'none'
    // A service that sends a body anyway may send it late, and the next visitor would get that body. A service that treats HEAD
    // like GET sends a body unless it announces an empty one. After a 304 it sends none if it announces none.
    closes ||= status === 304 ? isFramed : announced !== 0
    return { status, reason, headers, body, framing: 'none', closes }
  }
  if (announced === 'none') return { status, reason, headers, body: 'unknown', framing: 'until_close', closes: true }
  return { status, reason, headers, body: announced, framing: announced === 'unknown' ? 'chunked' : 'length', closes }
}
