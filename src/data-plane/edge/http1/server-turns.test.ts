import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { echo, get, turn, Visitor } from './testing/memory-visitor.ts'

describe('requests', () => {
  test('that come together leave the event loop to others after 32 answers, and lose nothing', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(get.repeat(100))
    visitor.stream.feedEnd()
    const begun = [visitor.exchanges.length]
    for (; visitor.exchanges.length < 100; begun.push(visitor.exchanges.length)) await turn()
    assert.deepEqual(begun, [32, 64, 96, 100])
    await turn()
    assert.equal(visitor.stream.sent.split('HTTP/1.1 200 OK').length, 101)
    assert.deepEqual([visitor.stream.isEnded, visitor.stream.isReset], [true, false])
  })

  test('that come together leave the event loop to others after 5 ms', async () => {
    const visitor = new Visitor({
      handle: (exchange) => {
        visitor.wait(3)
        echo(exchange)
      },
    })
    visitor.stream.feed(get.repeat(5))
    assert.equal(visitor.exchanges.length, 2)
    await turn()
    assert.equal(visitor.exchanges.length, 4)
  })

  test('that are answered after a promise leave the event loop to others too', async () => {
    const visitor = new Visitor({ handle: (exchange) => void Promise.resolve().then(() => echo(exchange)) })
    visitor.stream.feed(get.repeat(100))
    await turn()
    // Those of the first turn, and of the one in which the promises of the second had no time yet.
    assert.ok(visitor.exchanges.length <= 64, `${visitor.exchanges.length}`)
  })

  test('that wait for another turn end with their connection', async () => {
    const visitor = new Visitor({ handle: echo })
    visitor.stream.feed(get.repeat(100))
    visitor.connection.reset()
    await turn()
    assert.deepEqual([visitor.exchanges.length, visitor.closes, visitor.broken], [32, 1, []])
  })
})
