import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { DRAIN_BYTES, DRAIN_MS, defaultLimits, LINGER_BYTES } from './bounds.ts'
import { answer, echo, get, head, post, Read, turn, Visitor } from './testing/memory-visitor.ts'

describe('an exchange', () => {
  test('is delivered with its head and answered in one write, and the connection stays open', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    assert.deepEqual(
      [visitor.last.head.method, visitor.last.head.target, visitor.last.head.authority],
      ['GET', '/a', 'a'],
    )
    answer(visitor.last, 'hello')
    await turn()
    assert.equal(visitor.stream.writes.length, 1)
    assert.equal(visitor.stream.take(), 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
    assert.deepEqual(visitor.events, ['done'])
    visitor.stream.feed(get)
    assert.equal(visitor.exchanges.length, 2)
    answer(visitor.last, 'again')
    await turn()
    assert.match(visitor.stream.sent, /again$/)
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset, visitor.stream.pauses], [false, false, 0])
  })

  test('counts the bytes of both ways', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(get + post('12345'))
    assert.deepEqual(
      visitor.exchanges.map(({ bytesReceived }) => bytesReceived),
      [get.length, post('12345').length],
    )
    await turn()
    const sent = visitor.exchanges.map(({ bytesSent }) => bytesSent)
    assert.equal(sent[0], 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nGET /a '.length)
    assert.equal((sent[0] ?? 0) + (sent[1] ?? 0), visitor.stream.sent.length)
  })

  test('of unknown length goes out in chunks, small ones in one write, with trailers', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 'unknown'))
    writer.write(Buffer.from('hello'))
    writer.write(Buffer.from('world'))
    await turn()
    assert.equal(visitor.stream.writes.length, 1)
    writer.write(Buffer.alloc(0))
    writer.end(HeaderList.of([['X-Sum', '1']]))
    await turn()
    assert.equal(
      visitor.stream.sent,
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\n\r\n',
    )
    assert.equal(visitor.stream.writes.length, 2)
  })

  test('whose head is ready before its body does not wait for it', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.last.respond(head(200, 'unknown', [['Content-Type', 'text/event-stream']]))
    await turn()
    assert.match(visitor.stream.sent, /text\/event-stream\r\n.*\r\n\r\n$/s)
  })

  test('with large pieces does not split them', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const large = Buffer.alloc(100_000, 'x')
    const writer = visitor.last.respond(head(200, large.length))
    writer.write(large)
    writer.end()
    assert.ok(visitor.stream.writes.at(-1)?.equals(large))
  })

  const bodiless: { name: string; method?: string; status: number; body: number | 'none' | 'unknown'; head: RegExp }[] =
    [
      { name: 'HEAD', method: 'HEAD', status: 200, body: 5, head: /^HTTP\/1.1 200 OK\r\nContent-Length: 5\r\n\r\n$/ },
      {
        name: 'HEAD of unknown length',
        method: 'HEAD',
        status: 200,
        body: 'unknown',
        head: /^HTTP\/1.1 200 OK\r\n\r\n$/,
      },
      { name: '204', status: 204, body: 5, head: /^HTTP\/1.1 204 No Content\r\n\r\n$/ },
      { name: '304', status: 304, body: 5, head: /^HTTP\/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n$/ },
      { name: '304 of no length', status: 304, body: 'none', head: /^HTTP\/1.1 304 Not Modified\r\n\r\n$/ },
      { name: 'none', status: 200, body: 'none', head: /^HTTP\/1.1 200 OK\r\nContent-Length: 0\r\n\r\n$/ },
    ]
  for (const { name, method = 'GET', status, body, head: expected } of bodiless) {
    test(`without a body sends not a byte of it: ${name}`, async () => {
      const visitor = new Visitor()
      visitor.stream.feed(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`)
      const writer = visitor.last.respond(head(status, body))
      if (name !== 'none') assert.equal(writer.write(Buffer.from('12345')), true)
      writer.end()
      await turn()
      assert.match(visitor.stream.take(), expected)
      visitor.stream.feed(get)
      assert.equal(visitor.exchanges.length, 2)
    })
  }

  test('is answered only once', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    answer(visitor.last, '')
    assert.throws(() => visitor.last.respond(head(200, 0)))
    assert.throws(() => visitor.last.respond(head(103, 'none')))
  })

  test('whose head cannot be written throws, and can be answered differently', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    assert.throws(() => visitor.last.respond(head(200, 0, [['A', 'b\r\nc']])))
    answer(visitor.last, 'sorry', 500)
    await turn()
    assert.match(visitor.stream.sent, /^HTTP\/1.1 500 .*sorry$/s)
  })
})

describe('requests', () => {
  const script = [
    get,
    post('hello'),
    'POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nX-T: u\r\n\r\n',
    post(''),
    get,
  ].join('')
  const answers = ['GET /a ', 'POST /b hello', 'POST /c abcdeX-T=u', 'POST /b ', 'GET /a ']
    .map((text) => `HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
    .join('')

  test('that come together are answered in order', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(script)
    await turn()
    assert.equal(visitor.stream.sent, answers)
    assert.equal(visitor.stream.writes.length, 1)
    assert.deepEqual(visitor.events, ['done', 'done', 'done', 'done', 'done'])
  })

  test('split at every byte are the same requests', async () => {
    const bytes = Buffer.from(script, 'latin1')
    for (let at = 1; at < bytes.length; at++) {
      const visitor = new Visitor({ handle: echo })
      visitor.stream.feed(bytes.subarray(0, at))
      visitor.stream.feed(bytes.subarray(at))
      await turn()
      assert.equal(visitor.stream.sent, answers, `split at ${at}`)
    }
    const visitor = new Visitor({ handle: echo })
    for (const byte of bytes) visitor.stream.feed(Buffer.of(byte))
    await turn()
    assert.equal(visitor.stream.sent, answers)
  })

  test('wait for the answer to the one before, and nothing more is read from the visitor', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get + get)
    visitor.stream.feed(get)
    visitor.stream.feed(Buffer.alloc(1 << 20))
    assert.equal(visitor.exchanges.length, 1)
    assert.equal(visitor.stream.isPaused, true)
    assert.equal(visitor.stream.unread, get.length + (1 << 20))
    answer(visitor.last, '1')
    assert.equal(visitor.exchanges.length, 2)
    answer(visitor.last, '2')
    assert.equal(visitor.exchanges.length, 3)
  })

  test('are not lost when a stream delivers although it was paused', () => {
    const visitor = new Visitor()
    visitor.stream.pause = () => {}
    for (const text of [get + get.slice(0, 9), get.slice(9), get]) visitor.stream.feed(text)
    for (let i = 0; i < 3; i++) answer(visitor.last, String(i))
    assert.equal(visitor.exchanges.length, 3)
  })

  test('that are answered at once do not pile up on the stack', async () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, '') })
    visitor.stream.feed(get.repeat(20_000))
    for (let turns = 0; turns < 20_000 / 32; turns++) await turn()
    assert.equal(visitor.exchanges.length, 20_000)
  })

  test('end with the one that announces the close', () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(`GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n${get}`)
    assert.equal(visitor.exchanges.length, 1)
    assert.match(visitor.stream.sent, /\r\nConnection: close\r\n/)
    assert.equal(visitor.stream.isEnded, true)
    visitor.stream.feed(get)
    assert.equal(visitor.exchanges.length, 1)
    visitor.stream.feedEnd()
    assert.deepEqual([visitor.closes, visitor.stream.isReset], [1, false])
  })
})

