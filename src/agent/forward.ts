/** Serves one connection of a visitor: connects it to the service, or refuses it when the service cannot be reached. */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ByteDuplex } from '../lib/bytes/byte-duplex.ts'
import { type RelayResult, relay } from '../lib/bytes/relay.ts'
import { socketStream } from '../lib/bytes/socket-stream.ts'
import type { ProxyHeader } from '../link/wire/proxy-header.ts'
import type { WireStream } from '../link/wire/wire-stream.ts'
import { type DialUpstream, type ServiceDial, ServiceFault } from './dial-upstream.ts'
import { ConnectionWatch, type ExchangeWatcher } from './inspect/connection-watch.ts'
import { HEAD_BYTES } from './inspect/http-reader.ts'
import { readProxyLine } from './proxy-line.ts'
import type { TunnelFigures } from './tunnel-figures.ts'

/** The visitor, as the server saw it. */
export interface Visitor {
  /** `ip:port`. */
  readonly address: string
  readonly proto: string
}

/** Where a tunnel leads: a service to dial, or a handler in this process. */
export type ForwardTarget =
  | {
      readonly dial: DialUpstream
      /** The stream begins with a PROXY header, which the service expects before its TLS handshake. */
      readonly takesProxyLine: boolean
      /** The stream carries HTTP/2, in which requests cannot be seen. */
      readonly isHttp2: boolean
      /** Whether requests may be shown in views of the agent. */
      readonly isInspected: boolean
    }
  | { readonly accept: (connection: Duplex, visitor: Visitor) => void }

export interface ConnectionEnd {
  readonly visitor: Visitor
  readonly durationMs: number
  /** Bytes from the visitor, and to it. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** Why the service could not be reached, or why bytes may be missing. */
  readonly error: Error | undefined
  /** The id of its first request, as in the server's log and on visitors' error pages; `''` if there is none. */
  readonly requestId: string
}

interface ForwardContext {
  readonly figures: TunnelFigures
  readonly now: () => number
  /** Gets requests and responses; omitted while nobody watches. */
  readonly watcher?: ExchangeWatcher | undefined
  /** Called when the service accepted the connection, or with the fault if it did not. */
  readonly onDialled?: (fault: ServiceFault | undefined, request: ServiceDial) => void
  readonly onEnd: (end: ConnectionEnd) => void
}

/** Takes over `stream`, whose header has been read. */
export function forwardConnection(
  stream: WireStream,
  header: ProxyHeader,
  target: ForwardTarget,
  { figures, now, watcher, onDialled, onEnd }: ForwardContext,
): void {
  const startedAt = now()
  const visitor = { address: header.clientAddr, proto: header.proto }
  const isHttp = header.proto === 'http' || header.proto === 'https'
  const isWatched = isHttp && 'dial' in target && target.isInspected && !target.isHttp2
  const watch = watcher && isWatched ? new ConnectionWatch(watcher) : undefined
  figures.opened()
  const ended = ({ there = 0, back = 0, error }: Partial<RelayResult>): void => {
    const durationMs = now() - startedAt
    figures.closed()
    if (!watch) figures.took(durationMs)
    onEnd({ visitor, durationMs, bytesIn: there, bytesOut: back, error, requestId: header.requestId })
  }
  if ('accept' in target) {
    const connection = new ByteDuplex(stream)
    connection.on('error', () => {})
    connection.once('close', () => ended({ error: connection.errored ?? undefined }))
    try {
      target.accept(connection, visitor)
    } catch (error) {
      connection.destroy(error instanceof Error ? error : new Error(String(error)))
    }
    return
  }

  const join = (socket: Socket, rest: Buffer | undefined): void => {
    if (rest) {
      socket.write(rest)
      watch?.fromVisitor(rest)
    }
    relay(stream, socketStream(socket, { outlivesFailedWrite: true }), { watch, onDone: ended })
  }
  /** The server then sends its own error page, which does not reveal the address of the service. */
  const refuse = (fault: ServiceFault): void => {
    stream.reset('stream_refused')
    ended({ error: fault })
  }
  const dial = (preface?: Buffer, rest?: Buffer): void => {
    const request = { isPassthrough: header.passthroughTls, preface }
    const cancel = target.dial(request, (result) => {
      stream.onArrival = undefined
      const fault = result instanceof ServiceFault ? result : undefined
      onDialled?.(fault, request)
      if (!(result instanceof ServiceFault)) return join(result, rest)
      if (!watch) return refuse(result)
      firstBytes(stream, HEAD_BYTES, (first) => {
        if (rest) watch.fromVisitor(rest)
        watch.fromVisitor(first)
        watch.serviceEnded()
        refuse(result)
      })
    })
    // Nothing is attached to the stream during the dial, so this is where a visitor that disconnects is noticed.
    stream.onArrival = () => {
      if (!stream.isClosed) return
      stream.onArrival = undefined
      cancel()
      ended({ error: new Error('the visitor disconnected') })
    }
  }
  if (target.takesProxyLine && !header.passthroughTls) {
    readProxyLine(stream, (line) => {
      if (line) dial(line.header, line.rest)
      else {
        stream.reset('stream_cancelled')
        ended({ error: new Error('the visitor disconnected') })
      }
    })
  } else dial()
}

/** How long to wait for the first bytes, in milliseconds: a stream is usually opened when there is a request to send. */
const WAIT_MS = 500

/** Calls `done` once with at most the first `bytes` bytes; with none if nothing arrives in time. */
function firstBytes(stream: WireStream, bytes: number, done: (first: Buffer) => void): void {
  const finish = (): void => {
    clearTimeout(timer)
    stream.onArrival = undefined
    done(stream.take(Math.min(stream.unread, bytes)) ?? Buffer.alloc(0))
  }
  const look = (): void => {
    if (stream.unread > 0 || stream.isClosed || stream.isEndReceived) finish()
  }
  const timer = setTimeout(finish, WAIT_MS).unref()
  stream.onArrival = look
  look()
}
