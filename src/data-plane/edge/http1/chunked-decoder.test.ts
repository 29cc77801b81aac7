import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { BodyEncoder } from './body-encoder.ts'
import { CHUNK_EXTENSION_BYTES, SMALL_CHUNK_BYTES, TRAILER_BYTES, TRAILERS } from './bounds.ts'
import { ChunkedDecoder } from './chunked-decoder.ts'
import { HeadFault } from './head-fault.ts'
import { Http1Outbox } from './response-outbox.ts'
import { TestStream } from './testing/test-stream.ts'

interface Decoded {
  readonly body: string
  /** What followed the body; undefined when it is not whole. */
  readonly rest: string | undefined
  readonly trailers: [string, string][]
}

function decode(text: string, size = text.length || 1): Decoded | 'refused' {
  const bytes = Buffer.from(text, 'latin1')
  const decoder = new ChunkedDecoder({ dropsUnderscores: true })
  let body = ''
  for (let at = 0; at < bytes.length; at += size) {
    const chunk = bytes.subarray(at, at + size)
    decoder.at = 0
    while (decoder.at < chunk.length && !decoder.isWhole) {
      const piece = decoder.next(chunk)
      if (piece instanceof HeadFault) return 'refused'
      body += piece?.toString('latin1') ?? ''
    }
    if (!decoder.isWhole) continue
    return { body, rest: bytes.toString('latin1', at + decoder.at), trailers: [...(decoder.trailers ?? [])] }
  }
  return { body, rest: undefined, trailers: [] }
}

const good: Record<string, { text: string; body?: string; rest?: string; trailers?: [string, string][] }> = {
  'no data': { text: '0\r\n\r\n' },
  'one chunk': { text: '5\r\nhello\r\n0\r\n\r\n', body: 'hello' },
  'several chunks': { text: '5\r\nhello\r\n1\r\n \r\n6\r\nworld!\r\n0\r\n\r\n', body: 'hello world!' },
  'sizes in either case, with zeros before': {
    text: '00a\r\n0123456789\r\nB\r\n0123456789a\r\n000\r\n\r\n',
    body: '01234567890123456789a',
  },
  'data that looks like framing': { text: '7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n', body: '\r\n0\r\n\r\n' },
  'extensions, which are dropped': { text: '5;a=b;c="d e"\r\nhello\r\n0;last\r\n\r\n', body: 'hello' },
  'what follows': { text: '1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n', body: 'a', rest: 'GET / HTTP/1.1\r\n' },
  trailers: {
    text: '1\r\na\r\n0\r\nGrpc-Status: 0\r\nX-A:  b \r\n\r\nrest',
    body: 'a',
    rest: 'rest',
    trailers: [
      ['Grpc-Status', '0'],
      ['X-A', 'b'],
    ],
  },
  'trailers that are not allowed: dropped': {
    text: `0\r\n${[
      'Content-Length: 5',
      'Transfer-Encoding: chunked',
      'Host: b',
      'Authorization: b',
      'Set-Cookie: b',
      'Content-Type: b',
      'Connection: close',
      'X_Under: b',
      'Kept: b',
    ].join('\r\n')}\r\n\r\n`,
    trailers: [['Kept', 'b']],
  },
}