describe('a body', () => {
  test('is read at the pace of its reader', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('x'.repeat(10)).slice(0, -10))
    const read = new Read(visitor.last.body)
    visitor.stream.feed('12')
    visitor.last.body.pause()
    visitor.stream.feed('34')
    visitor.stream.feed('56')
    assert.deepEqual([read.body, visitor.stream.isPaused], ['12', true])
    visitor.last.body.resume()
    assert.deepEqual([read.body, visitor.stream.isPaused], ['123456', false])
    visitor.stream.feed('7890')
    assert.equal(read.state, 'whole')
  })

  test('stops within a chunk when its reader pauses', () => {
    const visitor = new Visitor()
    const many = `400\r\n${'a'.repeat(1024)}\r\n`.repeat(50)
    visitor.stream.feed(`POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${many}0\r\n\r\n`)
    let pieces = 0
    visitor.last.body.read({
      data() {
        pieces++
        visitor.last.body.pause()
      },
      end() {},
      failed() {},
    })
    assert.equal(pieces, 1)
    visitor.last.body.resume()
    assert.equal(pieces, 2)
  })

  test('without a reader is not taken from the stream', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('x'.repeat(1000)).slice(0, -900))
    for (let i = 0; i < 9; i++) visitor.stream.feed('x'.repeat(100))
    assert.equal(visitor.stream.unread, 900)
    assert.equal(new Read(visitor.last.body).body.length, 1000)
  })

  test('is read only once', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('abc').slice(0, -1))
    new Read(visitor.last.body)
    assert.throws(() => visitor.last.body.read(new Read()))
  })

  test('that is framed incorrectly is answered with 400, and the exchange is over', () => {
    const visitor = new Visitor()
    visitor.stream.feed('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    const read = new Read(visitor.last.body)
    visitor.stream.feed(`0x1\r\na\r\n0\r\n\r\n${get}`)
    assert.deepEqual([read.state, visitor.bad, visitor.events], ['failed', ['BAD_VISITOR_REQUEST'], ['abort']])
    assert.match(visitor.stream.sent, /^HTTP\/1.1 400 .*Connection: close\r\n\r\nBAD_VISITOR_REQUEST\n$/s)
    const writer = visitor.last.respond(head(200, 5))
    assert.equal(writer.write(Buffer.from('late!')), true)
    writer.end()
    assert.doesNotMatch(visitor.stream.sent, /late/)
    assert.deepEqual([visitor.exchanges.length, visitor.stream.isEnded], [1, true])
  })

  test('that is framed incorrectly cuts an answer that has begun', () => {
    const visitor = new Visitor()
    visitor.stream.feed('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    const read = new Read(visitor.last.body)
    visitor.last.respond(head(200, 'unknown'))
    visitor.stream.feed('x')
    assert.deepEqual([read.state, visitor.bad, visitor.events], ['failed', [], ['abort']])
    assert.equal(visitor.stream.isReset, true)
  })

  test('that was left unread is discarded when it is small', () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, 'no', 403) })
    visitor.stream.feed(post('x'.repeat(1000)).slice(0, -500))
    assert.doesNotMatch(visitor.stream.take(), /close/)
    visitor.stream.feed(`${'x'.repeat(500)}${get}`)
    assert.equal(visitor.exchanges.length, 2)
  })

  test('that was read in part is discarded, and its reader fails', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('x'.repeat(10)).slice(0, -5))
    const read = new Read(visitor.last.body)
    answer(visitor.last, '')
    assert.deepEqual([read.state, visitor.events], ['failed', ['done']])
    visitor.stream.feed(`xxxxx${get}`)
    assert.deepEqual([read.body.length, visitor.exchanges.length], [5, 2])
  })

  test('that was read in part is discarded even when its reader pauses it once more', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('x'.repeat(10)).slice(0, -5))
    const { body } = visitor.last
    body.read({ data() {}, end() {}, failed: () => body.pause() })
    visitor.last.onDone = () => body.pause()
    answer(visitor.last, '')
    body.pause()
    visitor.stream.feed(`xxxxx${get}`)
    assert.equal(visitor.exchanges.length, 2)
  })

  test('whose last piece is answered at once does not mix with what follows it', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('abc') + get)
    visitor.stream.feed(get.replace('/a', '/z'))
    const { body } = visitor.last
    const first = visitor.last
    body.read({ data: () => answer(first, 'early'), end() {}, failed() {} })
    for (let i = 0; i < 2; i++) answer(visitor.last, '')
    assert.deepEqual(
      visitor.exchanges.map(({ head: { target } }) => target),
      ['/b', '/a', '/z'],
    )
    assert.deepEqual(visitor.bad, [])
  })

  test('that was left unread and is large ends the connection, which is announced', () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, 'no', 413) })
    visitor.stream.feed(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${DRAIN_BYTES + 1}\r\n\r\n`)
    assert.match(visitor.stream.sent, /Connection: close/)
    assert.equal(visitor.stream.isEnded, true)
    visitor.stream.feed(Buffer.alloc(LINGER_BYTES))
    assert.equal(visitor.stream.isReset, false)
    visitor.stream.feed('x')
    assert.equal(visitor.stream.isReset, true)
  })

  test('that is large and incomplete when the answer is complete fails its reader, and ends the connection', () => {
    const visitor = new Visitor()
    visitor.stream.feed(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${DRAIN_BYTES * 2}\r\n\r\nx`)
    const read = new Read(visitor.last.body)
    answer(visitor.last, 'enough')
    assert.deepEqual([read.state, visitor.events], ['failed', ['done']])
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset], [true, false])
  })

  test('that was left unread and has no end is abandoned', () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, 'no', 403) })
    visitor.stream.feed('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
    visitor.stream.feed(`fffff\r\n${'x'.repeat(DRAIN_BYTES)}`)
    assert.deepEqual([visitor.stream.isEnded, visitor.closes], [true, 0])
    visitor.wait(defaultLimits.idleMs)
    assert.deepEqual([visitor.stream.isReset, visitor.closes], [true, 1])
  })

  test('that was left unread and does not come is abandoned', () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, 'no', 403) })
    visitor.stream.feed(post('xxx').slice(0, -1))
    visitor.wait(DRAIN_MS)
    assert.equal(visitor.stream.isEnded, true)
  })
})

