import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type BodyFraming, HEAD_BYTES, HttpReader } from './http-reader.ts'

/** What is found in `pieces`; `framing` says what follows each head. */
function found(pieces: readonly Buffer[], framing: (head: string) => BodyFraming | undefined) {
  const seen: string[] = []
  let body = ''
  const reader = new HttpReader({
    head(head) {
      seen.push(head.toString('latin1').split('\r\n')[0] ?? '')
      return framing(head.toString('latin1'))
    },
    body(chunk) {
      body += chunk.toString('latin1')
    },
    ended() {
      seen.push(`=${body}`)
      body = ''
    },
    other(chunk) {
      body += chunk.toString('latin1')
    },
  })
  for (const piece of pieces) reader.read(piece)
  return { seen, rest: body, isLost: reader.isLost, reader }
}

const framed = (head: string): BodyFraming => {
  if (/chunked/.test(head)) return 'chunked'
  if (/close/.test(head)) return 'until-close'
  if (/upgrade/.test(head)) return 'other'
  return Number(/length: (\d+)/.exec(head)?.[1] ?? 0)
}

const cases: readonly (readonly [name: string, text: string, seen: readonly string[], rest?: string])[] = [
  ['two without bodies', 'a\r\n\r\nb\r\n\r\n', ['a', '=', 'b', '=']],
  ['a body of a length, and the next head', 'a\r\nlength: 3\r\n\r\nxyzb\r\n\r\n', ['a', '=xyz', 'b', '=']],
  [
    'chunks with extensions and trailers',
    'a\r\nchunked\r\n\r\n3;x=y\r\nabc\r\n0a\r\n0123456789\r\n0\r\nx: y\r\nz: \r\n\r\nb\r\n\r\n',
    ['a', '=abc0123456789', 'b', '='],
  ],
  ['no chunk at all', 'a\r\nchunked\r\n\r\n0\r\n\r\nb\r\n\r\n', ['a', '=', 'b', '=']],
  ['line breaks in a chunk', 'a\r\nchunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n', ['a', '=\r\n\r\n']],
  ['a body up to the end', 'a\r\nclose\r\n\r\nb\r\n\r\nc', ['a'], 'b\r\n\r\nc'],
  ['another protocol', 'a\r\nupgrade\r\n\r\n\x81\x00\r\n\r\n', ['a'], '\x81\x00\r\n\r\n'],
  ['empty lines before a head', '\r\n\r\na\r\n\r\n', ['a', '=']],
]

describe('HTTP/1 messages are found', () => {
  for (const [name, text, seen, rest = ''] of cases) {
    test(`${name}, however the bytes are cut`, () => {
      const bytes = Buffer.from(text, 'latin1')
      for (let size = 1; size <= bytes.length; size++) {
        const pieces: Buffer[] = []
        for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
        const got = found(pieces, framed)
        assert.deepEqual([got.seen, got.rest, got.isLost], [seen, rest, false], `in pieces of ${size}`)
      }
    })
  }
})

describe('a message that cannot be parsed ends the reading', () => {
  for (const [name, text] of [
    ['a size that is none', 'a\r\nchunked\r\n\r\nzz\r\n'],
    ['a size that is too long', `a\r\nchunked\r\n\r\n${'1'.repeat(13)}\r\n`],
    ['a size line without an end', `a\r\nchunked\r\n\r\n1;${'x'.repeat(2000)}`],
    ['a chunk that is longer than it says', 'a\r\nchunked\r\n\r\n1\r\nab\r\n'],
    ['a head without an end', 'x'.repeat(HEAD_BYTES + 1)],
    ['a trailer without an end', `a\r\nchunked\r\n\r\n0\r\n${'x'.repeat(HEAD_BYTES + 1)}`],
  ] as const) {
    test(name, () => {
      for (const pieces of [[Buffer.from(text)], text.split('').map((each) => Buffer.from(each))]) {
        assert.ok(found(pieces, framed).isLost)
      }
    })
  }

  test('an invalid head', () => {
    const { seen, isLost } = found([Buffer.from('a\r\n\r\nb\r\n\r\n')], () => undefined)
    assert.deepEqual([seen, isLost], [['a'], true])
  })
})

test('a body that ends with the stream is recognised', () => {
  assert.ok(found([Buffer.from('a\r\nclose\r\n\r\n')], framed).reader.endsWithStream)
  assert.ok(!found([Buffer.from('a\r\nlength: 3\r\n\r\nb')], framed).reader.endsWithStream)
})
