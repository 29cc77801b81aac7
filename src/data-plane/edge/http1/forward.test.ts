import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { HeaderList } from '../../../lib/http/header-list.ts'
import type { UpstreamRequest } from '../../requests/http-exchange.ts'
import { Sweep } from '../deadlines.ts'
import { Http1Connection } from './server-connection.ts'
import type { Http1Exchange } from './server-exchange.ts'
import { Read, turn } from './testing/memory-visitor.ts'
import { forward } from './testing/test-forward.ts'
import { TestStream } from './testing/test-stream.ts'
import { Http1Upstream } from './upstream-connection.ts'

/** What a direction holds before its writer is asked to wait, in bytes. */
const ROOM_BYTES = 100

/** Two ends of a connection, whose bytes move when the test says so. */
class Wire {
  readonly ends = [new TestStream(), new TestStream()] as const
  readonly #ended = [false, false]

  /** Moves at most `max` bytes each way; true when something moved. */
  move(max: number): boolean {
    const there = this.#carry(0, max)
    return this.#carry(1, max) || there
  }

  #carry(side: 0 | 1, max: number): boolean {
    const [from, to] = side === 0 ? this.ends : [this.ends[1], this.ends[0]]
    const waiting = Buffer.concat(from.writes)
    from.writes.length = 0
    // A paused end does not read, so its system takes no more.
    const moved = to.isPaused ? Buffer.alloc(0) : waiting.subarray(0, max)
    const rest = waiting.subarray(moved.length)
    if (rest.length > 0) from.writes.push(rest)
    if (moved.length > 0) to.feed(Buffer.from(moved))
    const hadRoom = from.hasRoom
    from.hasRoom = rest.length < ROOM_BYTES
    if (!hadRoom && from.hasRoom) from.giveRoom()
    if (from.isEnded && rest.length === 0 && !this.#ended[side]) {
      this.#ended[side] = true
      to.feedEnd()
      return true
    }
    return moved.length > 0
  }
}

interface Message {
  readonly method: string
  readonly pieces: readonly string[]
  readonly isChunked: boolean
  readonly trailers: readonly (readonly [string, string])[]
}

function serve(stream: TestStream, sweep: Sweep, onExchange: (exchange: Http1Exchange) => void): void {
  const onBad = (code: string): never => assert.fail(code)
  new Http1Connection({ stream, sweep, onExchange, onBad, onBroken: (cause) => assert.fail(String(cause)) })
}

/** Answers with the body as it arrives; in chunks when it arrived so. */
function echo(exchange: Http1Exchange): void {
  const { body } = exchange.head
  const headers = HeaderList.of([['X-Method', exchange.head.method]])
  const writer = exchange.respond({ status: 200, reason: '', headers, body })
  writer.onDrain = () => exchange.body.resume()
  exchange.body.read({
    data(chunk) {
      if (!writer.write(chunk)) exchange.body.pause()
    },
    end: (trailers) => writer.end(trailers),
    failed: () => writer.abort(),
  })
}

const piece = fc.oneof(fc.string({ maxLength: 20 }), fc.constant('x'.repeat(300)), fc.constant('\r\n0\r\n\r\n'))
const message: fc.Arbitrary<Message> = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'X'),
  pieces: fc.array(
    piece.map((text) => Buffer.from(text).toString('latin1')),
    { maxLength: 6 },
  ),
  isChunked: fc.boolean(),
  trailers: fc.array(fc.tuple(fc.stringMatching(/^x-[a-z]{1,5}$/), fc.stringMatching(/^[a-z]{0,5}$/)), {
    maxLength: 2,
  }),
})

test('messages arrive unchanged, through small pieces and slow ends, over kept connections', async () => {
  const cases = fc.tuple(
    fc.array(message, { minLength: 1, maxLength: 4 }),
    fc.infiniteStream(fc.constantFrom(1, 5, 50, 10_000)),
  )
  await fc.assert(
    fc.asyncProperty(cases, async ([messages, sizes]) => {
      const sweep = new Sweep()
      const [outer, inner] = [new Wire(), new Wire()]
      const upstream = new Http1Upstream({ stream: inner.ends[0], sweep })
      serve(inner.ends[1], sweep, echo)
      serve(outer.ends[1], sweep, (exchange) => forward(exchange, upstream))
      const visitor = new Http1Upstream({ stream: outer.ends[0], sweep })
      const step = (): boolean => {
        const { value: size } = sizes.next()
        const moved = outer.move(size)
        return inner.move(size) || moved
      }
      for (const { method, pieces, isChunked, trailers } of messages) {
        const whole = pieces.join('')
        const request: UpstreamRequest = {
          method,
          target: '/',
          headers: HeaderList.of([['Host', 'a']]),
          body: isChunked ? 'unknown' : whole.length,
          upgrade: undefined,
        }
        const read = new Read()
        const fail = (): never => assert.fail('no answer')
        const sending = visitor.send(request, {
          inform: fail,
          respond(head, body) {
            assert.equal(head.headers.get('x-method'), method)
            body.read(read)
          },
          upgraded: fail,
          failed: (fault) => assert.fail(fault),
        })
        for (const each of pieces) {
          sending.body.write(Buffer.from(each, 'latin1'))
          step()
        }
        sending.body.end(HeaderList.of(trailers))
        for (let idle = 0; idle < 3; ) {
          await turn()
          idle = step() ? 0 : idle + 1
        }
        assert.deepEqual([read.state, read.body], ['whole', whole])
        assert.deepEqual(read.trailers, isChunked ? trailers : [])
        assert.deepEqual([visitor.isFree, upstream.isFree], [true, true])
      }
    }),
    { numRuns: 150 },
  )
})
