import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LINGER_BYTES } from './bounds.ts'
import type { Http1Exchange } from './server-exchange.ts'
import { answer, get, Visitor } from './testing/memory-visitor.ts'

test('a body that nobody will read and that has no end yet ends the connection, which is announced', () => {
  const refuse = (exchange: Http1Exchange) => {
    exchange.ignoreBody()
    answer(exchange, 'no', 403)
  }
  const visitor = new Visitor({ handle: refuse })
  const chunked = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
  visitor.stream.feed(`${chunked}3\r\nabc\r\n0\r\n\r\n${get}`)
  assert.equal(visitor.exchanges.length, 2)
  assert.doesNotMatch(visitor.stream.take(), /close/)
  visitor.stream.feed(`${chunked}fffff\r\nx`)
  assert.match(visitor.stream.take(), /^HTTP\/1.1 403 .*Connection: close/s)
  visitor.stream.feed(Buffer.alloc(LINGER_BYTES))
  assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset], [true, false])
})