const bad: Record<string, string> = {
  'no size': '\r\nhello\r\n0\r\n\r\n',
  'a size with 0x': '0x5\r\nhello\r\n0\r\n\r\n',
  'a size with a sign': '+5\r\nhello\r\n0\r\n\r\n',
  'a negative size': '-5\r\nhello\r\n0\r\n\r\n',
  'a space before the size': ' 5\r\nhello\r\n0\r\n\r\n',
  'a space after the size': '5 \r\nhello\r\n0\r\n\r\n',
  'a tab after the size': '5\t\r\nhello\r\n0\r\n\r\n',
  'a space before an extension': '5 ;a\r\nhello\r\n0\r\n\r\n',
  'a size with an underscore': '5_0\r\nhello',
  'a size that is not a number': '5g\r\nhello\r\n0\r\n\r\n',
  'a size that overflows': 'ffffffffffffffff5\r\nhello\r\n0\r\n\r\n',
  'a size with zeros without end': `${'0'.repeat(14)}5\r\nhello\r\n0\r\n\r\n`,
  'a line feed alone after the size': '5\nhello\r\n0\r\n\r\n',
  'a carriage return alone after the size': '5\rhello\r\n0\r\n\r\n',
  'two carriage returns after the size': '5\r\r\nhello\r\n0\r\n\r\n',
  'a line feed within an extension': '5;\nhello\r\n0\r\n\r\n',
  'a carriage return within an extension': '5;a\rb\r\nhello\r\n0\r\n\r\n',
  'NUL within an extension': '5;a\0b\r\nhello\r\n0\r\n\r\n',
  'extensions without end': `5;${'a'.repeat(CHUNK_EXTENSION_BYTES + 1)}`,
  'extensions without end, in many chunks': `1;${'a'.repeat(1000)}\r\na\r\n`.repeat(20),
  'data longer than its size': '5\r\nhello!\r\n0\r\n\r\n',
  'data shorter than its size': '5\r\nhell\r\n0\r\n\r\n',
  'a line feed alone after data': '5\r\nhello\n0\r\n\r\n',
  'a carriage return alone after data': '5\r\nhello\r0\r\n\r\n',
  'no end of line after data': '5\r\nhello0\r\n\r\n',
  'a line feed alone after the last chunk': '0\n\n',
  'a carriage return alone after the last chunk': '0\rA\r\n\r\n',
  'a line feed alone after the last line': '0\r\n\n',
  'a carriage return alone after the last line': '0\r\n\rA\r\n\r\n',
  'a request in the place of trailers': '0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n',
  'a trailer with a space before its colon': '0\r\nA : b\r\n\r\n',
  'a folded trailer': '0\r\nA: b\r\n c\r\n\r\n',
  'a trailer with NUL': '0\r\nA: b\0\r\n\r\n',
  'two lengths as trailers': '0\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n',
  'too many trailers': `0\r\n${'A: b\r\n'.repeat(TRAILERS + 1)}\r\n`,
  'trailers without end': `0\r\nA: ${'b'.repeat(TRAILER_BYTES)}`,
}

describe('chunks are decoded:', () => {
  for (const [name, { text, body = '', rest = '', trailers = [] }] of Object.entries(good)) {
    test(name, () => {
      for (let size = 1; size <= text.length; size++) assert.deepEqual(decode(text, size), { body, rest, trailers })
    })
  }

  test('a body that is cut short is not complete', () => {
    const text = '5\r\nhello\r\n0\r\nA: b\r\n\r\n'
    for (let length = 0; length < text.length; length++) {
      const decoded = decode(text.slice(0, length))
      assert.ok(decoded !== 'refused')
      assert.equal(decoded.rest, undefined)
    }
  })

  test('small ones that arrive together in one piece, and large ones on their own', () => {
    const large = `${SMALL_CHUNK_BYTES.toString(16)}\r\n${'L'.repeat(SMALL_CHUNK_BYTES)}\r\n`
    const small = '1\r\ns\r\n'.repeat(1000)
    const chunk = Buffer.from(`${small}${large}${small}0\r\n\r\n`)
    const decoder = new ChunkedDecoder({ dropsUnderscores: true })
    const pieces: string[] = []
    while (!decoder.isWhole) {
      const piece = decoder.next(chunk)
      if (Buffer.isBuffer(piece)) pieces.push(piece.toString())
    }
    assert.deepEqual(pieces.slice(0, 2), ['s'.repeat(1000), 'L'.repeat(SMALL_CHUNK_BYTES)])
    assert.deepEqual([pieces.length, pieces.slice(2).join('')], [4, 's'.repeat(1000)])
  })

  test('without copying', () => {
    const chunk = Buffer.from('5\r\nhello\r\n')
    const piece = new ChunkedDecoder({ dropsUnderscores: true }).next(chunk)
    assert.ok(Buffer.isBuffer(piece))
    assert.equal(piece.buffer, chunk.buffer)
  })
})

describe('chunks are refused:', () => {
  for (const [name, text] of Object.entries(bad)) {
    test(name, () => {
      assert.equal(decode(text), 'refused')
      assert.equal(decode(text, 1), 'refused')
    })
  }
})

test('what is encoded in chunks is decoded unchanged', () => {
  const trailer = fc.tuple(fc.stringMatching(/^x-[a-z]{1,8}$/), fc.stringMatching(/^[a-z]{0,8}$/))
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 10 }),
      fc.array(trailer, { maxLength: 3 }),
      fc.integer({ min: 1, max: 60 }),
      (pieces, trailers, size) => {
        const stream = new TestStream()
        const owner = { bodyMoved() {}, bodySent() {}, bodyCut: () => assert.fail() }
        const out = new Http1Outbox(stream)
        const encoder = new BodyEncoder('chunked', out, owner)
        for (const piece of pieces) encoder.write(Buffer.from(piece))
        encoder.end(trailers.length > 0 ? HeaderList.of(trailers) : undefined)
        out.flush()
        const body = Buffer.concat(pieces).toString('latin1')
        assert.deepEqual(decode(stream.sent, size), { body, rest: '', trailers })
      },
    ),
    { numRuns: 500 },
  )
})
