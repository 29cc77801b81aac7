import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { UPSTREAM_LINGER_MS } from './bounds.ts'
import { turn } from './testing/memory-visitor.ts'
import type { TestStream } from './testing/test-stream.ts'
import { Answer, ok, Upstream } from './testing/test-upstream.ts'

describe('a request', () => {
  test('goes out in one write, and its answer comes back', () => {
    const upstream = new Upstream()
    const answer = upstream.send({ target: '/a' })
    assert.equal(upstream.stream.take(), 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n')
    assert.equal(upstream.state, 'busy')
    upstream.stream.feed(ok)
    assert.deepEqual(
      [answer.head?.status, answer.head?.body, answer.body.body, answer.body.state],
      [200, 5, 'hello', 'whole'],
    )
    assert.deepEqual([upstream.state, upstream.changes], ['free', 1])
    assert.equal(upstream.stream.pauses, 0)
  })

  test('with a small body goes out in one write', async () => {
    const upstream = new Upstream()
    const { sending } = upstream.send({ method: 'POST', body: 3 })
    sending.body.write(Buffer.from('abc'))
    sending.body.end()
    assert.equal(upstream.stream.writes.length, 1)
    assert.match(upstream.stream.take(), /Content-Length: 3\r\n\r\nabc$/)
  })

  test('whose body has not arrived yet does not wait for it', async () => {
    const upstream = new Upstream()
    const { sending } = upstream.send({ method: 'POST', body: 'unknown' })
    await turn()
    assert.match(upstream.stream.take(), /Transfer-Encoding: chunked\r\n\r\n$/)
    sending.body.write(Buffer.from('abc'))
    sending.body.end(HeaderList.of([['X-T', 'u']]))
    assert.equal(upstream.stream.take(), '3\r\nabc\r\n0\r\nX-T: u\r\n\r\n')
  })

  test('that cannot be written throws, and the connection stays free', () => {
    const upstream = new Upstream()
    assert.throws(() => upstream.send({ target: '/a b' }))
    assert.deepEqual([upstream.state, upstream.stream.sent], ['free', ''])
  })

  test('waits for the one before', () => {
    const upstream = new Upstream()
    upstream.send()
    assert.throws(() => upstream.send())
  })

  test('of another length than announced fails, and the excess is never sent', async () => {
    for (const write of ['abcd', 'ab']) {
      const upstream = new Upstream()
      const answer = upstream.send({ method: 'POST', body: 3 })
      await turn()
      answer.sending.body.write(Buffer.from(write))
      answer.sending.body.end()
      await turn()
      assert.deepEqual([answer.fault?.reason, upstream.stream.isReset, upstream.state], ['invalid', true, 'closed'])
      assert.doesNotMatch(upstream.stream.sent, /abcd/)
    }
  })

  test('makes its writer wait for a slow upstream', () => {
    const upstream = new Upstream()
    const { sending } = upstream.send({ method: 'POST', body: 'unknown' })
    let drains = 0
    sending.body.onDrain = () => drains++
    upstream.stream.hasRoom = false
    assert.equal(sending.body.write(Buffer.alloc(100_000)), false)
    upstream.stream.giveRoom()
    assert.equal(drains, 1)
  })
})

describe('a response', () => {
  const messages: Record<
    string,
    { text: string; method?: string; body?: string; end?: true; state: 'free' | 'closed' }
  > = {
    'with a length': { text: ok, body: 'hello', state: 'free' },
    'in chunks': {
      text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-T: u\r\n\r\n',
      body: 'hello',
      state: 'free',
    },
    'until the end': { text: 'HTTP/1.1 200 OK\r\n\r\nhello', body: 'hello', end: true, state: 'closed' },
    'until the end, and empty': { text: 'HTTP/1.1 200 OK\r\n\r\n', end: true, state: 'closed' },
    'of HTTP/1.0': { text: 'HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello', body: 'hello', state: 'closed' },
    'that is the last': {
      text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
      body: 'hello',
      state: 'closed',
    },
    'of no length': { text: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', state: 'free' },
    'to HEAD': { text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n', method: 'HEAD', state: 'closed' },
    'to HEAD, and empty': { text: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', method: 'HEAD', state: 'free' },
    'to HEAD in chunks': {
      text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      method: 'HEAD',
      state: 'closed',
    },
    'without content': { text: 'HTTP/1.1 204 No Content\r\n\r\n', state: 'free' },
    'that nothing changed': { text: 'HTTP/1.1 304 Not Modified\r\n\r\n', state: 'free' },
    'that nothing changed, but a length': {
      text: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
      state: 'closed',
    },
    'without content, but a length': { text: 'HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n', state: 'closed' },
    'after interim ones': {
      text: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n${ok}`,
      body: 'hello',
      state: 'free',
    },
  }
  for (const [name, { text, method = 'GET', body = '', end, state }] of Object.entries(messages)) {
    test(`${name} is read whole, wherever it is split, and the connection is ${state} after it`, () => {
      for (let at = 0; at < text.length; at++) {
        const upstream = new Upstream()
        const answer = upstream.send({ method })
        if (at > 0) upstream.stream.feed(text.slice(0, at))
        upstream.stream.feed(text.slice(at))
        if (end) upstream.stream.feedEnd()
        assert.equal(answer.fault, undefined)
        assert.deepEqual(
          [answer.body.body, answer.body.state, upstream.state],
          [body, 'whole', state],
          `split at ${at}`,
        )
        if (name === 'in chunks') assert.deepEqual(answer.body.trailers, [['X-T', 'u']])
        if (name === 'after interim ones') assert.deepEqual(answer.informed, ['100 ', '103 Link,a'])
      }
    })
  }

  test('is read at the pace of its reader, even before it begins', () => {
    const upstream = new Upstream()
    const answer = new Answer(upstream.connection, {}, { reads: false })
    upstream.stream.feed(`${ok.slice(0, -5)}he`)
    upstream.stream.feed('llo')
    assert.deepEqual([upstream.stream.isPaused, upstream.stream.unread, upstream.state], [true, 3, 'busy'])
    answer.reader?.read(answer.body)
    assert.deepEqual([answer.body.body, answer.body.state, upstream.state], ['hello', 'whole', 'free'])
    assert.equal(upstream.stream.isPaused, false)
  })

  test('that has arrived completely can be read after the connection is gone', () => {
    for (const text of [ok, 'HTTP/1.1 200 OK\r\n\r\nhello']) {
      const upstream = new Upstream()
      const answer = new Answer(upstream.connection, {}, { reads: false })
      upstream.stream.feed(text)
      if (text !== ok) {
        // The end arrives when there is room for it.
        answer.reader?.read(answer.body)
        upstream.stream.feedEnd()
      } else {
        upstream.stream.lose()
        answer.reader?.read(answer.body)
      }
      assert.deepEqual([answer.body.body, answer.body.state], ['hello', 'whole'])
    }
  })

  test('that is cut short fails its reader', () => {
    const cuts = [ok.slice(0, -1), 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n']
    for (const text of cuts) {
      for (const cut of [(s: TestStream) => s.feedEnd(), (s: TestStream) => s.lose()]) {
        const upstream = new Upstream()
        const answer = upstream.send()
        upstream.stream.feed(text)
        cut(upstream.stream)
        upstream.wait(UPSTREAM_LINGER_MS)
        assert.deepEqual([answer.body.state, upstream.state, answer.fault], ['failed', 'closed', undefined])
      }
    }
  })

  test('that ends with a connection is incomplete when that is lost', () => {
    const upstream = new Upstream()
    const answer = upstream.send()
    upstream.stream.feed('HTTP/1.1 200 OK\r\n\r\nhello')
    upstream.stream.lose()
    assert.equal(answer.body.state, 'failed')
  })

  test('that is framed incorrectly fails its reader', () => {
    const upstream = new Upstream()
    const answer = upstream.send()
    upstream.stream.feed('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX')
    assert.deepEqual([answer.body.state, upstream.stream.isReset, upstream.state], ['failed', true, 'closed'])
  })
})
