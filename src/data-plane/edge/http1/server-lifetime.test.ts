import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { Sweep } from '../deadlines.ts'
import { AHEAD_BYTES, defaultLimits, HALF_CLOSED_MS } from './bounds.ts'
import { Http1Connection } from './server-connection.ts'
import type { Http1Exchange } from './server-exchange.ts'
import { answer, echo, get, head, post, Read, turn, Visitor } from './testing/memory-visitor.ts'
import { TestStream } from './testing/test-stream.ts'

describe('time', () => {
  const { headMs, idleMs } = defaultLimits

  test('for a head counts from its first byte, however often others follow', () => {
    const visitor = new Visitor()
    visitor.wait(idleMs - 1)
    visitor.stream.feed('GET')
    for (let i = 0; i < 14; i++) {
      visitor.wait(1000)
      visitor.stream.feed(' ')
    }
    assert.deepEqual(visitor.bad, [])
    visitor.wait(headMs - 14_000)
    assert.deepEqual(visitor.bad, ['REQUEST_HEAD_TIMEOUT'])
    assert.match(visitor.stream.sent, /^HTTP\/1.1 408 /)
    assert.equal(visitor.stream.isEnded, true)
  })

  test('for a head starts again with the next one', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(get + get.slice(0, 5))
    visitor.wait(headMs - 1)
    await turn()
    visitor.stream.feed(get.slice(5) + get.slice(0, 5))
    visitor.wait(headMs - 1)
    assert.deepEqual(visitor.bad, [])
    visitor.wait(1)
    assert.deepEqual(visitor.bad, ['REQUEST_HEAD_TIMEOUT'])
  })

  test('without a request ends the connection quietly', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(get)
    await turn()
    visitor.stream.take()
    visitor.wait(idleMs - 1)
    assert.equal(visitor.stream.isEnded, false)
    visitor.wait(1)
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.sent], [true, ''])
    visitor.wait(defaultLimits.idleMs)
    assert.deepEqual([visitor.stream.isReset, visitor.closes], [true, 1])
  })

  test('does not run out while a request waits for the upstream', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    for (let i = 0; i < 5; i++) visitor.wait(idleMs)
    answer(visitor.last, 'late')
    await turn()
    assert.match(visitor.stream.sent, /late$/)
  })

  test('ends a request whose body does not come', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('abc').slice(0, -1))
    visitor.wait(idleMs)
    assert.equal(visitor.closes, 0)
    const read = new Read(visitor.last.body)
    visitor.wait(idleMs)
    assert.deepEqual([read.state, visitor.events, visitor.stream.isReset], ['failed', ['abort'], true])
  })

  test('ends an answer that is not read', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.stream.hasRoom = false
    const writer = visitor.last.respond(head(200, 'unknown'))
    writer.write(Buffer.alloc(100_000))
    visitor.wait(idleMs - 1)
    assert.equal(visitor.stream.isReset, false)
    visitor.wait(1)
    assert.deepEqual([visitor.stream.isReset, visitor.events], [true, ['abort']])
  })
})

describe('a slow reader', () => {
  test('makes the writer wait, and calls it when there is room', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 'unknown'))
    let drains = 0
    writer.onDrain = () => drains++
    visitor.stream.hasRoom = false
    assert.equal(writer.write(Buffer.alloc(100_000)), false)
    assert.equal(drains, 0)
    visitor.stream.giveRoom()
    assert.equal(drains, 1)
    visitor.stream.giveRoom()
    assert.equal(drains, 1)
    assert.equal(writer.write(Buffer.alloc(100_000)), true)
  })

  test('has no more requests read than those whose answers leave together', async () => {
    const visitor = new Visitor({ handle: (exchange) => answer(exchange, 'x') })
    // Those of one turn leave together.
    visitor.stream.hasRoom = false
    visitor.stream.feed(get.repeat(1000))
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.equal(visitor.exchanges.length, 32)
    assert.equal(visitor.stream.isPaused, true)
    visitor.stream.giveRoom()
    for (let turns = 0; turns < 1000 / 32; turns++) await turn()
    assert.equal(visitor.exchanges.length, 1000)

    visitor.stream.hasRoom = false
    visitor.stream.feed(get)
    await turn()
    visitor.stream.feed(get.repeat(100))
    assert.equal(visitor.exchanges.length, 1001)
    visitor.stream.giveRoom()
    for (let turns = 0; turns < 100 / 32; turns++) await turn()
    assert.equal(visitor.exchanges.length, 1101)
  })

  test('is waited for, when its answer is the last', () => {
    const visitor = new Visitor()
    visitor.stream.feed('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
    visitor.stream.hasRoom = false
    answer(visitor.last, 'x'.repeat(100_000))
    visitor.wait(defaultLimits.idleMs - 1)
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset], [true, false])
    visitor.wait(1)
    assert.equal(visitor.stream.isReset, true)
  })
})

