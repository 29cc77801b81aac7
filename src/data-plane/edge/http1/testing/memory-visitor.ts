/** For tests: a visitor's connection in memory, with what it delivered and a clock that only the test moves. */
import { setImmediate } from 'node:timers/promises'
import { HeaderList } from '../../../../lib/http/header-list.ts'
import { visitorErrors } from '../../../../model/visitor-errors.ts'
import type { BodyLength, BodyReader, BodySink, ResponseHead } from '../../../requests/http-exchange.ts'
import { Sweep } from '../../deadlines.ts'
import type { Http1Limits } from '../bounds.ts'
import { Http1Connection } from '../server-connection.ts'
import type { Http1Exchange } from '../server-exchange.ts'
import { TestStream } from './test-stream.ts'

export const get = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'

export function post(body: string): string {
  return `POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
}

interface VisitorOptions {
  /** Takes each exchange; without it they wait in `exchanges`. */
  readonly handle?: (exchange: Http1Exchange) => void
  readonly limits?: Http1Limits
  readonly onBad?: () => never
}

export class Visitor {
  readonly stream = new TestStream()
  readonly exchanges: Http1Exchange[] = []
  readonly bad: string[] = []
  readonly broken: unknown[] = []
  /** What happened, in order. */
  readonly events: string[] = []
  readonly connection: Http1Connection
  closes = 0
  #timeMs = 0
  readonly #sweep = new Sweep({ now: () => this.#timeMs, everyMs: 1 << 30 })

  constructor({ handle, limits, onBad }: VisitorOptions = {}) {
    this.connection = new Http1Connection({
      stream: this.stream,
      sweep: this.#sweep,
      ...(limits && { limits }),
      onExchange: (exchange) => {
        this.exchanges.push(exchange)
        exchange.onAbort = () => this.events.push('abort')
        exchange.onDone = () => this.events.push('done')
        handle?.(exchange)
      },
      onBad: (code) => {
        this.bad.push(code)
        onBad?.()
        return { head: head(visitorErrors[code].status, 'none'), body: Buffer.from(`${code}\n`) }
      },
      onClosed: () => this.closes++,
      onBroken: (cause) => this.broken.push(cause),
    })
  }

  get last(): Http1Exchange {
    const last = this.exchanges.at(-1)
    if (!last) throw new Error('there is no exchange')
    return last
  }

  /** Lets time pass, and checks deadlines. */
  wait(ms: number): void {
    this.#timeMs += ms
    this.#sweep.run()
  }
}

/** The end of a turn: gathered bytes have been sent. */
export async function turn(): Promise<void> {
  await setImmediate()
}

export function head(status: number, body: BodyLength, headers: [string, string][] = []): ResponseHead {
  return { status, reason: '', headers: HeaderList.of(headers), body }
}

export function answer(exchange: Http1Exchange, text: string, status = 200): void {
  const writer = exchange.respond(head(status, text.length))
  writer.write(Buffer.from(text, 'latin1'))
  writer.end()
}

/** Answers each with what it sent. */
export function echo(exchange: Http1Exchange): void {
  const read = new Read()
  exchange.body.read({
    data: (chunk) => read.data(chunk),
    end: (trailers) => {
      const more = [...(trailers ?? [])].map(([name, value]) => `${name}=${value}`).join()
      answer(exchange, `${exchange.head.method} ${exchange.head.target} ${read.body}${more}`)
    },
    failed() {},
  })
}

/** A body as it was read. */
export class Read implements BodySink {
  body = ''
  pieces = 0
  trailers: [string, string][] = []
  state: 'open' | 'whole' | 'failed' = 'open'
  error: Error | undefined

  constructor(reader?: BodyReader) {
    reader?.read(this)
  }

  data(chunk: Buffer): void {
    if (this.state !== 'open') throw new Error(`data of a body that is ${this.state}`)
    this.body += chunk.toString('latin1')
    this.pieces++
  }

  end(trailers: HeaderList | undefined): void {
    if (this.state !== 'open') throw new Error(`the end of a body that is ${this.state}`)
    this.state = 'whole'
    this.trailers = [...(trailers ?? [])]
  }

  failed(error: Error): void {
    if (this.state !== 'open') throw new Error(`the failure of a body that is ${this.state}`)
    this.state = 'failed'
    this.error = error
  }
}
