/** How the body of a message is framed, by RFC 9112 §6.3, with every doubt refused. */
import type { BodyLength } from '../exchange.ts'
import { LENGTH_DIGITS } from './bounds.ts'
import type { Fields } from './fields.ts'
import { type HeadFault, malformed } from './head-fault.ts'

const digits = new RegExp(`^[0-9]{1,${LENGTH_DIGITS}}$`)

/** What the fields announce: `unknown` is chunked, `none` is nothing at all. */
export function announcedBody({ contentLength, transferEncoding }: Fields): BodyLength | HeadFault {
  if (transferEncoding !== undefined) {
    if (contentLength !== undefined) return malformed('Content-Length beside Transfer-Encoding')
    // Design §6 rule 3: a coding that only one of two servers undoes is a body that only one of them sees.
    if (transferEncoding.toLowerCase() !== 'chunked') return malformed('a Transfer-Encoding that is not chunked')
    return 'unknown'
  }
  if (contentLength === undefined) return 'none'
  return digits.test(contentLength) ? Number(contentLength) : malformed('a Content-Length that is not a number')
}