describe('a visitor that leaves', () => {
  const moments: Record<string, { feed?: string; act?: (visitor: Visitor) => void; events: string[] }> = {
    'before a request': { events: [] },
    'within a head': { feed: get.slice(0, 9), events: [] },
    'before the answer': { feed: get, events: ['abort'] },
    'within a body without a reader': { feed: post('abc').slice(0, -1), events: ['abort'] },
    'within the answer': { feed: get, act: ({ last }) => last.respond(head(200, 5)), events: ['abort'] },
    'after the answer': { feed: get, act: ({ last }) => answer(last, ''), events: ['done'] },
    'before the rest of an unread body': {
      feed: post('abc').slice(0, -1),
      act: ({ last }) => answer(last, ''),
      events: ['done'],
    },
    'after the last answer': {
      feed: get,
      act: ({ connection, last }) => {
        connection.drain()
        answer(last, '')
      },
      events: ['done'],
    },
  }
  for (const [name, { feed = '', act, events }] of Object.entries(moments)) {
    test(`${name} is noticed exactly once`, async () => {
      for (const go of [(v: Visitor) => v.stream.lose(), (v: Visitor) => v.connection.reset()]) {
        const visitor = new Visitor()
        if (feed) visitor.stream.feed(feed)
        act?.(visitor)
        go(visitor)
        visitor.stream.lose()
        visitor.wait(1e9)
        await turn()
        assert.deepEqual([visitor.events, visitor.closes, visitor.broken], [events, 1, []])
      }
    })
  }

  test('before it was taken over is noticed after that', async () => {
    const stream = new TestStream()
    stream.lose()
    let closes = 0
    const onBad = (): never => assert.fail()
    new Http1Connection({ stream, sweep: new Sweep(), onExchange() {}, onBad, onClosed: () => closes++ })
    assert.equal(closes, 0)
    await turn()
    assert.equal(closes, 1)
  })

  test('fails the body that is being read', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('abc').slice(0, -1))
    const read = new Read(visitor.last.body)
    visitor.stream.lose(new Error('unplugged'))
    assert.deepEqual([read.state, read.error?.message, visitor.events], ['failed', 'unplugged', ['abort']])
    const late = new Read()
    visitor.last.body.read(late)
    assert.equal(late.state, 'failed')
  })

  test('gets nothing of an answer that comes too late', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.stream.lose()
    answer(visitor.last, 'late')
    visitor.last.inform(103, new HeaderList())
    assert.deepEqual([visitor.stream.sent, visitor.events], ['', ['abort']])
  })

  test('does not hold up the writer of its answer', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.stream.hasRoom = false
    const writer = visitor.last.respond(head(200, 'unknown'))
    assert.equal(writer.write(Buffer.alloc(100_000)), false)
    visitor.stream.lose()
    assert.equal(writer.write(Buffer.alloc(100_000)), true)
    writer.end()
    assert.deepEqual(visitor.events, ['abort'])
  })
})

describe('a visitor that ends its side', () => {
  test('while it waits counts as gone', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.stream.feedEnd()
    assert.deepEqual([visitor.closes, visitor.events], [1, ['abort']])
    answer(visitor.last, 'hello')
    assert.equal(visitor.stream.sent, '')
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset, visitor.closes], [true, false, 1])
  })

  test('gets the answers that come before the end is seen', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get + get)
    visitor.stream.feedEnd()
    answer(visitor.last, 'one')
    assert.deepEqual([visitor.exchanges.length, visitor.events.at(-1)], [2, 'abort'])
    answer(visitor.last, 'two')
    assert.match(visitor.stream.sent, /one$/s)
    assert.equal(visitor.closes, 1)
  })

  test('within a body counts as gone', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('abc').slice(0, -1))
    const read = new Read(visitor.last.body)
    visitor.stream.feedEnd()
    assert.deepEqual([read.state, visitor.events, visitor.stream.isReset], ['failed', ['abort'], true])
  })

  test('after the answer has begun may be gone: the rest of the answer waits for a limited time', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 'unknown'))
    visitor.stream.feedEnd()
    visitor.wait(HALF_CLOSED_MS - 1)
    writer.write(Buffer.from('x'))
    visitor.wait(HALF_CLOSED_MS - 1)
    assert.deepEqual(visitor.events, [])
    visitor.wait(1)
    assert.deepEqual([visitor.events, visitor.stream.isReset], [['abort'], true])
  })

  test('between requests, or within a head, is disconnected', () => {
    for (const text of ['', get.slice(0, 7)]) {
      const visitor = new Visitor()
      if (text) visitor.stream.feed(text)
      visitor.stream.feedEnd()
      assert.deepEqual([visitor.stream.isEnded, visitor.closes, visitor.stream.sent], [true, 1, ''])
    }
  })
})

