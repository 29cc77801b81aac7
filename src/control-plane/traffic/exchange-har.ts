/** An exchange as a HAR document, which browsers and other tools read. */
import type { UnpackedText } from '../../lib/bytes/unpacker.ts'
import type { KeptBody, KeptHeader, KeptMessage, SeenExchange, WholeExchange } from '../../model/exchange.ts'

/** HAR's value for what is not known. */
const UNKNOWN = -1

/** `unpacked` is the body of the answer, if it was compressed. */
export function harOf(whole: WholeExchange, unpacked?: UnpackedText) {
  const { exchange, response } = whole
  const { timings } = exchange
  return {
    log: {
      version: '1.2',
      creator: { name: 'Postern', version: '1' },
      entries: [
        {
          startedDateTime: new Date(exchange.startedAt).toISOString(),
          time: exchange.durationMs,
          request: requestOf(whole),
          response: responseOf(exchange, response, unpacked),
          cache: {},
          timings: {
            blocked: timings.modules ?? UNKNOWN,
            connect: timings.dial ?? UNKNOWN,
            send: 0,
            wait: timings.wait ?? 0,
            receive: timings.receive ?? 0,
          },
          _id: exchange.id,
        },
      ],
    },
  }
}

function requestOf({ exchange, authority = exchange.host, request }: WholeExchange) {
  const { method, scheme, path, version, bytesIn } = exchange
  const headers = headersOf(request)
  const body = request?.body
  return {
    method,
    url: `${scheme}://${authority}${path}`,
    httpVersion: `HTTP/${version}`,
    cookies: [],
    headers,
    queryString: queryOf(path),
    ...(body && bytesIn > 0 && { postData: { mimeType: typeOf(headers), ...contentOf(body) } }),
    headersSize: UNKNOWN,
    bodySize: bytesIn,
  }
}

function responseOf(
  { status, version, bytesOut }: SeenExchange,
  kept: KeptMessage | undefined,
  unpacked: UnpackedText | undefined,
) {
  const headers = headersOf(kept)
  const body = kept?.body && contentOf(kept.body)
  return {
    status,
    statusText: '',
    httpVersion: `HTTP/${version}`,
    cookies: [],
    headers,
    content: {
      mimeType: typeOf(headers),
      // Tools expect the uncompressed body.
      ...(unpacked
        ? { size: unpacked.size, compression: unpacked.size - bytesOut, text: unpacked.content }
        : { size: bytesOut, ...body }),
    },
    redirectURL: headers.find(({ name }) => name.toLowerCase() === 'location')?.value ?? '',
    headersSize: UNKNOWN,
    bodySize: bytesOut,
  }
}

/** Masked headers are left out: a tool that repeats the request must not send a mask. */
function headersOf(kept: KeptMessage | undefined): Pick<KeptHeader, 'name' | 'value'>[] {
  return (kept?.headers ?? []).filter(({ isMasked }) => !isMasked).map(({ name, value }) => ({ name, value }))
}

function queryOf(path: string): { readonly name: string; readonly value: string }[] {
  const at = path.indexOf('?')
  return at < 0 ? [] : [...new URLSearchParams(path.slice(at + 1))].map(([name, value]) => ({ name, value }))
}

function typeOf(headers: readonly Pick<KeptHeader, 'name' | 'value'>[]): string {
  return headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? ''
}

function contentOf({ encoding, content }: KeptBody): { readonly text: string; readonly encoding?: 'base64' } {
  return encoding === 'base64' ? { text: content, encoding } : { text: content }
}
