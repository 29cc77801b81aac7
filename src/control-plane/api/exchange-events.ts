/** `GET /exchanges/stream`: exchanges as they come, as server-sent events. */
import { Readable } from 'node:stream'
import type { ExchangeFilter } from '../../model/exchange.ts'
import type { ExchangeStreams } from '../traffic/exchange-streams.ts'
import type { Exchanges } from '../traffic/listed-exchanges.ts'
import type { CheckedCall } from './checked-call.ts'

interface ExchangeStreamOptions extends Pick<CheckedCall, 'links' | 'principal' | 'recognise'> {
  readonly streams: ExchangeStreams
  readonly exchanges: Pick<Exchanges, 'show'>
  readonly filter: ExchangeFilter
}

/** The most bytes that wait for a reader; exchanges that a slow reader misses are counted and not kept. */
const MAX_WAITING = 64 * 1024

/** Pause between two checks of the key, in milliseconds. */
const KEY_MS = 1000

/** The stream ends after this many failed checks in a row. */
const MAX_FAILURES = 15

/** How often something is sent, so that no reader or proxy takes the connection for dead, in milliseconds. */
const ALIVE_MS = 5000

/** The stream of events. It ends when the key becomes invalid or the server stops. Throws `Refusal`. */
export function exchangeStream(options: ExchangeStreamOptions): Readable {
  const { streams, exchanges, links, filter, recognise } = options
  let { principal } = options
  let missed = 0
  let failures = 0
  const stream = new Readable({ read() {}, highWaterMark: MAX_WAITING })
  const isFull = (): boolean => stream.readableLength >= MAX_WAITING
  const reportMissed = (): void => {
    if (missed > 0) stream.push(event('missed', { count: missed }))
    missed = 0
  }
  const end = (): void => {
    if (!stream.destroyed && !stream.readableEnded) stream.push(null)
    stop()
  }
  const unwatch = streams.watch({
    principal: () => principal,
    filter,
    follows: () => stream.push(event('following', {})),
    saw: (seen, unreported) => {
      missed += unreported
      for (const exchange of seen) {
        if (isFull()) {
          missed++
          continue
        }
        reportMissed()
        stream.push(event('exchange', exchanges.show(exchange, links), exchange.id))
      }
      if (!isFull()) reportMissed()
    },
    end,
  })
  const keyTimer = setInterval(() => {
    recognise().then(
      (known) => {
        failures = 0
        if (known) principal = known
        else end()
      },
      // The database may be down for a moment; after longer, the key may have become invalid unnoticed.
      () => {
        if (++failures >= MAX_FAILURES) end()
      },
    )
  }, KEY_MS).unref()
  const aliveTimer = setInterval(() => {
    if (isFull()) return
    reportMissed()
    stream.push(': still here\n\n')
  }, ALIVE_MS).unref()
  const stop = (): void => {
    unwatch()
    clearInterval(keyTimer)
    clearInterval(aliveTimer)
  }
  stream.on('close', stop)
  // Confirms to the reader that the stream is open.
  stream.push(': exchanges follow\n\n')
  return stream
}

/** JSON contains no raw line ends, so the data of an event is one line. */
function event(name: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
