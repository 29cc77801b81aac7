import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { RESPONSE_HEAD_BYTES, RESPONSE_HEADERS } from './bounds.ts'
import { HeadFault } from './head-fault.ts'
import { HeadReader } from './head-reader.ts'
import { type ParsedResponse, parseResponseHead } from './response-head.ts'

function parse(text: string, { method = 'GET', size = text.length } = {}): ParsedResponse | HeadFault | undefined {
  const bytes = Buffer.from(text, 'latin1')
  const reader = new HeadReader(RESPONSE_HEAD_BYTES)
  for (let at = 0; at < bytes.length; at += size) {
    const isWhole = reader.take(bytes.subarray(at, at + size), 0)
    if (isWhole instanceof HeadFault) return isWhole
    if (isWhole) return parseResponseHead(reader, { method })
  }
  return undefined
}

type Facts = Partial<Omit<ParsedResponse, 'headers'>>

const good: Record<string, { text: string; method?: string; is: Facts }> = {
  'a length': {
    text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
    is: { status: 200, reason: 'OK', body: 5, framing: 'length', closes: false },
  },
  chunks: {
    text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\n',
    is: { body: 'unknown', framing: 'chunked', closes: false },
  },
  'neither, so it ends with the connection': {
    text: 'HTTP/1.1 200 OK\r\nA: b\r\n\r\n',
    is: { body: 'unknown', framing: 'until_close', closes: true },
  },
  'a farewell': {
    text: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
    is: { body: 0, closes: true },
  },
  'no reason': { text: 'HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n', is: { status: 200, reason: '' } },
  'no reason and no space for it': {
    text: 'HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n',
    is: { status: 404, reason: '' },
  },
  'a long reason': {
    text: 'HTTP/1.1 299 All  is w\xe9ll\r\nContent-Length: 0\r\n\r\n',
    is: { reason: 'All  is w\xe9ll' },
  },
  'a custom status': { text: 'HTTP/1.1 999 No\r\nContent-Length: 0\r\n\r\n', is: { status: 999 } },
  'HTTP/1.0, which is not kept': {
    text: 'HTTP/1.0 200 OK\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n',
    is: { body: 5, framing: 'length', closes: true },
  },
  'the answer to HEAD': {
    text: 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
    method: 'HEAD',
    is: { body: 5, framing: 'none', closes: true },
  },
  'the answer to HEAD in chunks': {
    text: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
    method: 'HEAD',
    is: { body: 'none', framing: 'none', closes: true },
  },
  'the answer to HEAD without a length': {
    text: 'HTTP/1.1 200 OK\r\n\r\n',
    method: 'HEAD',
    is: { body: 'none', framing: 'none', closes: true },
  },
  'the answer to HEAD, of no length': {
    text: 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    method: 'HEAD',
    is: { body: 0, framing: 'none', closes: false },
  },
  'not modified': { text: 'HTTP/1.1 304 Not\r\n\r\n', is: { body: 'none', framing: 'none', closes: false } },
  'not modified, and a length: not kept': {
    text: 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n',
    is: { body: 5, framing: 'none', closes: true },
  },
  'no content': { text: 'HTTP/1.1 204 No\r\n\r\n', is: { body: 'none', framing: 'none', closes: false } },
  'no content of no length': {
    text: 'HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n',
    is: { body: 'none', closes: false },
  },
  'no content, and a length: not kept': {
    text: 'HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n',
    is: { body: 'none', framing: 'none', closes: true },
  },
  'an interim response': { text: 'HTTP/1.1 103 Early\r\nLink: a\r\n\r\n', is: { status: 103, body: 'none' } },
}

const bad: Record<string, string> = {
  'another protocol': 'SSH-2.0-Postern\r\n\r\n',
  'a version of two digits': 'HTTP/1.10 200 OK\r\n\r\n',
  'HTTP/2': 'HTTP/2.0 200 OK\r\n\r\n',
  'an empty line before': '\r\nHTTP/1.1 200 OK\r\n\r\n',
  'two spaces': 'HTTP/1.1  200 OK\r\n\r\n',
  'a status of two digits': 'HTTP/1.1 20 OK\r\n\r\n',
  'a status of four digits': 'HTTP/1.1 2000 OK\r\n\r\n',
  'a status below 100': 'HTTP/1.1 099 OK\r\n\r\n',
  'a status with a sign': 'HTTP/1.1 +20 OK\r\n\r\n',
  'a control character in the reason': 'HTTP/1.1 200 O\x07K\r\n\r\n',
  'line feeds alone': 'HTTP/1.1 200 OK\nContent-Length: 0\n\n',
  'a folded value': 'HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n',
  'a space before the colon': 'HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\n',
  'two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n',
  'a list of lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n',
  'a length and chunks': 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n',
  'another coding': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n',
  'chunks in HTTP/1.0': 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
  'an interim response with a body': 'HTTP/1.1 103 Early\r\nContent-Length: 5\r\n\r\n',
}

describe('a response head is read:', () => {
  for (const [name, { text, method = 'GET', is }] of Object.entries(good)) {
    test(name, () => {
      const parsed = parse(text, { method })
      assert.ok(parsed !== undefined && !(parsed instanceof HeadFault), JSON.stringify(parsed))
      assert.deepEqual({ ...parsed, ...is }, parsed)
      assert.deepEqual(parse(text, { method, size: 1 }), parsed)
      assert.equal(parsed.headers.has('content-length') || parsed.headers.has('transfer-encoding'), false)
    })
  }

  test('names with an underscore are kept', () => {
    const parsed = parse('HTTP/1.1 200 OK\r\nA_b: c\r\n\r\n')
    assert.ok(parsed !== undefined && !(parsed instanceof HeadFault))
    assert.equal(parsed.headers.get('a_b'), 'c')
  })
})

describe('a response head is refused:', () => {
  for (const [name, text] of Object.entries(bad)) {
    test(name, () => {
      for (const size of [text.length, 1]) {
        const parsed = parse(text, { size })
        assert.ok(parsed instanceof HeadFault)
        assert.equal(parsed.kind, 'malformed')
      }
    })
  }

  test('too many headers, and too many bytes', () => {
    for (const text of [
      `HTTP/1.1 200 OK\r\n${'A: b\r\n'.repeat(RESPONSE_HEADERS + 1)}\r\n`,
      `HTTP/1.1 200 OK\r\nA: ${'b'.repeat(RESPONSE_HEAD_BYTES)}\r\n\r\n`,
    ]) {
      const parsed = parse(text)
      assert.ok(parsed instanceof HeadFault)
      assert.equal(parsed.kind, 'too_large')
    }
  })
})
