import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { ConnectionWatch, type ExchangeEnd } from './connection-watch.ts'
import { eventFields } from './event-reader.ts'
import { unmask } from './websocket-reader.ts'

interface Seen {
  asked: string
  requestBody: string
  status: number | undefined
  responseBody: string
  readonly frames: string[]
  end: ExchangeEnd | undefined
}

function watched() {
  const all: Seen[] = []
  const watch = new ConnectionWatch({
    began({ method, target }) {
      const seen: Seen = {
        ...{ asked: `${method} ${target}`, requestBody: '', status: undefined, responseBody: '' },
        ...{ frames: [], end: undefined },
      }
      all.push(seen)
      return {
        onRequestBody(chunk) {
          seen.requestBody += chunk.toString()
        },
        onAnswered({ status }) {
          seen.status = status
        },
        onResponseBody(chunk) {
          seen.responseBody += chunk.toString()
        },
        onFrame: (from, frame) =>
          void seen.frames.push(`${from} ${frame.type} ${frame.isLast ? 'last' : 'more'} ${unmask(frame).toString()}`),
        onEvent({ bytes }) {
          const { event, id, data } = eventFields(bytes)
          seen.frames.push(`${event}/${id}/${data}`)
        },
        onEnded(how) {
          assert.equal(seen.end, undefined, 'ends once')
          seen.end = how
        },
      }
    },
  })
  return {
    all,
    watch,
    asks: (text: string) => watch.fromVisitor(Buffer.from(text, 'latin1')),
    answers: (text: string) => watch.fromService(Buffer.from(text, 'latin1')),
    shown: () => all.map(({ asked, status, responseBody, end }) => [asked, status, responseBody, end]),
  }
}

const ask = (target: string, more = ''): string => `GET ${target} HTTP/1.1\r\nHost: x\r\n${more}\r\n`
const ok = (body: string): string => `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n${body}`

describe('requests are paired with their responses', () => {
  test('one after the other, and with bodies both ways', () => {
    const { asks, answers, all } = watched()
    asks('POST /a HTTP/1.1\r\ncontent-length: 4\r\n\r\nab')
    asks('cd')
    answers('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n')
    asks(ask('/b'))
    answers(ok('two'))
    assert.deepEqual(all, [
      { asked: 'POST /a', requestBody: 'abcd', status: 200, responseBody: 'hi', frames: [], end: 'whole' },
      { asked: 'GET /b', requestBody: '', status: 200, responseBody: 'two', frames: [], end: 'whole' },
    ])
  })

  test('when they are pipelined', () => {
    const { asks, answers, shown } = watched()
    asks(ask('/1') + ask('/2') + ask('/3'))
    answers(`${ok('one')}HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n`)
    answers(ok('three'))
    assert.deepEqual(shown(), [
      ['GET /1', 200, 'one', 'whole'],
      ['GET /2', 304, '', 'whole'],
      ['GET /3', 200, 'three', 'whole'],
    ])
  })

  test('when a response has no body, whatever its head says', () => {
    const { asks, answers, shown } = watched()
    asks('HEAD /h HTTP/1.1\r\n\r\n')
    answers('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n')
    asks(ask('/none'))
    answers('HTTP/1.1 204 No Content\r\n\r\n')
    asks(ask('/next'))
    answers(ok('x'))
    assert.deepEqual(shown(), [
      ['HEAD /h', 200, '', 'whole'],
      ['GET /none', 204, '', 'whole'],
      ['GET /next', 200, 'x', 'whole'],
    ])
  })

  test('when interim responses come first', () => {
    const { asks, answers, shown, all } = watched()
    asks('POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n')
    answers('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n')
    asks('ok')
    answers(ok('done'))
    assert.deepEqual(shown(), [['POST /', 200, 'done', 'whole']])
    assert.equal(all[0]?.requestBody, 'ok')
  })

  test('when the response comes before the whole request', () => {
    const { asks, answers, all } = watched()
    asks('POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nab')
    answers(ok('no'))
    asks(`cd${ask('/next')}`)
    answers(ok('yes'))
    assert.deepEqual(
      all.map(({ requestBody, responseBody }) => [requestBody, responseBody]),
      [
        ['abcd', 'no'],
        ['', 'yes'],
      ],
    )
  })

  test('when a PROXY header comes first, in either version and in pieces', () => {
    const v2 = Buffer.concat([
      Buffer.from('\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c', 'latin1'),
      Buffer.alloc(12, '\r\n\r\n'),
    ]).toString('latin1')
    for (const header of ['PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\n', v2, '']) {
      for (const size of [1, 5, 1000]) {
        const { asks, answers, shown } = watched()
        const text = header + ask('/behind')
        for (let at = 0; at < text.length; at += size) asks(text.slice(at, at + size))
        answers(ok('x'))
        assert.deepEqual(shown(), [['GET /behind', 200, 'x', 'whole']])
      }
    }
  })
})

