/** For tests: a minimal proxy between a visitor and an upstream. */

import { relay } from '../../../../lib/bytes/relay.ts'
import { HeaderList } from '../../../../lib/http/header-list.ts'
import type { BodyReader, BodySink, BodyWriter, Exchange, UpstreamConnection } from '../../../requests/http-exchange.ts'

const connectionHeaders = new Set(['connection', 'upgrade', 'keep-alive', 'te', 'expect', 'proxy-connection'])

interface ForwardOptions {
  /** Receives the body of the request too, after it was forwarded. */
  readonly heard?: BodySink
}

/** Sends the request on and the answer back. */
export function forward(exchange: Exchange, upstream: UpstreamConnection, { heard }: ForwardOptions = {}): void {
  const { method, target, authority, body, upgrade } = exchange.head
  const headers = new HeaderList()
  headers.add('Host', authority)
  for (const [name, value] of exchange.head.headers) {
    if (!connectionHeaders.has(name.toLowerCase())) headers.add(name, value)
  }
  const sending = upstream.send(
    { method, target, headers, body, upgrade },
    {
      inform: (status, interim) => exchange.inform(status, interim),
      respond(head, answer) {
        head.headers.removeWhere(({ key }) => connectionHeaders.has(key))
        pipe(answer, exchange.respond(head))
      },
      upgraded: (head, stream) => relay(exchange.upgrade(head), stream),
      failed() {
        exchange.respond({ status: 502, reason: '', headers: new HeaderList(), body: 'none' }).end()
      },
    },
  )
  exchange.onAbort = () => sending.cancel()
  pipe(exchange.body, sending.body, heard)
}

function pipe(reader: BodyReader, writer: BodyWriter, heard?: BodySink): void {
  writer.onDrain = () => reader.resume()
  reader.read({
    data(chunk) {
      if (!writer.write(chunk)) reader.pause()
      heard?.data(chunk)
    },
    end(trailers) {
      writer.end(trailers)
      heard?.end(trailers)
    },
    failed(error) {
      writer.abort()
      heard?.failed(error)
    },
  })
}
