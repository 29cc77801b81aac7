import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import type { BodyReader } from '../../requests/http-exchange.ts'
import {
  INTERIM_RESPONSES,
  RESPONSE_HEAD_MS,
  UPSTREAM_IDLE_MS,
  UPSTREAM_LINGER_MS,
  UPSTREAM_STALL_MS,
} from './bounds.ts'
import { turn } from './testing/memory-visitor.ts'
import type { TestStream } from './testing/test-stream.ts'
import { type Answer, ok, Upstream } from './testing/test-upstream.ts'

describe('no response', () => {
  const invalid: Record<string, string> = {
    'another protocol, seen at once': 'SSH-2.0-x\r\n',
    'no head at all': '\x15\x03\x01',
    'a malformed head': 'HTTP/1.1 200 OK\r\nA : b\r\n\r\n',
    'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    'a switch that was not requested': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n',
    'interim responses without end': 'HTTP/1.1 103 Early\r\n\r\n'.repeat(INTERIM_RESPONSES + 1),
  }
  for (const [name, text] of Object.entries(invalid)) {
    test(`can be understood: ${name}`, () => {
      const upstream = new Upstream()
      const answer = upstream.send()
      upstream.stream.feed(text)
      assert.deepEqual([answer.fault?.reason, answer.fault?.isUntouched], ['invalid', false])
      assert.deepEqual([upstream.stream.isReset, upstream.state, upstream.changes], [true, 'closed', 1])
    })
  }

  test('can be as large as it likes', () => {
    const upstream = new Upstream()
    const answer = upstream.send()
    for (let i = 0; i < 70; i++) upstream.stream.feed(i === 0 ? 'HTTP/1.1 200 OK\r\nA: ' : 'x'.repeat(1000))
    assert.equal(answer.fault?.reason, 'head_too_large')
  })

  test('comes when a fresh connection closes', () => {
    for (const close of [(s: TestStream) => s.feedEnd(), (s: TestStream) => s.lose()]) {
      const upstream = new Upstream()
      const answer = upstream.send()
      close(upstream.stream)
      assert.deepEqual([answer.fault?.reason, answer.fault?.isUntouched, upstream.state], ['closed', false, 'closed'])
    }
  })

  test('comes when a kept connection closes, which saw nothing of the request', () => {
    for (const close of [(s: TestStream) => s.feedEnd(), (s: TestStream) => s.lose()]) {
      const upstream = new Upstream().use()
      const answer = upstream.send()
      close(upstream.stream)
      assert.deepEqual([answer.fault?.reason, answer.fault?.isUntouched, upstream.state], ['closed', true, 'closed'])
    }
  })

  test('comes when a kept connection closes within a head, and the request was seen', () => {
    const upstream = new Upstream().use()
    const answer = upstream.send()
    upstream.stream.feed('HTTP/1.1 100 Continue\r\n\r\n')
    upstream.stream.feedEnd()
    assert.deepEqual([answer.fault?.reason, answer.fault?.isUntouched], ['closed', false])
  })

  test('comes in time', () => {
    const upstream = new Upstream({ answerMs: 1000 })
    const answer = upstream.send({ method: 'POST', body: 'unknown' })
    upstream.wait(5000)
    assert.equal(answer.faults.length, 0)
    answer.sending.body.end()
    upstream.wait(999)
    assert.equal(answer.faults.length, 0)
    upstream.wait(1)
    assert.deepEqual([answer.fault?.reason, upstream.state], ['timeout', 'closed'])
  })

  test('has a head that comes to its end in time', () => {
    const upstream = new Upstream()
    const answer = upstream.send()
    upstream.wait(1e7)
    upstream.stream.feed('HTTP/1.1 103 Early\r\n')
    upstream.wait(RESPONSE_HEAD_MS - 1)
    upstream.stream.feed('\r\n')
    upstream.wait(RESPONSE_HEAD_MS)
    assert.equal(answer.faults.length, 0)
    upstream.stream.feed('H')
    upstream.wait(RESPONSE_HEAD_MS)
    assert.equal(answer.fault?.reason, 'timeout')
  })

  test('comes from an upstream that does not read the request', () => {
    const upstream = new Upstream()
    const answer = upstream.send({ method: 'POST', body: 'unknown' })
    upstream.wait(UPSTREAM_STALL_MS * 2)
    assert.equal(answer.faults.length, 0)
    upstream.stream.hasRoom = false
    answer.sending.body.write(Buffer.alloc(100_000))
    upstream.wait(UPSTREAM_STALL_MS)
    assert.equal(answer.fault?.reason, 'timeout')
  })

  test('goes on forever from an upstream that stopped reading the request', () => {
    const upstream = new Upstream()
    const answer = upstream.send({ method: 'POST', body: 'unknown' })
    upstream.stream.feed(ok.slice(0, -1))
    upstream.wait(UPSTREAM_STALL_MS * 2)
    upstream.stream.hasRoom = false
    answer.sending.body.write(Buffer.alloc(100_000))
    upstream.wait(UPSTREAM_STALL_MS)
    assert.deepEqual([answer.body.state, upstream.state], ['failed', 'closed'])
  })
})

