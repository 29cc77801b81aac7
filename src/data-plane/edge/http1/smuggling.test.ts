import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, METHODS, type ServerResponse } from 'node:http'
import { Duplex } from 'node:stream'
import { after, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fc from 'fast-check'
import { Sweep } from '../deadlines.ts'
import { Visitor } from './testing/memory-visitor.ts'
import { forward } from './testing/test-forward.ts'
import { TestStream } from './testing/test-stream.ts'
import { Http1Upstream } from './upstream-connection.ts'

/** How many shapes are tried. */
const SHAPES = 3000

const sweep = new Sweep()

/** Sends `text` through us to an upstream that answers everything: the requests seen here, and the bytes it got. */
function carry(text: string, size: number): { asked: string[]; tape: string; visitor: Visitor } {
  const asked: string[] = []
  const tapes: TestStream[] = []
  const visitor = new Visitor({
    handle(exchange) {
      const stream = new TestStream()
      tapes.push(stream)
      const upstream = new Http1Upstream({ stream, sweep })
      let data = ''
      forward(exchange, upstream, {
        heard: {
          data(chunk) {
            data += chunk.toString('latin1')
          },
          end() {
            asked.push(`${exchange.head.method} ${exchange.head.target} ${data}`)
            stream.feed('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
          },
          failed: () => tapes.pop(),
        },
      })
    },
  })
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; at += size) visitor.stream.feed(bytes.subarray(at, at + size))
  visitor.stream.feedEnd()
  return { asked, tape: tapes.map(({ sent }) => sent).join(''), visitor }
}

/** Another server, which reads the same bytes. */
const judge = createServer()
after(() => judge.close())

async function read(tape: string): Promise<string[]> {
  const seen: string[] = []
  let open = 0
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const place = seen.push('cut short') - 1
    let data = ''
    open++
    request.setEncoding('latin1').on('data', (piece: string) => {
      data += piece
    })
    request.on('error', () => {})
    request.on('end', () => {
      seen[place] = `${request.method} ${request.url} ${data}`
      open--
      response.end()
    })
  }
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
  judge.on('request', listener)
  judge.emit('connection', socket)
  socket.push(Buffer.from(tape, 'latin1'))
  // At most as many requests as there could be, or as many as come.
  const most = tape.split(' HTTP/1.1\r\n').length - 1
  for (let turns = 0; turns < 30 && (seen.length < most || open > 0); turns++) await setImmediate()
  judge.off('request', listener)
  socket.destroy()
  return seen
}

const eol = fc.oneof({ weight: 40, arbitrary: fc.constant('\r\n') }, fc.constantFrom('\n', '\r', '\r\r\n', '\r\n '))
const framing = fc.constantFrom(
  'Content-Length: 5',
  'Content-Length: 0',
  'Content-Length: 44',
  'content-length:5',
  'Content-Length : 5',
  'Content-Length: +5',
  'Content-Length: 5, 5',
  'Content-Length: 0x5',
  'Content_Length: 5',
  'Content-Length:\t5\t',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: Chunked',
  'transfer-encoding:chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: identity, chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding:\x0bchunked',
  'Transfer-Encoding: "chunked"',
  'Transfer_Encoding: chunked',
  'X: y\nTransfer-Encoding: chunked',
  'X: y\r\n Transfer-Encoding: chunked',
  'Connection: content-length',
  'Connection: close',
  'Expect: 100-continue',
  'Host: b',
  'Upgrade: h2c',
  'Connection: Upgrade',
)
const body = fc.constantFrom(
  '',
  'hello',
  '5\r\nhello\r\n0\r\n\r\n',
  '5;a=b\r\nhello\r\n0\r\n\r\n',
  '5\r\nhello\r\n0\r\nX-T: u\r\n\r\n',
  '5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n',
  '5\nhello\r\n0\r\n\r\n',
  '5;\nhello\r\n0\r\n\r\n',
  '0x5\r\nhello\r\n0\r\n\r\n',
  ' 5\r\nhello\r\n0\r\n\r\n',
  '5 \r\nhello\r\n0\r\n\r\n',
  '5\r\nhello0\r\n\r\n',
  '6\r\nhello\r\n0\r\n\r\n',
  '0\r\n\r\n',
  '0\r\n',
  '0\r\nGET /trailer HTTP/1.1\r\nHost: a\r\n\r\n',
  '00000000000000005\r\nhello\r\n0\r\n\r\n',
  'ffffffffffffffff\r\nhello',
  '5\r\nhello\r\n0\r\n\r\nGET /behind HTTP/1.1\r\nHost: a\r\n\r\n',
  'GET /hidden HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n',
)
const request = fc
  .record({
    line: fc.constantFrom(
      'POST /a HTTP/1.1',
      'GET /b HTTP/1.1',
      'GET http://a/c HTTP/1.1',
      'POST /d HTTP/1.0',
      'GET  /e HTTP/1.1',
    ),
    headers: fc.array(framing, { maxLength: 2 }),
    ends: fc.array(eol, { minLength: 5, maxLength: 5 }),
    body,
  })
  .map(({ line, headers, ends, body }) => {
    const lines = [line, 'Host: a', ...headers, '']
    return lines.map((each, i) => each + (ends[i] ?? '\r\n')).join('') + body
  })

test('the upstream gets exactly the requests that were seen here, whatever their shape', async () => {
  let refused = 0
  let carried = 0
  const shapes = fc.tuple(fc.array(request, { minLength: 1, maxLength: 3 }), fc.constantFrom(1, 3, 7, 100_000))
  await fc.assert(
    fc.asyncProperty(shapes, async ([requests, size]) => {
      const { asked, tape, visitor } = carry(requests.join(''), size)
      // A body cut elsewhere may begin with a method that the other server does not know.
      fc.pre(asked.every((each) => METHODS.includes(each.split(' ')[0] ?? '')))
      assert.deepEqual(await read(tape), asked)
      assert.deepEqual(visitor.broken, [])
      // Whatever was refused was the last thing that was read.
      assert.ok(visitor.bad.length <= 1)
      if (visitor.bad.length > 0) assert.match(visitor.stream.sent, /Connection: close\r\n\r\n[A-Z_]+\n$/)
      refused += visitor.bad.length
      carried += asked.length
    }),
    { numRuns: SHAPES },
  )
  assert.ok(refused > SHAPES / 10 && carried > SHAPES / 10, `${refused} refused, ${carried} carried`)
})
