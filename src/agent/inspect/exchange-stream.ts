/** Streams exchanges to a reader as they come, as server-sent events. */
import type { ServerResponse } from 'node:http'
import { exchangeItem, frameView, socketMessages } from './exchange-view.ts'
import type { InspectedExchange } from './inspected-exchange.ts'
import type { LocalCall } from './local-request.ts'
import { namedExchange } from './request-routes.ts'

/** How long changes are gathered, in milliseconds. */
const GATHER_MS = 100

/** How often a keep-alive line is sent, in milliseconds, so that a lost reader is noticed. */
const ALIVE_MS = 5000

/** How much may wait for the reader before nothing more is written, in bytes. */
const WAITING_BYTES = 256 * 1024

/**
 * `GET /api/exchanges/stream`: `following` once all further changes will be sent, then events `exchange` with an item of
 * the list, and `removed` with an id.
 */
export function streamExchanges({ inspector, response }: LocalCall): void {
  const { exchanges } = inspector
  // All that waits for a slow reader is this list of changed exchanges, which is no longer than the list of kept exchanges.
  // Once the reader goes on, it gets the latest state of each.
  const changed = new Map<InspectedExchange, 'changed' | 'removed'>()
  const flow = eventFlow(response, () => {
    for (const [exchange, change] of changed) {
      if (flow.isFull) return
      changed.delete(exchange)
      const id = exchanges.idOf(exchange)
      if (change === 'removed') flow.send('removed', { id })
      else flow.send('exchange', exchangeItem(exchange, id))
    }
  })
  flow.onClosed(
    exchanges.listen((exchange, change) => {
      changed.set(exchange, change)
      flow.soon()
    }),
  )
  flow.send('following', {})
}

/**
 * `GET /api/exchanges/{id}/stream`: events `frame`, from the oldest kept one on, and `exchange` whenever it has changed.
 * Frames that were dropped before they could be sent are counted in an event `missed`.
 */
export function streamFrames(call: LocalCall): void {
  const { response, param: id } = call
  const exchange = namedExchange(call)
  let sent = 0
  let isRemoved = false
  const messages = socketMessages(exchange)
  const flow = eventFlow(response, async () => {
    // New frames may come, and the oldest may be dropped, while a frame is read.
    while (sent < exchange.frameCount) {
      const [oldest] = exchange.frames
      const missed = (oldest?.number ?? exchange.frameCount + 1) - sent - 1
      if (missed > 0) {
        flow.send('missed', { count: missed })
        sent += missed
      }
      const frame = oldest && exchange.frames[sent + 1 - oldest.number]
      if (!frame) break
      if (flow.isFull) return
      flow.send('frame', frameView(frame, await messages.read(frame)))
      sent = frame.number
    }
    flow.send('exchange', exchangeItem(exchange, id))
    if (isRemoved) flow.send('removed', { id })
    if (isRemoved || exchange.end !== undefined) response.end()
  })
  flow.onClosed(
    call.inspector.exchanges.listen((each, change) => {
      if (each !== exchange) return
      isRemoved ||= change === 'removed'
      flow.soon()
    }),
  )
  flow.soon()
}

interface EventFlow {
  /** Whether the reader must read before more is written. */
  readonly isFull: boolean
  send(event: string, data: unknown): void
  /** Calls `flush` in a moment. */
  soon(): void
  onClosed(run: () => void): void
}

function eventFlow(response: ServerResponse, flush: () => void | Promise<void>): EventFlow {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' })
  response.write(': hello\n\n')
  let timer: NodeJS.Timeout | undefined
  let isFlushing = false
  const isFull = (): boolean => response.writableLength > WAITING_BYTES
  const run = async (): Promise<void> => {
    timer = undefined
    // One flush at a time, and another one for changes that came meanwhile.
    if (isFlushing) soon()
    if (isFlushing || isFull() || response.destroyed || response.writableEnded) return
    isFlushing = true
    try {
      await flush()
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error))
      response.destroy()
    }
    isFlushing = false
  }
  const soon = (): void => {
    timer ??= setTimeout(() => void run(), GATHER_MS).unref()
  }
  const alive = setInterval(() => {
    if (!isFull()) response.write(': alive\n\n')
  }, ALIVE_MS).unref()
  response.on('drain', soon)
  response.once('close', () => {
    clearInterval(alive)
    clearTimeout(timer)
  })
  return {
    get isFull() {
      return isFull()
    },
    send: (event, data) => void response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`),
    soon,
    onClosed: (close) => void response.once('close', close),
  }
}