describe('an answer before the end of the request', () => {
  test('is delivered, and the connection is free when both are complete', () => {
    const upstream = new Upstream()
    const answer = upstream.send({ method: 'POST', body: 3 })
    answer.sending.body.write(Buffer.from('a'))
    upstream.stream.feed(ok)
    assert.deepEqual([answer.body.state, upstream.state], ['whole', 'busy'])
    answer.sending.body.write(Buffer.from('bc'))
    answer.sending.body.end()
    assert.deepEqual([upstream.state, upstream.changes], ['free', 1])
  })

  test('that is the last ends the connection, and the rest is dropped', async () => {
    const upstream = new Upstream()
    const answer = upstream.send({ method: 'POST', body: 3 })
    await turn()
    upstream.stream.feed('HTTP/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    assert.deepEqual([answer.head?.status, answer.body.state, upstream.state], [413, 'whole', 'closed'])
    upstream.stream.take()
    assert.equal(answer.sending.body.write(Buffer.from('abc')), true)
    answer.sending.body.end()
    assert.equal(upstream.stream.sent, '')
  })

  test('does not free the connection when the request is aborted', () => {
    const upstream = new Upstream()
    const answer = upstream.send({ method: 'POST', body: 3 })
    upstream.stream.feed(ok)
    answer.sending.body.abort()
    assert.deepEqual([upstream.state, upstream.stream.isReset], ['closed', true])
  })

  test('followed by the end of the connection', () => {
    const upstream = new Upstream()
    upstream.send({ method: 'POST', body: 3 })
    upstream.stream.feed(ok)
    upstream.stream.feedEnd()
    assert.equal(upstream.state, 'closed')
  })
})

describe('a connection', () => {
  test('is reused for many requests', () => {
    const upstream = new Upstream()
    for (let i = 1; i <= 5; i++) {
      const answer = upstream.send()
      upstream.stream.feed(ok)
      assert.deepEqual([answer.body.state, upstream.changes], ['whole', i])
    }
  })

  test('can be reused in the callback that reports it as free', () => {
    const upstream = new Upstream()
    let second: Answer | undefined
    upstream.connection.onChange = () => {
      upstream.connection.onChange = undefined
      second = upstream.send({ target: '/second' })
    }
    const first = upstream.send()
    upstream.stream.feed(ok)
    assert.deepEqual([first.body.body, first.body.state], ['hello', 'whole'])
    upstream.stream.feed('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx')
    assert.deepEqual([second?.body.body, first.body.body], ['x', 'hello'])
  })

  test('that delivers unrequested bytes is closed', () => {
    const upstream = new Upstream().use()
    upstream.stream.feed(ok)
    assert.deepEqual([upstream.state, upstream.stream.isReset, upstream.changes], ['closed', true, 1])
  })

  test('that delivers more than one answer is not reused', () => {
    for (const first of [
      ok,
      'HTTP/1.1 204 No\r\n\r\n',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ]) {
      const upstream = new Upstream()
      const answer = upstream.send()
      upstream.stream.feed(`${first}HTTP/1.1 200 OK\r\n`)
      assert.deepEqual([answer.body.state, upstream.state], ['whole', 'closed'])
    }
  })

  test('that we have ended is reset when more bytes arrive', () => {
    const upstream = new Upstream().use()
    upstream.connection.close()
    assert.equal(upstream.stream.isReset, false)
    upstream.stream.feed('x')
    assert.equal(upstream.stream.isReset, true)
  })

  test('closes when the upstream ends it, and on its own after a while', () => {
    const upstream = new Upstream().use()
    upstream.stream.feedEnd()
    assert.deepEqual([upstream.state, upstream.stream.isEnded, upstream.changes], ['closed', true, 1])
    const other = new Upstream().use()
    other.wait(UPSTREAM_IDLE_MS - 1)
    assert.equal(other.state, 'free')
    other.wait(1)
    assert.deepEqual([other.state, other.stream.isEnded, other.changes], ['closed', true, 1])
    other.wait(UPSTREAM_LINGER_MS)
    assert.deepEqual([other.stream.isReset, other.changes], [true, 1])
  })

  test('that is closed on our side fails the request in progress', () => {
    const waiting = new Upstream()
    const answer = waiting.send()
    waiting.connection.close()
    assert.deepEqual([answer.fault?.reason, waiting.state], ['closed', 'closed'])
    const reading = new Upstream()
    const half = reading.send()
    reading.stream.feed(ok.slice(0, -1))
    reading.connection.close()
    assert.deepEqual([half.body.state, reading.state], ['failed', 'closed'])
    const idle = new Upstream().use()
    idle.connection.close()
    assert.deepEqual([idle.state, idle.stream.isEnded], ['closed', true])
  })

  test('is reset without callbacks when the visitor is gone', () => {
    for (const text of ['', 'HTTP/1.1 2', ok.slice(0, -1)]) {
      const upstream = new Upstream()
      const answer = upstream.send()
      if (text) upstream.stream.feed(text)
      answer.sending.cancel()
      assert.deepEqual([upstream.state, upstream.stream.isReset, upstream.changes], ['closed', true, 1])
      assert.deepEqual([answer.fault, answer.body.state], [undefined, 'open'])
    }
  })

  test('that is reset within an answer delivers no more of it', () => {
    const upstream = new Upstream()
    let pieces = 0
    const fail = (): never => assert.fail()
    const request = { method: 'GET', target: '/', headers: new HeaderList(), body: 'none', upgrade: undefined } as const
    const sending = upstream.connection.send(request, {
      inform: fail,
      upgraded: fail,
      failed: fail,
      respond(_, body) {
        const data = (): void => {
          pieces++
          sending.cancel()
        }
        body.read({ data, end: fail, failed: fail })
      },
    })
    const chunk = `800\r\n${'x'.repeat(2048)}\r\n`
    upstream.stream.feed(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}${chunk}0\r\n\r\n`)
    assert.deepEqual([pieces, upstream.state, upstream.broken], [1, 'closed', []])
  })

  test('is not reset by a request that has had its answer', () => {
    const upstream = new Upstream()
    const first = upstream.send()
    upstream.stream.feed(ok)
    first.sending.cancel()
    first.sending.body.abort()
    assert.equal(upstream.state, 'free')
    const second = upstream.send()
    first.sending.cancel()
    upstream.stream.feed(ok)
    assert.equal(second.body.state, 'whole')
  })
})

describe('an upgrade', () => {
  const request = { upgrade: 'websocket' } as const

  test('returns the stream, starting with what has arrived already, and closes', () => {
    const upstream = new Upstream()
    const answer = upstream.send(request)
    assert.match(upstream.stream.take(), /\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n$/)
    upstream.stream.feed('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\nearly')
    assert.equal(answer.head?.headers.get('upgrade'), 'websocket')
    let data = ''
    answer.upgraded?.attach({
      data: (chunk) => {
        data += chunk.toString()
      },
      end() {},
      drain() {},
      closed() {},
    })
    upstream.stream.feed(' bird')
    assert.equal(data, 'early bird')
    assert.deepEqual([upstream.state, upstream.changes, upstream.stream.isReset], ['closed', 1, false])
    upstream.wait(1e9)
    assert.equal(upstream.stream.isReset, false)
  })

  test('that is refused is an answer like any other', () => {
    const upstream = new Upstream()
    const answer = upstream.send(request)
    upstream.stream.feed(ok)
    assert.deepEqual([answer.body.body, answer.upgraded, upstream.state], ['hello', undefined, 'free'])
  })
})

describe('a callback that throws', () => {
  const boom = (): never => {
    throw new Error('boom')
  }
  const request = { method: 'GET', target: '/', headers: new HeaderList(), body: 'none', upgrade: undefined } as const
  const sink = { inform: boom, respond: boom, upgraded: boom, failed: boom }

  test('for an answer, an interim one or a failure closes the connection and nothing else', () => {
    const feeds = [
      (upstream: Upstream) => upstream.stream.feed(ok),
      (upstream: Upstream) => upstream.stream.feed('HTTP/1.1 103 Early\r\n\r\n'),
      (upstream: Upstream) => upstream.stream.feedEnd(),
      (upstream: Upstream) => upstream.stream.lose(),
      (upstream: Upstream) => upstream.wait(1000),
    ]
    for (const feed of feeds) {
      const upstream = new Upstream({ answerMs: 1000 })
      upstream.connection.send(request, sink)
      feed(upstream)
      assert.deepEqual([upstream.broken.length, upstream.state, upstream.changes], [1, 'closed', 1])
    }
  })

  test('for a body does too', () => {
    const upstream = new Upstream()
    const respond = (_: unknown, body: BodyReader): void => body.read({ data: boom, end: boom, failed: boom })
    upstream.connection.send(request, { ...sink, respond })
    upstream.stream.feed(ok.slice(0, -1))
    assert.deepEqual([upstream.broken.length, upstream.state, upstream.stream.isReset], [1, 'closed', true])
  })
})

test('bytes on a kept connection that are not a response say nothing about the request', () => {
  for (const text of ['late', '<p>\r\n\r\n', '\x00', `late${ok}`, '\r\n']) {
    const upstream = new Upstream().use()
    const answer = upstream.send()
    upstream.stream.feed(text)
    assert.deepEqual([answer.fault?.reason, answer.fault?.isUntouched, upstream.state], ['invalid', true, 'closed'])
  }
})
