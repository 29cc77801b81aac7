import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { echo, head, Read, turn, Visitor } from './testing/memory-visitor.ts'

describe('a request of HTTP/1.0', () => {
  const old = 'GET /a HTTP/1.0\r\nHost: a\r\n\r\n'
  const again = 'GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n'

  test('is answered with a length, and the connection ends', () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(old + old)
    assert.equal(visitor.stream.sent, 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nGET /a ')
    assert.deepEqual([visitor.exchanges.length, visitor.stream.isEnded, visitor.stream.isReset], [1, true, false])
    assert.deepEqual(visitor.events, ['done'])
  })

  test('gets another answer on its connection when it asks for that', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(again + again)
    await turn()
    const kept = 'HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: keep-alive\r\n\r\nGET /a '
    assert.equal(visitor.stream.take(), kept + kept)
    assert.equal(visitor.stream.isEnded, false)
    visitor.stream.feed(old)
    assert.match(visitor.stream.sent, /\r\nConnection: close\r\n/)
    assert.equal(visitor.stream.isEnded, true)
  })

  for (const [name, text] of Object.entries({ '': old, ' even one that it wants to keep,': again })) {
    test(`gets an answer of unknown length without chunks,${name} up to the end of the connection`, async () => {
      const visitor = new Visitor()
      visitor.stream.feed(text)
      const writer = visitor.last.respond(head(200, 'unknown'))
      writer.write(Buffer.from('hello'))
      await turn()
      writer.write(Buffer.from('world'))
      assert.equal(visitor.stream.isEnded, false)
      writer.end(HeaderList.of([['X-Sum', '1']]))
      assert.equal(visitor.stream.sent, 'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhelloworld')
      assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset, visitor.events], [true, false, ['done']])
    })
  }

  test('whose answer is cut sees a reset, not an end', () => {
    const visitor = new Visitor()
    visitor.stream.feed(old)
    const writer = visitor.last.respond(head(200, 'unknown'))
    writer.write(Buffer.from('hello'))
    writer.abort()
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset], [false, true])
  })

  test('gets no interim response', () => {
    const visitor = new Visitor()
    visitor.stream.feed('POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
    const read = new Read(visitor.last.body)
    visitor.last.inform(103, HeaderList.of([['Link', '</a>']]))
    assert.equal(visitor.stream.sent, '')
    visitor.stream.feed('ok')
    assert.deepEqual([read.body, read.state], ['ok', 'whole'])
  })

  test('for the head of an answer of unknown length keeps its connection', async () => {
    const visitor = new Visitor()
    visitor.stream.feed(again.replace('GET', 'HEAD'))
    visitor.last.respond(head(200, 'unknown')).end()
    await turn()
    assert.equal(visitor.stream.sent, 'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n')
    assert.equal(visitor.stream.isEnded, false)
  })
})
