/** Sends a request again, unchanged or edited, to the service of a tunnel; it is inspected like requests of visitors. */
import type { ByteStream } from '../../lib/bytes/byte-stream.ts'
import { socketStream } from '../../lib/bytes/socket-stream.ts'
import { ServiceFault } from '../dial-upstream.ts'
import type { AgentTunnel } from '../tunnel.ts'
import { ConnectionWatch } from './connection-watch.ts'
import { fieldOf, fieldsOf, type HeadField } from './http-head.ts'
import type { InspectedExchange } from './inspected-exchange.ts'
import type { InspectedExchanges } from './inspected-exchanges.ts'
import { shownName } from './inspector.ts'
import { rawMessage } from './request-view.ts'

/** How long a response may take in all, in milliseconds: some never end. */
const REPLAY_MS = 60_000

/** How long the caller waits for the end, in milliseconds; after that the replay goes on without the caller. */
const PATIENCE_MS = 10_000

export interface RequestChanges {
  readonly method?: string | undefined
  readonly path?: string | undefined
  /** All headers except those for the length of the body. */
  readonly headers?: readonly HeadField[] | undefined
  readonly body?: Buffer | undefined
}

/** The request cannot be replayed; the message says why. */
export class ReplayRefused extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'ReplayRefused'
  }
}

interface ReplayOptions {
  readonly exchanges: InspectedExchanges
  readonly exchange: InspectedExchange
  readonly tunnel: AgentTunnel
  readonly changes: RequestChanges
}

/** Resolves with the new exchange, which has ended unless it takes long; rejects with `ReplayRefused`. */
export async function replay({ exchanges, exchange, tunnel, changes }: ReplayOptions): Promise<InspectedExchange> {
  const { target } = tunnel.plan
  if (!('dial' in target))
    throw new ReplayRefused('the tunnel forwards to a handler inside a program, which cannot get replays')
  if (target.isHttp2) throw new ReplayRefused('the service speaks HTTP/2, but replays are HTTP/1.1')
  const request = requestBytes(exchange, changes)
  const begun: { exchange?: InspectedExchange } = {}
  const done = Promise.withResolvers<void>()
  const watch = new ConnectionWatch({
    began(head) {
      begun.exchange = exchanges.begin(head, {
        tunnelName: shownName(tunnel),
        scheme: exchange.origin.scheme,
        clientAddress: '127.0.0.1',
        replayOf: exchanges.idOf(exchange),
        onEnded: () => done.resolve(),
      })
      return begun.exchange
    },
  })
  watch.fromVisitor(request)
  if (!begun.exchange) throw new ReplayRefused('the request cannot be parsed')
  const sent = begun.exchange
  let stream: ByteStream | undefined
  const over = (): void => {
    clearTimeout(timer)
    watch.serviceEnded()
    watch.closed()
    if (stream) stream.reset()
    else cancel()
  }
  const timer = setTimeout(over, REPLAY_MS)
  const cancel = target.dial({ isPassthrough: false, preface: proxyPreface(tunnel) }, (socket) => {
    if (socket instanceof ServiceFault) {
      over()
      return
    }
    stream = socketStream(socket, { outlivesFailedWrite: true })
    const answer = (chunk: Buffer): void => {
      watch.fromService(chunk)
      if (sent.end !== undefined) over()
    }
    stream.attach({ data: answer, lent: answer, end: over, drain() {}, closed: over })
    stream.write(request)
  })
  const patience = setTimeout(() => done.resolve(), PATIENCE_MS)
  await done.promise
  clearTimeout(patience)
  return sent
}

/** Headers that are replaced, since they depend on the body. */
const framing: ReadonlySet<string> = new Set(['content-length', 'transfer-encoding', 'trailer', 'expect'])

function requestBytes(exchange: InspectedExchange, changes: RequestChanges): Buffer {
  const { requestHead, requestBody } = exchange
  const fields = changes.headers ?? fieldsOf(requestHead)
  if (fields.some(({ name }) => name.toLowerCase() === 'upgrade')) {
    throw new ReplayRefused('it asks for an upgrade of the connection, which cannot be replayed')
  }
  if (changes.body === undefined && !exchange.isRequestWhole) {
    throw new ReplayRefused('its body was not kept completely; send one as `body`')
  }
  const { method, path, headers, body } = changes
  const isSame = [method, path, headers, body].every((each) => each === undefined)
  if (isSame) return rawMessage(requestHead, requestBody)
  const content = body ?? requestBody?.bytes ?? Buffer.alloc(0)
  const kept = fields.filter(({ name }) => !framing.has(name.toLowerCase()))
  const host = kept.some(({ name }) => name.toLowerCase() === 'host') ? [] : [hostField(requestHead)]
  const length = content.length > 0 || requestBody ? [{ name: 'Content-Length', value: String(content.length) }] : []
  const lines = [...host, ...kept, ...length].map(({ name, value }) => `${name}: ${value}\r\n`)
  const start = `${method ?? exchange.method} ${path ?? exchange.target} HTTP/1.1\r\n`
  return Buffer.concat([Buffer.from(`${start}${lines.join('')}\r\n`), content])
}

function hostField(head: string): HeadField {
  return { name: 'Host', value: fieldOf(head, 'host') }
}

/** The PROXY header for a service that expects one; it says that the connection is the agent's own. */
function proxyPreface({ plan: { asks } }: AgentTunnel): Buffer | undefined {
  const version = 'opts' in asks ? Number(asks.opts.ProxyProto ?? 0) : 0
  if (version === 1) return Buffer.from('PROXY UNKNOWN\r\n')
  return version === 2 ? Buffer.from('\r\n\r\n\0\r\nQUIT\n\x20\0\0\0', 'latin1') : undefined
}