describe('an answer of another length than announced', () => {
  test('shorter: the visitor sees that it is cut', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 5))
    writer.write(Buffer.from('1234'))
    writer.end()
    assert.deepEqual([visitor.stream.isReset, visitor.stream.isEnded, visitor.events], [true, false, ['abort']])
    assert.equal(visitor.broken.length, 1)
  })

  test('longer: the excess is never sent', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 5))
    writer.write(Buffer.from('12345'))
    await turn()
    writer.write(Buffer.from('HTTP/1.1 200 OK'))
    await turn()
    assert.match(visitor.stream.sent, /12345$/)
    assert.equal(visitor.stream.isReset, true)
  })

  test('aborted: neither end nor last chunk', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 'unknown'))
    writer.write(Buffer.from('12345'))
    await turn()
    writer.abort()
    await turn()
    assert.doesNotMatch(visitor.stream.sent, /0\r\n\r\n$/)
    assert.deepEqual([visitor.stream.isReset, visitor.stream.isEnded, visitor.events], [true, false, []])
  })
})

describe('100-continue', () => {
  const expects = 'POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n'

  test('comes from us when the body gets a reader', () => {
    const visitor = new Visitor()
    visitor.stream.feed(expects)
    assert.equal(visitor.stream.sent, '')
    const read = new Read(visitor.last.body)
    assert.equal(visitor.stream.take(), 'HTTP/1.1 100 Continue\r\n\r\n')
    visitor.last.inform(100, new HeaderList())
    assert.equal(visitor.stream.sent, '')
    visitor.stream.feed('abc')
    assert.equal(read.body, 'abc')
    answer(visitor.last, 'ok')
    assert.doesNotMatch(visitor.stream.sent, /close/)
  })

  test('comes from the upstream, and not again from us', () => {
    const visitor = new Visitor()
    visitor.stream.feed(expects)
    visitor.last.inform(100, HeaderList.of([['A', 'b']]))
    assert.equal(visitor.stream.take(), 'HTTP/1.1 100 Continue\r\nA: b\r\n\r\n')
    new Read(visitor.last.body)
    assert.equal(visitor.stream.sent, '')
  })

  test('is not needed when the body has arrived', () => {
    const visitor = new Visitor()
    visitor.stream.feed(`${expects}abc`)
    assert.equal(new Read(visitor.last.body).state, 'whole')
    assert.equal(visitor.stream.sent, '')
  })

  test('that never came ends the connection: the visitor may send the body or not', () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, 'no', 403) })
    visitor.stream.feed(expects)
    assert.match(visitor.stream.sent, /Connection: close/)
    assert.equal(visitor.stream.isEnded, true)
  })

  test('is only for visitors that expect it', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.last.inform(100, new HeaderList())
    assert.equal(visitor.stream.sent, '')
    visitor.last.inform(103, HeaderList.of([['Link', '</a>']]))
    assert.equal(visitor.stream.sent, 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
    for (const status of [99, 101, 200]) assert.throws(() => visitor.last.inform(status, new HeaderList()))
    answer(visitor.last, '')
    visitor.stream.take()
    visitor.last.inform(103, new HeaderList())
    assert.equal(visitor.stream.sent, '')
  })
})

