/** What a visitor gets for an error: a page, JSON, plain text or a gRPC status, whichever the client can read. */
import { HeaderList } from '../../../lib/http/header-list.ts'
import { type VisitorErrorCode, visitorErrors } from '../../../model/visitor-errors.ts'
import type { RequestHead, ResponseHead } from '../../requests/http-exchange.ts'
import { htmlPage, htmlPolicy } from './html.ts'

export interface ErrorPage {
  readonly head: ResponseHead
  /** Empty for a gRPC status, which is in the head. */
  readonly body: Buffer
}

type Form = 'html' | 'json' | 'text' | 'grpc'

type Pairs = readonly (readonly [string, string])[]

/** The error pages of a server. Callers may change the headers of a page. */
export interface ErrorPages {
  /**
   * `requestId` is the id of the request in our log: the visitor can report it, and the operator finds the line.
   * Left out for requests that have no line.
   */
  readonly forRequest: (
    code: VisitorErrorCode,
    request: Pick<RequestHead, 'method' | 'headers'>,
    requestId?: string,
  ) => ErrorPage
  /** For something that was not a request, when nothing is known about the client. */
  readonly plain: (code: VisitorErrorCode) => ErrorPage
}

/** Pages with ngrok's number for their error in `ngrok-error-code`, or without it. Both are built already. */
export function errorPages({ ngrokErrorHeader = true } = {}): ErrorPages {
  return ngrokErrorHeader ? numbered : unnumbered
}

const numbered = pagesWith('numbered')
const unnumbered = pagesWith('unnumbered')

function pagesWith(pairs: 'numbered' | 'unnumbered'): ErrorPages {
  return {
    forRequest: (code, { method, headers }, requestId) => pageOf(code, formFor(method, headers), { pairs, requestId }),
    plain: (code) => pageOf(code, 'text', { pairs }),
  }
}

function pageOf(
  code: VisitorErrorCode,
  form: Form,
  { pairs, requestId }: { pairs: 'numbered' | 'unnumbered'; requestId?: string | undefined },
): ErrorPage {
  const { [pairs]: given, plain, traceable } = pages[code][form]
  const body = requestId === undefined ? plain : Buffer.from(traceable.join(requestId))
  const headers = HeaderList.of(given)
  if (requestId !== undefined) headers.add('postern-request-id', requestId)
  const length = form === 'grpc' ? ('none' as const) : body.length
  return { head: { status: visitorErrors[code].status, reason: '', headers, body: length }, body }
}

/** Not gRPC-Web: it runs in browsers, which look at the HTTP status. */
const grpcType = /^application\/grpc(?!-web)/i

function formFor(method: string, headers: HeaderList): Form {
  if (grpcType.test(headers.get('content-type') ?? '')) return 'grpc'
  const accept = headers.all('accept').join(',').toLowerCase()
  if (accept.includes('text/html') && (method === 'GET' || method === 'HEAD')) return 'html'
  return accept.includes('application/json') ? 'json' : 'text'
}

/** Errors that pass within a second or so. */
const soon: ReadonlySet<VisitorErrorCode> = new Set(['EDGE_STARTING', 'LOOK_UP_BUSY', 'NODE_UNREACHABLE'])

interface PageForm {
  /** Its headers. */
  readonly numbered: Pairs
  /** The same without ngrok's number. */
  readonly unnumbered: Pairs
  /** The body without a request id. */
  readonly plain: Buffer
  /** The parts of the body before and after a request id. */
  readonly traceable: readonly string[]
}

/** The placeholder for the request id; nothing else in a page looks like it. */
const ID_MARK = '{request}'

/** Built once: all they get from a request is the id that we drew for it, and nothing that a visitor sent. */
const pages = Object.fromEntries(
  // The casts are safe: these are all the keys of that table.
  Object.keys(visitorErrors).map((code) => [code, formsOf(code as VisitorErrorCode)]),
) as Readonly<Record<VisitorErrorCode, Readonly<Record<Form, PageForm>>>>

function formsOf(code: VisitorErrorCode): Record<Form, PageForm> {
  const { status, text, ngrok } = visitorErrors[code]
  const name = `ERR_${code}`
  const common: Pairs = [
    ['cache-control', 'no-store'],
    ['postern-error-code', name],
    ['x-content-type-options', 'nosniff'],
    ...(soon.has(code) ? [['retry-after', '1'] as const] : []),
  ]
  const form = (type: string, body: (requestId?: string) => string, more: Pairs = []): PageForm => {
    const unnumbered: Pairs = [['content-type', type], ...common, ...more]
    return {
      // Programs written for ngrok's edge read this header.
      numbered: [...unnumbered, ['ngrok-error-code', `ERR_NGROK_${ngrok}`]],
      unnumbered,
      plain: Buffer.from(body()),
      traceable: body(ID_MARK).split(ID_MARK),
    }
  }
  return {
    html: form('text/html; charset=utf-8', (requestId) => htmlPage({ status, text, name, requestId }), [
      ['content-security-policy', htmlPolicy],
    ]),
    json: form('application/json', (requestId) =>
      JSON.stringify({ error_code: name, msg: text, request_id: requestId }),
    ),
    text: form('text/plain; charset=utf-8', (requestId) =>
      [text, name, ...(requestId === undefined ? [] : [`request ${requestId}`]), ''].join('\n'),
    ),
    grpc: form('application/grpc', () => '', [
      ['grpc-status', String(grpcStatus(status))],
      ['grpc-message', grpcMessage(`${text} ${name}`)],
    ]),
  }
}

/** UNAUTHENTICATED, PERMISSION_DENIED, INTERNAL for what is wrong with the request itself, else UNAVAILABLE. */
function grpcStatus(status: number): number {
  if (status === 401) return 16
  if (status === 403) return 7
  return status === 404 || status === 421 || status >= 500 ? 14 : 13
}

/** The percent-encoding of `grpc-message`: all but visible ASCII and spaces, and `%` itself. */
function grpcMessage(text: string): string {
  return encodeURIComponent(text).replace(/%([2-7][0-9A-F])/g, (encoded, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return character === '%' || character === '\x7f' ? encoded : character
  })
}
