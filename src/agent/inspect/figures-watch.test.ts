import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ByteSink, ByteStream } from '../../lib/bytes/byte-stream.ts'
import { relay } from '../../lib/bytes/relay.ts'
import { TunnelFigures } from '../tunnel-figures.ts'
import { ConnectionWatch } from './connection-watch.ts'
import { figuresWatch } from './figures-watch.ts'

/** A visitor and a service whose chunks pass a watch one by one. */
function watched() {
  const figures = new TunnelFigures()
  const through: string[] = []
  let time = 0
  const watcher = figuresWatch({
    figures,
    tunnel: 'web',
    now: () => time,
    clock: () => 1000 + time,
    onChange() {},
  })
  const [visitor, service] = [
    new Peer((text) => through.push(`<${text}`)),
    new Peer((text) => through.push(`>${text}`)),
  ]
  relay(visitor, service, { watch: new ConnectionWatch(watcher) })
  return {
    figures,
    through,
    asks: (text: string) => visitor.sink?.data(Buffer.from(text)),
    answers: (text: string, ms = 1) => {
      time += ms
      service.sink?.data(Buffer.from(text))
    },
    serviceEnds: () => service.sink?.end(),
    serviceBreaks: () => service.sink?.closed(new Error('it broke')),
    visitorLeaves: () => visitor.sink?.closed(undefined),
    seen: () => figures.recent.map(({ method, path, status, durationMs }) => [method, path, status, durationMs]),
  }
}

/** One end of a relay, in memory. */
class Peer implements ByteStream {
  sink: ByteSink | undefined
  readonly #onWrite: (text: string) => void

  constructor(onWrite: (text: string) => void) {
    this.#onWrite = onWrite
  }

  write(chunk: Buffer): boolean {
    this.#onWrite(chunk.toString())
    return true
  }

  attach(sink: ByteSink): void {
    this.sink = sink
  }

  end(): void {}
  reset(): void {}
  pause(): void {}
  resume(): void {}
}

test('requests and responses are seen, and pass through unchanged', () => {
  const { asks, answers, seen, through } = watched()
  asks('GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.deepEqual(seen(), [['GET', '/a?b', undefined, undefined]])
  answers('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 12)
  asks('DELETE /c HTTP/1.0\r\n\r\n')
  answers('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n', 3)
  assert.deepEqual(seen(), [
    ['DELETE', '/c', 404, 3],
    ['GET', '/a?b', 200, 12],
  ])
  assert.equal(through.length, 4)
})

test('each request has its tunnel and its time', () => {
  const { asks, answers, figures } = watched()
  asks('GET / HTTP/1.1\r\n\r\n')
  answers('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', 12)
  asks('GET /next HTTP/1.1\r\n\r\n')
  assert.deepEqual(
    figures.recent.map(({ tunnel, time, path }) => [tunnel, time, path]),
    [
      ['web', 1012, '/next'],
      ['web', 1000, '/'],
    ],
  )
})

test('a request without a response is shown as 502, one whose visitor disconnects without a status', () => {
  for (const [how, status] of [
    ['serviceEnds', 502],
    ['serviceBreaks', 502],
    ['visitorLeaves', undefined],
  ] as const) {
    const visit = watched()
    visit.asks('GET / HTTP/1.1\r\n\r\n')
    visit[how]()
    visit.serviceEnds()
    assert.deepEqual(
      visit.seen().map(([, , seen]) => seen),
      [status],
      how,
    )
  }
})

test('the first request behind a PROXY header is seen', () => {
  const { asks, seen } = watched()
  asks('PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\nGET /behind HTTP/1.1\r\n\r\n')
  assert.deepEqual(seen(), [['GET', '/behind', undefined, undefined]])
})

test('bodies that look like requests or responses are not mistaken for them', () => {
  const { asks, answers, seen } = watched()
  asks('POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\n')
  asks('GET /evil HTTP/1.1\r\n\r\n')
  answers('HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n')
  answers('HTTP/1.1 500 Evil\r\n\r\n')
  assert.deepEqual(seen(), [['POST', '/', 200, 1]])
})

test('an interim response is not the response; a change of protocol is', () => {
  const { asks, answers, seen } = watched()
  asks('POST /hint HTTP/1.1\r\n\r\n')
  answers('HTTP/1.1 100 Continue\r\n\r\n')
  answers('HTTP/1.1 103 Early Hints\r\n\r\n')
  answers('HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n')
  asks('GET /socket HTTP/1.1\r\n\r\n')
  answers('HTTP/1.1 101 Switching Protocols\r\n\r\n')
  assert.deepEqual(seen(), [
    ['GET', '/socket', 101, 1],
    ['POST', '/hint', 201, 3],
  ])
})

test('other protocols are ignored, and nothing grows without bound', () => {
  for (const text of ['', '\x16\x03\x01', 'PRI * HTTP/2.0\r\n\r\n', 'GET /cut HT', 'hello']) {
    const other = watched()
    other.asks(text)
    assert.deepEqual(other.seen(), [], text)
  }
  const { asks, answers, figures } = watched()
  for (let i = 0; i < 1000; i++) {
    asks(`GET /${'x'.repeat(1000)} HTTP/1.1\r\n\r\n`)
    answers('HTTP/1.1 204 No Content\r\n\r\n', i)
  }
  assert.equal(figures.recent.length, 50)
  assert.equal(figures.recent[0]?.path.length, 200)
  // Of the last 500, which took 500 to 999 milliseconds.
  assert.deepEqual([figures.percentile(0.5), figures.percentile(0.9)], [750, 950])
})
