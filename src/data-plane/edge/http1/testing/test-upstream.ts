/** For tests: a connection to an upstream in memory, whose server is the test. */
import assert from 'node:assert/strict'
import type { ByteStream } from '../../../../lib/bytes/byte-stream.ts'
import { HeaderList } from '../../../../lib/http/header-list.ts'
import type {
  BodyReader,
  ResponseHead,
  UpstreamFault,
  UpstreamRequest,
  UpstreamSending,
} from '../../../requests/http-exchange.ts'
import { Sweep } from '../../deadlines.ts'
import { Http1Upstream } from '../upstream-connection.ts'
import { Read } from './memory-visitor.ts'
import { TestStream } from './test-stream.ts'

export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'

export class Upstream {
  readonly stream = new TestStream()
  readonly connection: Http1Upstream
  readonly broken: unknown[] = []
  changes = 0
  #timeMs = 0
  readonly #sweep = new Sweep({ now: () => this.#timeMs, everyMs: 1 << 30 })

  constructor(options: { answerMs?: number } = {}) {
    const onBroken = (cause: unknown): number => this.broken.push(cause)
    this.connection = new Http1Upstream({ stream: this.stream, sweep: this.#sweep, onBroken, ...options })
    this.connection.onChange = () => this.changes++
  }

  send(request: Partial<UpstreamRequest> = {}): Answer {
    return new Answer(this.connection, request)
  }

  /** One exchange that leaves the connection free. */
  use(): this {
    this.send()
    this.stream.feed('HTTP/1.1 204 No Content\r\n\r\n')
    this.stream.take()
    this.changes = 0
    assert.equal(this.connection.isFree, true)
    return this
  }

  wait(ms: number): void {
    this.#timeMs += ms
    this.#sweep.run()
  }

  get state(): 'free' | 'busy' | 'closed' {
    const { isFree, isClosed } = this.connection
    return isFree ? 'free' : isClosed ? 'closed' : 'busy'
  }
}

/** The outcome of a request. */
export class Answer {
  readonly sending: UpstreamSending
  readonly informed: string[] = []
  head: ResponseHead | undefined
  reader: BodyReader | undefined
  body = new Read()
  readonly faults: UpstreamFault[] = []
  upgraded: ByteStream | undefined

  constructor(connection: Http1Upstream, request: Partial<UpstreamRequest>, { reads = true } = {}) {
    const whole: UpstreamRequest = {
      method: 'GET',
      target: '/',
      headers: HeaderList.of([['Host', 'a']]),
      body: 'none',
      upgrade: undefined,
      ...request,
    }
    this.sending = connection.send(whole, {
      inform: (status, headers) => this.informed.push(`${status} ${[...headers].join()}`),
      respond: (head, body) => {
        this.head = head
        this.reader = body
        if (reads) body.read(this.body)
      },
      upgraded: (head, stream) => {
        this.head = head
        this.upgraded = stream
      },
      failed: (fault) => this.faults.push(fault),
    })
  }

  get fault(): UpstreamFault | undefined {
    return this.faults[0]
  }
}
