/** How the body of a message is framed, by RFC 9112 §6.3; doubtful framing is refused. */
import type { BodyLength } from '../../requests/http-exchange.ts'
import { LENGTH_DIGITS } from './bounds.ts'
import { type HeadFault, malformedHead } from './head-fault.ts'
import type { HeadFields } from './header-fields.ts'

const ZERO = '0'.charCodeAt(0)

/** What the fields announce: `unknown` is chunked, `none` is nothing at all. */
export function announcedBody({ contentLength, transferEncoding }: HeadFields): BodyLength | HeadFault {
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined) return malformedHead('Content-Length beside Transfer-Encoding')
    // A coding that only one of two servers can decode is a body that only one of them sees: request smuggling.
    if (transferEncoding.toLowerCase() !== 'chunked') return malformedHead('a Transfer-Encoding that is not chunked')
    return 'unknown'
  }
  if (contentLength === undefined) return 'none'
  const length = lengthOf(contentLength)
  return length >= 0 ? length : malformedHead('a Content-Length that is not a number')
}

/** A number of digits only, no more than are exact; negative when it is not one. */
function lengthOf(text: string): number {
  if (text.length === 0 || text.length > LENGTH_DIGITS) return -1
  let length = 0
  for (let i = 0; i < text.length; i++) {
    const digit = text.charCodeAt(i) - ZERO
    if (digit < 0 || digit > 9) return -1
    length = length * 10 + digit
  }
  return length
}