describe('an upgrade', () => {
  const upgrade = 'GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  const switching = head(101, 'none', [['Sec-WebSocket-Accept', 'x']])

  function listen(stream: ReturnType<Http1Exchange['upgrade']>): { data: string; events: string[] } {
    const heard = { data: '', events: [] as string[] }
    stream.attach({
      data(chunk) {
        heard.data += chunk.toString()
      },
      end: () => heard.events.push('end'),
      drain: () => heard.events.push('drain'),
      closed: (error) => heard.events.push(error ? `lost: ${error.message}` : 'closed'),
    })
    return heard
  }

  test('returns the stream, starting with what has arrived already', () => {
    const visitor = new Visitor()
    visitor.stream.feed(`${upgrade}early`)
    const stream = visitor.last.upgrade(switching)
    assert.equal(
      visitor.stream.take(),
      'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    visitor.stream.feed(' bird')
    const heard = listen(stream)
    visitor.stream.feed(' sings')
    assert.equal(heard.data, 'early bird sings')
    stream.write(Buffer.from('back'))
    assert.equal(visitor.stream.sent, 'back')
    visitor.stream.feedEnd()
    assert.equal(visitor.closes, 0)
    stream.end()
    assert.deepEqual(heard.events, ['end', 'closed'])
    assert.deepEqual([visitor.closes, visitor.events], [1, []])
  })

  test('has no deadline any more', () => {
    const visitor = new Visitor()
    visitor.stream.feed(upgrade)
    const heard = listen(visitor.last.upgrade(switching))
    visitor.wait(1e9)
    assert.deepEqual(heard.events, [])
  })

  test('can still be reset, but not drained', () => {
    const visitor = new Visitor()
    visitor.stream.feed(upgrade)
    const heard = listen(visitor.last.upgrade(switching))
    visitor.connection.drain()
    assert.deepEqual([heard.events, visitor.closes], [[], 0])
    visitor.connection.reset()
    assert.deepEqual([heard.events, visitor.closes], [['lost: reset'], 1])
  })

  test('is possible only on request, and once', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    assert.throws(() => visitor.last.upgrade(switching))
    answer(visitor.last, '')
    visitor.stream.feed(upgrade)
    visitor.last.upgrade(switching)
    assert.throws(() => visitor.last.upgrade(switching))
    assert.throws(() => visitor.last.respond(head(200, 0)))
  })

  test('may be declined with an answer, and the connection stays open', () => {
    const visitor = new Visitor()
    visitor.stream.feed(upgrade)
    answer(visitor.last, 'no', 400)
    visitor.stream.feed(get)
    assert.equal(visitor.exchanges.length, 2)
  })

  test('of a visitor that was reset meanwhile returns a closed stream', () => {
    const visitor = new Visitor()
    visitor.stream.feed(upgrade)
    visitor.stream.feedEnd()
    const { events } = listen(visitor.last.upgrade(switching))
    assert.deepEqual(events, ['closed'])
  })

  test('of a visitor that has left returns a closed stream', () => {
    const visitor = new Visitor()
    visitor.stream.feed(upgrade)
    visitor.stream.lose(new Error('unplugged'))
    assert.deepEqual(listen(visitor.last.upgrade(switching)).events, ['lost: unplugged'])
  })
})

