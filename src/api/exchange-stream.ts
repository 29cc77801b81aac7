/** `GET /exchanges/stream`: exchanges as they come, as server-sent events. What a slow reader misses is counted, not kept. */
import { Readable } from 'node:stream'
import type { ExchangeStreams } from '../control/exchange-streams.ts'
import type { Exchanges } from '../control/exchanges.ts'
import type { Links } from '../control/links.ts'
import type { Principal } from '../control/principal.ts'
import type { ExchangeFilter } from '../model/exchange.ts'

export interface ExchangeStreamOptions {
  readonly streams: ExchangeStreams
  readonly exchanges: Pick<Exchanges, 'show'>
  readonly links: Links
  readonly filter: ExchangeFilter
  readonly principal: Principal
  /** Who calls, from now on; undefined when the key opens nothing any more. */
  readonly recognise: () => Promise<Principal | undefined>
}

/** How much may wait for a reader, in bytes; further exchanges are only counted. */
const MAX_WAITING = 64 * 1024

/** Between two looks at the key, in milliseconds. */
const KEY_MS = 1000

/** Looks in a row that may fail before the stream ends. */
const MAX_FAILURES = 15

/** How often a reader hears something, so that neither it nor a proxy takes the connection for dead, in milliseconds. */
const ALIVE_MS = 5000

/** The events; ends when the key does, when the server stops, and when it is destroyed. Throws `Refusal`. */
export function exchangeStream(options: ExchangeStreamOptions): Readable {
  const { streams, exchanges, links, filter, recognise } = options
  let { principal } = options
  let missed = 0
  let failures = 0
  const stream = new Readable({ read() {}, highWaterMark: MAX_WAITING })
  const isFull = (): boolean => stream.readableLength >= MAX_WAITING
  const tellMissed = (): void => {
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
    saw: (seen, notTold) => {
      missed += notTold
      for (const exchange of seen) {
        if (isFull()) {
          missed++
          continue
        }
        tellMissed()
        stream.push(event('exchange', exchanges.show(exchange, links), exchange.id))
      }
      if (!isFull()) tellMissed()
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
      // The database may be away for a moment; for longer, the key may have ended unseen.
      () => {
        if (++failures >= MAX_FAILURES) end()
      },
    )
  }, KEY_MS).unref()
  const aliveTimer = setInterval(() => {
    if (isFull()) return
    tellMissed()
    stream.push(': still here\n\n')
  }, ALIVE_MS).unref()
  const stop = (): void => {
    unwatch()
    clearInterval(keyTimer)
    clearInterval(aliveTimer)
  }
  stream.on('close', stop)
  // So that a reader knows that it is heard.
  stream.push(': exchanges follow\n\n')
  return stream
}

/** JSON has no line ends of its own, so one line is one event. */
function event(name: string, data: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
}
