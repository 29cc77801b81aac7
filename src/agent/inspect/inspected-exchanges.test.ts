import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BODY_BYTES, MAX_FRAMES } from './inspected-exchange.ts'
import { InspectedExchanges } from './inspected-exchanges.ts'

const origin = { tunnelName: 'web', scheme: 'https', clientAddress: '192.0.2.1:1', replayOf: undefined } as const

function testExchanges(bounds: { maxExchanges?: number; maxBytes?: number } = {}) {
  const exchanges = new InspectedExchanges({ now: () => 0, clock: () => 1_700_000_000_000, ...bounds })
  const begin = (target = '/') => {
    const text = `GET ${target} HTTP/1.1\r\n\r\n`
    return exchanges.begin({ method: 'GET', target, protocol: 'HTTP/1.1', text }, origin)
  }
  return { exchanges, begin, targets: () => exchanges.latest().map(({ target }) => target) }
}

describe('exchanges are bounded', () => {
  test('in number: the oldest is dropped, even while it is open', () => {
    const { begin, targets, exchanges } = testExchanges({ maxExchanges: 2 })
    const first = begin('/1')
    const id = exchanges.idOf(first)
    begin('/2')
    assert.equal(exchanges.find(id), first)
    begin('/3')
    assert.deepEqual([targets(), exchanges.find(id)], [['/3', '/2'], undefined])
    const before = exchanges.bytes
    first.onRequestBody(Buffer.alloc(1000))
    first.onAnswered({ status: 200, text: 'x'.repeat(1000) })
    first.onResponseBody(Buffer.alloc(1000))
    first.onEvent({ size: 1, bytes: Buffer.alloc(1000) })
    first.onEnded('whole')
    assert.equal(exchanges.bytes, before, 'what still comes is not kept')
  })

  test('in bytes, whatever comes', () => {
    const maxBytes = 4 * 1024 * 1024
    const { begin, exchanges } = testExchanges({ maxBytes })
    for (let i = 0; i < 200; i++) {
      const exchange = begin(`/${'x'.repeat(i * 100)}`)
      for (let n = 0; n < i % 7; n++) exchange.onRequestBody(Buffer.alloc(100_000))
      exchange.onAnswered({ status: 200, text: 'x'.repeat(1000) })
      for (let n = 0; n < i % 11; n++) exchange.onResponseBody(Buffer.alloc(150_000))
      for (let n = 0; n < i % 13; n++) exchange.onEvent({ size: 9, bytes: Buffer.alloc(10_000) })
      assert.ok(exchanges.bytes <= maxBytes)
    }
    assert.ok(exchanges.latest().length > 1)
    exchanges.clear()
    assert.deepEqual([exchanges.bytes, exchanges.latest()], [0, []])
  })

  test('in each body, and in the frames of each', () => {
    const { begin } = testExchanges()
    const exchange = begin()
    for (let i = 0; i < 3; i++) exchange.onResponseBody(Buffer.alloc(BODY_BYTES - 1))
    const { responseBody } = exchange
    assert.deepEqual([responseBody?.size, responseBody?.kept], [3 * (BODY_BYTES - 1), BODY_BYTES])
    for (let i = 0; i < MAX_FRAMES + 5; i++) exchange.onEvent({ size: 1, bytes: Buffer.alloc(1) })
    assert.deepEqual([exchange.frameCount, exchange.frames.length], [MAX_FRAMES + 5, MAX_FRAMES])
    assert.equal(exchange.frames[0]?.number, 6)
    for (let i = 0; i < 100; i++) exchange.onEvent({ size: 1, bytes: Buffer.alloc(64 * 1024) })
    assert.ok(exchange.frames.length < 20)
  })
})

test('a body of many small pieces is kept whole, in memory that is not much more', () => {
  const { begin, exchanges } = testExchanges()
  const exchange = begin()
  const before = exchanges.bytes
  for (let i = 0; i < 10_000; i++) exchange.onRequestBody(Buffer.from([i & 0xff]))
  assert.equal(exchange.requestBody?.bytes.length, 10_000)
  assert.ok(exchange.requestBody.bytes.every((byte, i) => byte === (i & 0xff)))
  assert.ok(exchanges.bytes - before <= 20_000)
})

test('ids of other processes are not found', () => {
  const { begin, exchanges } = testExchanges()
  const exchange = begin()
  const id = exchanges.idOf(exchange)
  assert.match(id, /^[0-9a-f]{16}$/)
  assert.equal(exchanges.find(id), exchange)
  for (const other of ['', 'x', `0${id.slice(1)}`, id.slice(0, -1), `${id}0`, '../../etc/passwd']) {
    assert.equal(exchanges.find(other), undefined, other)
  }
})

test('listeners are called for changes until they stop', () => {
  const { begin, exchanges } = testExchanges({ maxExchanges: 1 })
  const heard: string[] = []
  const stop = exchanges.listen(({ target }, change) => heard.push(`${target} ${change}`))
  const first = begin('/1')
  first.onAnswered({ status: 200, text: '' })
  first.onEnded('whole')
  begin('/2')
  stop()
  begin('/3')
  assert.deepEqual(heard, ['/1 changed', '/1 changed', '/1 changed', '/1 removed', '/2 changed'])
})
