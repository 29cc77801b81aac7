import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { interimHead, lastChunk, requestHead, responseHead, upgradeHead } from './head-writer.ts'

const none = new HeaderList()

describe('a head is written:', () => {
  test('a request with a length', () => {
    const headers = HeaderList.of([
      ['Host', 'a'],
      ['x-B', 'c\xe9'],
    ])
    assert.equal(
      requestHead({ method: 'PUT', target: '/a?b', headers, body: 5, upgrade: undefined }),
      'PUT /a?b HTTP/1.1\r\nHost: a\r\nx-B: c\xe9\r\nContent-Length: 5\r\n\r\n',
    )
  })

  test('a request for another protocol', () => {
    const headers = HeaderList.of([
      ['Connection', 'x'],
      ['Upgrade', 'h2c'],
    ])
    assert.equal(
      requestHead({ method: 'GET', target: '/', headers, body: 'none', upgrade: 'websocket' }),
      'GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
  })

  test('headers about framing and the connection are only ours', () => {
    const names = ['Content-Length', 'TRANSFER-ENCODING', 'connection', 'Keep-Alive', 'Trailer', 'Proxy-Connection']
    const headers = HeaderList.of(names.map((name) => [name, 'x']))
    const head = { status: 200, reason: '', headers, body: 'unknown' } as const
    assert.equal(
      responseHead(head, { body: 'unknown', closes: true }),
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n',
    )
    const request = requestHead({ method: 'GET', target: '/', headers, body: 'none', upgrade: undefined })
    assert.equal(request, 'GET / HTTP/1.1\r\n\r\n')
  })

  test('a given reason, the usual one, and none', () => {
    const line = (status: number, reason: string): string =>
      responseHead({ status, reason, headers: none, body: 'none' }, { body: 'none', closes: false })
    assert.equal(line(200, 'Fine'), 'HTTP/1.1 200 Fine\r\n\r\n')
    assert.equal(line(404, ''), 'HTTP/1.1 404 Not Found\r\n\r\n')
    assert.equal(line(799, ''), 'HTTP/1.1 799 \r\n\r\n')
  })

  test('a 101 names what the upstream chose, or else what was requested', () => {
    const head = { status: 101, reason: '', body: 'none' } as const
    const chosen = HeaderList.of([
      ['Upgrade', 'websocket'],
      ['Connection', 'Upgrade'],
      ['Sec-WebSocket-Accept', 'x'],
    ])
    assert.equal(
      upgradeHead({ ...head, headers: chosen }, 'other'),
      'HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
    )
    assert.match(upgradeHead({ ...head, headers: none }, 'other'), /\r\nUpgrade: other\r\n/)
  })

  test('allowed trailers', () => {
    const trailers = HeaderList.of([
      ['Grpc-Status', '0'],
      ['Content-Length', '5'],
      ['X-Split', 'a\r\nb'],
      ['X Y', 'a'],
    ])
    assert.equal(lastChunk(trailers), '0\r\nGrpc-Status: 0\r\n\r\n')
  })
})

describe('a head that would split or change is not written:', () => {
  // U+010D and U+010A are cut down to CR and LF when they are written as bytes.
  const unfit = ['a\r\nb: c', 'a\nb', 'a\rb', 'a\0b', 'a\u010d\u010ab', 'a\x7fb', '\u20ac', '\x1b']
  for (const value of unfit) {
    test(JSON.stringify(value), () => {
      const inValue = HeaderList.of([['A', value]])
      const inName = HeaderList.of([[value, 'b']])
      for (const headers of [inValue, inName]) {
        const head = { status: 200, reason: '', headers, body: 'none' } as const
        assert.throws(() => responseHead(head, { body: 0, closes: false }))
        assert.throws(() => requestHead({ method: 'GET', target: '/', headers, body: 'none', upgrade: undefined }))
        assert.throws(() => interimHead(103, headers))
        assert.throws(() => upgradeHead({ ...head, status: 101 }, 'a'))
      }
      const request = { method: 'GET', target: '/', headers: none, body: 'none', upgrade: undefined } as const
      assert.throws(() => requestHead({ ...request, target: `/${value}` }))
      assert.throws(() => requestHead({ ...request, method: `G${value}` }))
      assert.throws(() => requestHead({ ...request, upgrade: value }))
      const head = { status: 200, reason: value, headers: none, body: 'none' } as const
      assert.throws(() => responseHead(head, { body: 0, closes: false }))
      assert.throws(() => upgradeHead({ ...head, reason: '' }, value))
    })
  }

  test('a target or a method with a space, a name with a colon, an invalid status or length', () => {
    const request = { method: 'GET', target: '/', headers: none, body: 'none', upgrade: undefined } as const
    assert.throws(() => requestHead({ ...request, target: '/a HTTP/1.1' }))
    assert.throws(() => requestHead({ ...request, method: 'GET /x' }))
    assert.throws(() => requestHead({ ...request, target: '' }))
    for (const name of ['A:B', 'A B', '']) {
      assert.throws(() => requestHead({ ...request, headers: HeaderList.of([[name, 'b']]) }))
    }
    for (const body of [-1, 0.5, Number.NaN, 2 ** 53]) assert.throws(() => requestHead({ ...request, body }))
    for (const status of [0, 99, 1000, Number.NaN, 200.5]) {
      const head = { status, reason: '', headers: none, body: 'none' } as const
      assert.throws(() => responseHead(head, { body: 0, closes: false }))
    }
  })
})