describe('draining', () => {
  test('closes idle connections at once', () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(get)
    visitor.connection.drain()
    assert.equal(visitor.stream.isEnded, true)
  })

  test('lets an exchange finish, and announces that it is the last', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.connection.drain()
    assert.equal(visitor.stream.isEnded, false)
    answer(visitor.last, 'bye')
    assert.match(visitor.stream.sent, /Connection: close\r\n\r\nbye$/)
    assert.equal(visitor.stream.isEnded, true)
  })

  test('closes after an answer that had begun', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    const writer = visitor.last.respond(head(200, 1))
    visitor.connection.drain()
    writer.write(Buffer.from('x'))
    writer.end()
    assert.equal(visitor.stream.isEnded, true)
  })

  test('answers requests that have arrived, or begun to arrive', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get + get.slice(0, 8))
    visitor.connection.drain()
    answer(visitor.last, 'one')
    visitor.stream.feed(get.slice(8))
    answer(visitor.last, 'two')
    assert.match(
      visitor.stream.sent,
      /^HTTP\/1.1 200 OK\r\nContent-Length: 3\r\n\r\none.*Connection: close\r\n\r\ntwo$/s,
    )
    assert.equal(visitor.stream.isEnded, true)
  })
})

describe('a callback that throws', () => {
  const boom = (): never => {
    throw new Error('boom')
  }

  test('for an exchange costs the visitor its connection', () => {
    const visitor = new Visitor({ handle: boom })
    visitor.stream.feed(get)
    assert.deepEqual([visitor.stream.isReset, visitor.broken.length, visitor.closes], [true, 1, 1])
  })

  test('for an exchange does not lose the answers before it', () => {
    const visitor = new Visitor({
      handle: (exchange) => (exchange.head.method === 'GET' ? answer(exchange, 'mine') : boom()),
    })
    visitor.stream.feed(get + get + post(''))
    assert.equal(visitor.stream.sent.match(/mine/g)?.length, 2)
    assert.ok(visitor.stream.isReset)
  })

  test('for a body does too', () => {
    const visitor = new Visitor()
    visitor.stream.feed(post('abc').slice(0, -1))
    visitor.last.body.read({ data: boom, end: boom, failed() {} })
    assert.deepEqual([visitor.stream.isReset, visitor.broken.length, visitor.events], [true, 1, ['abort']])
  })

  test('for an end or an abort does not affect others', () => {
    const visitor = new Visitor()
    visitor.stream.feed(get)
    visitor.last.onDone = boom
    answer(visitor.last, 'x')
    assert.deepEqual([visitor.stream.isReset, visitor.broken.length], [true, 1])
    const other = new Visitor()
    other.stream.feed(get)
    other.last.onAbort = boom
    other.stream.lose()
    assert.deepEqual([other.closes, other.broken.length], [1, 1])
  })
})

describe('an upload that nobody takes', () => {
  const opening = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${2 ** 40}\r\n\r\n`

  function stalled() {
    const visitor = new Visitor()
    visitor.stream.feed(opening)
    const { body } = visitor.last
    const read = new Read(body)
    body.pause()
    assert.equal(visitor.stream.isPaused, true)
    return { visitor, body, read }
  }

  test('is read ahead a little, so that the end of a visitor that has left is seen', () => {
    const { visitor, read } = stalled()
    assert.equal(visitor.connection.idleMs, undefined)
    visitor.connection.readAhead()
    assert.equal(visitor.stream.isPaused, false)
    assert.equal(visitor.connection.idleMs, Number.POSITIVE_INFINITY, 'it gives way first')
    visitor.stream.feed('x'.repeat(1000))
    visitor.stream.feedEnd()
    assert.deepEqual([read.state, visitor.events, visitor.closes], ['failed', ['abort'], 1])
  })

  test('is read ahead up to a bound, and goes on where its reader paused', () => {
    const { visitor, body, read } = stalled()
    visitor.connection.readAhead()
    const piece = 'x'.repeat(AHEAD_BYTES / 4)
    for (let i = 0; i < 3; i++) visitor.stream.feed(piece)
    assert.equal(visitor.stream.isPaused, false)
    visitor.stream.feed(piece)
    assert.equal(visitor.stream.isPaused, true)
    assert.equal(read.body, '')
    body.resume()
    assert.equal(read.body.length, AHEAD_BYTES)
    assert.deepEqual([visitor.stream.isPaused, visitor.connection.idleMs], [false, undefined])
    body.pause()
    visitor.stream.feed(piece)
    assert.equal(visitor.stream.isPaused, true, 'only when it stalls again')
  })
})
