/** For tests: HTTP/2 connections behind a free port, without TLS, and visitors for them. */
import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { type AddressInfo, createServer } from 'node:net'
import type { TestContext } from 'node:test'
import { HeaderList } from '../../../../lib/http/header-list.ts'
import type { ResponseHead } from '../../../requests/http-exchange.ts'
import { Sweep } from '../../deadlines.ts'
import { errorPages } from '../../pages/error-page.ts'
import { Http2Connection, type Http2ConnectionOptions } from '../server-connection.ts'
import type { Http2Exchange } from '../server-exchange.ts'

interface Harness {
  readonly port: number
  readonly exchanges: Http2Exchange[]
  readonly connections: Http2Connection[]
  readonly broken: unknown[]
  readonly bad: string[]
  closed: number
}

export async function serve(
  t: TestContext,
  onExchange: (exchange: Http2Exchange) => void = answer,
  options: Partial<Http2ConnectionOptions> = {},
): Promise<Harness> {
  const harness: Harness = { port: 0, exchanges: [], connections: [], broken: [], bad: [], closed: 0 }
  const sweep = new Sweep({ everyMs: 5 })
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    harness.connections.push(
      new Http2Connection({
        socket,
        sweep,
        onExchange: (exchange) => {
          harness.exchanges.push(exchange)
          onExchange(exchange)
        },
        onBad: (code, what) => {
          harness.bad.push(what)
          return errorPages().plain(code)
        },
        onClosed: () => {
          harness.closed++
        },
        onBroken: (cause) => harness.broken.push(cause),
        ...options,
      }),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const connection of harness.connections) connection.reset()
    server.close()
  })
  return Object.assign(harness, { port: (server.address() as AddressInfo).port }) // it listens on a port
}

export function head(status: number, body: ResponseHead['body'], pairs: [string, string][] = []): ResponseHead {
  return { status, reason: '', headers: HeaderList.of(pairs), body }
}

export function answer(exchange: Http2Exchange): void {
  const writer = exchange.respond(head(200, 2))
  writer.write(Buffer.from('ok'))
  writer.end()
}

export function client(t: TestContext, port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  t.after(() => session.destroy())
  return session
}