describe('an invalid request', () => {
  const cases: Record<string, [status: number, text: string]> = {
    BAD_VISITOR_REQUEST: [400, 'GET / HTTP/1.1\r\n\r\n'],
    REQUEST_HEAD_TOO_LARGE: [431, `GET / HTTP/1.1\r\nHost: a\r\n${'A: b\r\n'.repeat(100)}\r\n`],
    HTTP_VERSION_UNSUPPORTED: [505, 'GET / HTTP/1.2\r\nHost: a\r\n\r\n'],
    EXPECTATION_FAILED: [417, 'GET / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n'],
  }
  for (const [code, [status, text]] of Object.entries(cases)) {
    test(`is answered once with ${status}, and nothing after it is read`, () => {
      const visitor = new Visitor({ handle: echo })
      visitor.stream.feed(text + get)
      visitor.stream.feed(text + get)
      assert.deepEqual([visitor.bad, visitor.exchanges.length], [[code], 0])
      assert.match(visitor.stream.sent, new RegExp(`^HTTP/1.1 ${status} .*Connection: close\r\n\r\n${code}\n$`, 's'))
      assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset], [true, false])
    })
  }

  test('waits for the answer to the request before it', () => {
    const visitor = new Visitor()
    visitor.stream.feed(`${get}GET / HTTP/1.2\r\n\r\n`)
    assert.equal(visitor.stream.sent, '')
    answer(visitor.last, 'first')
    assert.match(visitor.stream.sent, /first.*HTTP\/1.1 505/s)
  })

  test('is answered with an empty 400 when the page for it fails', () => {
    const visitor = new Visitor({
      onBad: () => {
        throw new Error('no page')
      },
    })
    visitor.stream.feed('\n')
    assert.equal(visitor.stream.sent, 'HTTP/1.1 400 \r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    assert.equal(visitor.broken.length, 1)
  })
})
