/** Writes heads, in which headers about framing and the connection are ours, and all others are the caller's. */
import type { HeaderList } from '../../../lib/http/header-list.ts'
import { isFieldContent, isHeaderName } from '../../../lib/http/http-header.ts'
import { STATUS_CODES } from '../../../lib/http/node-http.ts'
import type { BodyLength, ResponseHead, UpstreamRequest } from '../../requests/http-exchange.ts'
import { isTrailer } from '../trailers.ts'

const line = /^[\x21-\x7e]+$/

/** Throws when something in it cannot be sent. */
export function requestHead({ method, target, headers, body, upgrade }: UpstreamRequest): string {
  if ((method !== 'GET' && !isHeaderName(method)) || !line.test(target))
    throw new Error('a request line that cannot be sent')
  const text = `${method} ${target} HTTP/1.1${fieldLines(headers, isOwnOfRequest)}${framingLine(body)}`
  if (upgrade === undefined) return `${text}\r\n\r\n`
  if (!isFieldContent(upgrade)) throw new Error('a protocol that cannot be asked for')
  return `${text}\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`
}

interface ResponseHeadOptions {
  /** The body that is announced; see `announced`. */
  readonly body: BodyLength
  readonly closes: boolean
  /** Whether the visitor takes a connection for closed unless it is told. */
  readonly isOld?: boolean
}

/** Throws when something in it cannot be sent. */
export function responseHead(
  { status, reason, headers }: ResponseHead,
  { body, closes, isOld }: ResponseHeadOptions,
): string {
  const text = statusLine(status, reason) + fieldLines(headers, isOwn) + framingLine(body)
  if (closes) return `${text}\r\nConnection: close\r\n\r\n`
  return text + (isOld ? '\r\nConnection: keep-alive\r\n\r\n' : '\r\n\r\n')
}

/** An interim response other than 101. */
export function interimHead(status: number, headers: HeaderList): string {
  return `${statusLine(status, '')}${fieldLines(headers, isOwn)}\r\n\r\n`
}

/** A 101; `Upgrade` is what the upstream chose, or else what the visitor requested. */
export function upgradeHead({ reason, headers }: ResponseHead, asked: string): string {
  const chosen = headers.get('upgrade') ?? asked
  if (!isFieldContent(chosen)) throw new Error('a protocol that cannot be named')
  const text = statusLine(101, reason) + fieldLines(headers, isOwnOfRequest)
  return `${text}\r\nConnection: Upgrade\r\nUpgrade: ${chosen}\r\n\r\n`
}

/** Ends a chunked body. Headers that cannot be trailers are left out: the sender may speak another version of HTTP. */
export function lastChunk(trailers: HeaderList | undefined): string {
  if (trailers === undefined) return '0\r\n\r\n'
  let lines = '0'
  for (let i = 0; i < trailers.size; i++) {
    const name = trailers.nameAt(i)
    const value = trailers.valueAt(i)
    if (isTrailer(name.key) && name.isToken && isFieldContent(value)) lines += name.lineStart + value
  }
  return `${lines}\r\n\r\n`
}

/** By status, with its usual reason. */
const usualLines: string[] = []
for (const [status, reason] of Object.entries(STATUS_CODES)) usualLines[Number(status)] = `HTTP/1.1 ${status} ${reason}`

/** Lines are written without their break, which the next line adds. */
function statusLine(status: number, reason: string): string {
  const usual = usualLines[status]
  if (usual !== undefined && (reason === '' || reason === STATUS_CODES[status])) return usual
  if (!Number.isInteger(status) || status < 100 || status > 999) throw new Error('a status that cannot be sent')
  if (!isFieldContent(reason)) throw new Error('a reason that cannot be sent')
  return `HTTP/1.1 ${status} ${reason}`
}

function fieldLines(headers: HeaderList, isLeftOut: (key: string) => boolean): string {
  let lines = ''
  for (let i = 0; i < headers.size; i++) {
    const name = headers.nameAt(i)
    if (isLeftOut(name.key)) continue
    const value = headers.valueAt(i)
    if (!name.isToken || (!headers.isChecked && !isFieldContent(value)))
      throw new Error(`a header that cannot be sent: \`${name.spelling}\``)
    lines += name.lineStart + value
  }
  return lines
}

function framingLine(body: BodyLength): string {
  if (body === 'none') return ''
  if (body === 'unknown') return '\r\nTransfer-Encoding: chunked'
  if (!Number.isSafeInteger(body) || body < 0) throw new Error('a length that cannot be sent')
  return `\r\nContent-Length: ${body}`
}

/** Framing and connection headers in the list are ignored; this connection writes its own. */
function isOwn(key: string): boolean {
  switch (key.length) {
    case 7:
      return key === 'trailer'
    case 10:
      return key === 'connection' || key === 'keep-alive'
    case 14:
      return key === 'content-length'
    case 16:
      return key === 'proxy-connection'
    case 17:
      return key === 'transfer-encoding'
    default:
      return false
  }
}

function isOwnOfRequest(key: string): boolean {
  return isOwn(key) || key === 'upgrade'
}