describe('an exchange that ends early', () => {
  for (const [name, said, how, end, body] of [
    ['without an answer', '', 'serviceEnded', 'unserved', ''],
    ['whose visitor leaves before the answer', '', 'closed', 'left', ''],
    ['in the midst of its answer', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal', 'serviceEnded', 'left', 'hal'],
    ['whose visitor leaves in the midst', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal', 'closed', 'left', 'hal'],
    ['with an answer up to the end', 'HTTP/1.0 200 OK\r\n\r\nall', 'serviceEnded', 'whole', 'all'],
  ] as const) {
    test(name, () => {
      const { asks, answers, watch, all } = watched()
      asks(ask('/'))
      if (said) answers(said)
      watch[how]()
      watch.closed()
      assert.deepEqual([all[0]?.end, all[0]?.responseBody], [end, body])
    })
  }

  test('is over when one direction cannot be parsed', () => {
    for (const broken of [
      '\x16\x03\x01 \r\n\r\n',
      'GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
    ]) {
      const { asks, answers, all } = watched()
      asks(ask('/') + broken)
      answers(ok('x'))
      assert.deepEqual([all.length, all[0]?.end, all[0]?.status], [1, 'left', undefined], JSON.stringify(broken))
    }
    const { asks, answers, all } = watched()
    asks(ask('/'))
    answers('SSH-2.0-x\r\n\r\n')
    asks(ask('/more'))
    assert.deepEqual([all.length, all[0]?.end], [1, 'left'])
  })

  test('is over when too many wait', () => {
    const { asks, all } = watched()
    for (let i = 0; i < 200; i++) asks(ask(`/${i}`))
    assert.equal(all.length, 100)
    assert.ok(all.every(({ end }) => end === 'left'))
  })
})

describe('after an upgrade', () => {
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'
  const switching = `HTTP/1.1 101 Switching Protocols\r\n${upgrade}\r\n`

  test('frames of both sides are seen, masked or not, in pieces', () => {
    const { asks, answers, watch, all } = watched()
    asks(ask('/ws', upgrade))
    answers(`${switching}\x81\x05hello`)
    const masked = `\x01\x82\x01\x02\x03\x04${String.fromCharCode(0x68 ^ 1, 0x69 ^ 2)}`
    for (const byte of masked) asks(byte)
    asks('\x80\x80\0\0\0\0')
    answers(`\x82\x7e\x01\x00${'b'.repeat(256)}`)
    answers('\x88\x02\x03\xe8')
    watch.closed()
    assert.deepEqual(all[0]?.frames, [
      'service text last hello',
      'client text more hi',
      'client continuation last ',
      `service binary last ${'b'.repeat(256)}`,
      `service close last ${Buffer.from([3, 0xe8]).toString()}`,
    ])
    assert.deepEqual([all[0]?.status, all[0]?.end], [101, 'whole'])
  })

  test('that was refused, HTTP goes on', () => {
    const { asks, answers, shown } = watched()
    asks(ask('/ws', upgrade))
    answers('HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno')
    asks(ask('/next'))
    answers(ok('x'))
    assert.deepEqual(shown(), [
      ['GET /ws', 400, 'no', 'whole'],
      ['GET /next', 200, 'x', 'whole'],
    ])
  })

  test('to another protocol, its bytes are ignored', () => {
    const { asks, answers, watch, all } = watched()
    asks(ask('/', 'Connection: Upgrade\r\nUpgrade: other\r\n'))
    answers('HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n\xff\xff\xff')
    asks('GET / HTTP/1.1\r\n\r\n')
    watch.closed()
    assert.deepEqual([all.length, all[0]?.frames, all[0]?.end], [1, [], 'whole'])
  })

  test('a frame of an unknown type ends the watching', () => {
    const { asks, answers, all } = watched()
    asks(ask('/ws', upgrade))
    answers(`${switching}\x83\x00\x81\x01x`)
    assert.deepEqual([all[0]?.frames, all[0]?.end], [[], 'whole'])
  })
})

test('events of a stream are seen as they come, in chunks of any size', () => {
  const events = 'id: 1\r\ndata: a\r\ndata:b\r\n\r\n: a comment\n\n\nevent: tick\ndata: caf\xc3\xa9\n\n'
  for (const size of [1, 3, 1000]) {
    const { asks, answers, all } = watched()
    asks(ask('/events'))
    answers('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n')
    for (let at = 0; at < events.length; at += size) {
      const part = events.slice(at, at + size)
      answers(`${part.length.toString(16)}\r\n${part}\r\n`)
    }
    assert.deepEqual(all[0]?.frames, ['message/1/a\nb', 'message//', 'tick//café'])
    assert.equal(all[0]?.end, undefined)
  }
})

test('a compressed stream of events is a body like any other', () => {
  const { asks, answers, all } = watched()
  asks(ask('/events'))
  answers('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\ndata: x\n\n')
  assert.deepEqual([all[0]?.frames, all[0]?.responseBody], [[], 'data: x\n\n'])
})

test('a watcher that fails is no longer called, and the traffic is not affected', (t) => {
  const warn = t.mock.method(process, 'emitWarning', () => {})
  let began = 0
  const watch = new ConnectionWatch({
    began() {
      began++
      throw new Error('a defect')
    },
  })
  watch.fromVisitor(Buffer.from(ask('/')))
  watch.fromVisitor(Buffer.from(ask('/')))
  watch.fromService(Buffer.from(ok('x')))
  watch.closed()
  assert.deepEqual([began, warn.mock.calls.map((call) => String(call.arguments[0]))], [1, ['Error: a defect']])
})

describe('while the watcher is full', () => {
  function resting() {
    const state = { isFull: false, leftOut: 0 }
    const seen: string[] = []
    const watch = new ConnectionWatch({
      leavesOut() {
        if (state.isFull) state.leftOut++
        return state.isFull
      },
      began({ target }) {
        seen.push(target)
        return { onAnswered: ({ status }) => void seen.push(String(status)), onEnded: (how) => void seen.push(how) }
      },
    })
    const asks = (text: string): void => watch.fromVisitor(Buffer.from(text, 'latin1'))
    const answers = (text: string): void => watch.fromService(Buffer.from(text, 'latin1'))
    return { state, seen, watch, asks, answers }
  }

  test('exchanges pass unread but counted, and are read again when there is room', () => {
    const { state, seen, asks, answers } = resting()
    asks(ask('/first'))
    answers(ok('x'))
    state.isFull = true
    for (let i = 0; i < 3; i++) {
      asks('POST /unread HTTP/1.1\r\nContent-Length: 20\r\n\r\n')
      asks('GET /body HTTP/1.1\r\n\r\n')
      answers('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n')
      answers('answer')
    }
    state.isFull = false
    asks(ask('/next'))
    answers(ok('y'))
    assert.deepEqual([seen, state.leftOut], [['/first', '200', 'whole', '/next', '200', 'whole'], 3])
  })

  test('an open exchange is read to its end', () => {
    const { state, seen, asks, answers } = resting()
    asks('POST /long HTTP/1.1\r\nContent-Length: 4\r\n\r\nab')
    state.isFull = true
    answers('HTTP/1.1 100 Continue\r\n\r\n')
    asks('cd')
    answers(ok('x'))
    asks(ask('/unread'))
    assert.deepEqual([seen, state.leftOut], [['/long', '200', 'whole'], 1])
  })

  test('what follows an interim response is not taken for a request', () => {
    const { state, seen, asks, answers } = resting()
    asks(ask('/first'))
    answers(ok('x'))
    state.isFull = true
    asks('POST /unread HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n')
    answers('HTTP/1.1 100 Continue\r\n\r\n')
    state.isFull = false
    asks('\x00\x01\x02\x03')
    answers(ok('x'))
    asks(ask('/next'))
    answers(ok('x'))
    assert.deepEqual([seen, state.leftOut], [['/first', '200', 'whole', '/next', '200', 'whole'], 1])
  })

  test('the end of the connection does not end an exchange', () => {
    const { state, seen, watch, asks, answers } = resting()
    asks(ask('/first'))
    answers(ok('x'))
    state.isFull = true
    asks(ask('/unread'))
    watch.serviceEnded()
    watch.closed()
    assert.deepEqual(seen, ['/first', '200', 'whole'])
  })
})
