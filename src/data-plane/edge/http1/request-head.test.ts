import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { HeaderList } from '../../../lib/http/header-list.ts'
import { defaultLimits } from './bounds.ts'
import { HeadFault, type HeadFaultKind } from './head-fault.ts'
import { HeadReader } from './head-reader.ts'
import { requestHead } from './head-writer.ts'
import { type ParsedRequest, parseRequestHead } from './request-head.ts'

/** The result for `text` in pieces of `size` bytes; undefined when it is not complete. */
function parse(text: string, size = text.length): ParsedRequest | HeadFaultKind | undefined {
  const bytes = Buffer.from(text, 'latin1')
  const reader = new HeadReader(defaultLimits.headBytes)
  for (let at = 0; at < bytes.length; at += size) {
    const isWhole = reader.take(bytes.subarray(at, at + size), 0)
    if (isWhole instanceof HeadFault) return isWhole.kind
    if (!isWhole) continue
    const parsed = parseRequestHead(reader, { maxHeaders: defaultLimits.headers })
    return parsed instanceof HeadFault ? parsed.kind : parsed
  }
  return undefined
}

/** Two pieces, split at every byte. */
function* splits(text: string): Generator<[Buffer, Buffer]> {
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 1; at < bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)]
}

function plain(parsed: ParsedRequest | HeadFaultKind | undefined): unknown {
  return typeof parsed === 'object' ? { ...parsed, headers: [...parsed.headers] } : parsed
}

const host = 'Host: a.example\r\n'

interface Good {
  readonly text: string
  readonly is: Partial<Omit<ParsedRequest, 'headers'>> & { readonly headers?: [string, string][] }
}

const good: Record<string, Good> = {
  'the smallest request': {
    text: `GET / HTTP/1.1\r\n${host}\r\n`,
    is: { method: 'GET', target: '/', authority: 'a.example', body: 'none', upgrade: undefined, headers: [] },
  },
  'headers in their order and spelling': {
    text: `GET /a?b=c HTTP/1.1\r\nX-One: 1\r\n${host}x-two:2\r\nX-ONE:\t 3 \t\r\n\r\n`,
    is: {
      target: '/a?b=c',
      headers: [
        ['X-One', '1'],
        ['x-two', '2'],
        ['X-ONE', '3'],
      ],
    },
  },
  'HTTP/1.0': {
    text: `POST /a HTTP/1.0\r\n${host}Content-Length: 2\r\n\r\n`,
    is: { isOld: true, closes: true, version: '1.1', authority: 'a.example', body: 2 },
  },
  'HTTP/1.0 that asks for another request': {
    text: `GET / HTTP/1.0\r\n${host}Connection: Keep-Alive\r\n\r\n`,
    is: { isOld: true, closes: false },
  },
  'HTTP/1.0 that asks for both': {
    text: `GET / HTTP/1.0\r\n${host}Connection: keep-alive\r\nConnection: close\r\n\r\n`,
    is: { isOld: true, closes: true },
  },
  'HTTP/1.0 with what it does not know': {
    text: `GET / HTTP/1.0\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nExpect: 100-continue\r\n\r\n`,
    is: { isOld: true, upgrade: undefined, expectsContinue: false },
  },
  'an empty value': {
    text: `GET / HTTP/1.1\r\n${host}A:\r\nB: \r\n\r\n`,
    is: {
      headers: [
        ['A', ''],
        ['B', ''],
      ],
    },
  },
  'spaces and bytes above ASCII within a value': {
    text: `GET / HTTP/1.1\r\n${host}A: b\t c \xe9\xff\r\n\r\n`,
    is: { headers: [['A', 'b\t c \xe9\xff']] },
  },
  'a custom method': { text: `X-PURGE! / HTTP/1.1\r\n${host}\r\n`, is: { method: 'X-PURGE!' } },
  'one empty line before': { text: `\r\nGET / HTTP/1.1\r\n${host}\r\n`, is: { target: '/' } },
  'a length': { text: `POST / HTTP/1.1\r\n${host}Content-Length: 12\r\n\r\n`, is: { body: 12, headers: [] } },
  'a length of nothing': { text: `POST / HTTP/1.1\r\n${host}content-length: 0\r\n\r\n`, is: { body: 0 } },
  chunks: {
    text: `POST / HTTP/1.1\r\n${host}Transfer-Encoding:  Chunked \r\nTrailer: x\r\n\r\n`,
    is: { body: 'unknown', headers: [] },
  },
  'the last request': { text: `GET / HTTP/1.1\r\n${host}Connection: a, Close\r\n\r\n`, is: { closes: true } },
  'a kept connection': { text: `GET / HTTP/1.1\r\n${host}Connection: keep-alive\r\n\r\n`, is: { closes: false } },
  'an expectation': {
    text: `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nExpect: 100-Continue\r\n\r\n`,
    is: { expectsContinue: true, body: 1 },
  },
  'OPTIONS for the server': { text: `OPTIONS * HTTP/1.1\r\n${host}\r\n`, is: { target: '*' } },
  'a URL': { text: `GET HTTP://A.example/b?c HTTP/1.1\r\n${host}\r\n`, is: { target: '/b?c', authority: 'a.example' } },
  'a URL without a path': { text: `GET http://a.example HTTP/1.1\r\n${host}\r\n`, is: { target: '/' } },
  'a URL with a query alone': { text: `GET http://a.example?b HTTP/1.1\r\n${host}\r\n`, is: { target: '/?b' } },
  'a URL for the server': { text: `OPTIONS http://a.example HTTP/1.1\r\n${host}\r\n`, is: { target: '*' } },
  'a path that looks like a host': { text: `GET //b.example/ HTTP/1.1\r\n${host}\r\n`, is: { target: '//b.example/' } },
  'characters that browsers leave unescaped': {
    text: `GET /a|{b}^"<\\> HTTP/1.1\r\n${host}\r\n`,
    is: { target: '/a|{b}^"<\\>' },
  },
  'a port': { text: 'GET / HTTP/1.1\r\nhOST: a-b.C_d.example:8443\r\n\r\n', is: { authority: 'a-b.C_d.example:8443' } },
  'an address': { text: 'GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n', is: { authority: '[::1]:80' } },
  'names with an underscore are dropped': {
    text: `POST / HTTP/1.1\r\n${host}Content_Length: 5\r\nTransfer_Encoding: chunked\r\nX_A: 1\r\n_: 1\r\nX-A: 2\r\n\r\n`,
    is: { body: 'none', headers: [['X-A', '2']] },
  },
  'an upgrade': {
    text: `GET / HTTP/1.1\r\n${host}Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    is: { upgrade: 'websocket' },
  },
  'an upgrade that Connection does not name': {
    text: `GET / HTTP/1.1\r\n${host}Upgrade: websocket\r\n\r\n`,
    is: { upgrade: undefined },
  },
  'h2c is not an upgrade, so a body may follow': {
    text: `POST / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\n`,
    is: { upgrade: undefined, body: 3 },
  },
  'h2c among others': {
    text: `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: H2C\r\nUpgrade: websocket/13\r\n\r\n`,
    is: { upgrade: 'websocket/13' },
  },
  'an upgrade with a length of nothing': {
    text: `GET / HTTP/1.1\r\n${host}Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: 0\r\n\r\n`,
    is: { upgrade: 'websocket', body: 0 },
  },
  'as many headers as are allowed': {
    text: `GET / HTTP/1.1\r\n${host}${'A: b\r\n'.repeat(99)}\r\n`,
    is: { method: 'GET' },
  },
  'as long as is allowed': { text: filledTo(64 * 1024), is: { method: 'GET' } },
}

/** Each has one fault. */
const bad: Record<string, Record<string, string>> = {
  malformed: {
    'no method': ` / HTTP/1.1\r\n${host}\r\n`,
    'a method that is not a token': `G(T / HTTP/1.1\r\n${host}\r\n`,
    'two spaces after the method': `GET  / HTTP/1.1\r\n${host}\r\n`,
    'a tab after the method': `GET\t/ HTTP/1.1\r\n${host}\r\n`,
    'two spaces after the target': `GET /  HTTP/1.1\r\n${host}\r\n`,
    'a space after the version': `GET / HTTP/1.1 \r\n${host}\r\n`,
    'no target': `GET HTTP/1.1\r\n${host}\r\n`,
    'no version': `GET /\r\n${host}\r\n`,
    'a version in lower case': `GET / http/1.1\r\n${host}\r\n`,
    'a version with two digits': `GET / HTTP/1.10\r\n${host}\r\n`,
    'a version with a letter': `GET / HTTP/1.x\r\n${host}\r\n`,
    'another protocol': `GET / HTTPS/1.1\r\n${host}\r\n`,
    'a fragment in the target': `GET /a#b HTTP/1.1\r\n${host}\r\n`,
    'a byte above ASCII in the target': `GET /\xc3\xa9 HTTP/1.1\r\n${host}\r\n`,
    'NUL in the target': `GET /\0 HTTP/1.1\r\n${host}\r\n`,
    'CONNECT to an authority': `CONNECT a.example:443 HTTP/1.1\r\n${host}\r\n`,
    'CONNECT to a path': `CONNECT / HTTP/1.1\r\n${host}\r\n`,
    'an authority without CONNECT': `GET a.example:443 HTTP/1.1\r\n${host}\r\n`,
    'a target of * without OPTIONS': `GET * HTTP/1.1\r\n${host}\r\n`,
    'a URL of another host': `GET http://b.example/ HTTP/1.1\r\n${host}\r\n`,
    'a URL with another port': `GET http://a.example:81/ HTTP/1.1\r\n${host}\r\n`,
    'a URL with userinfo': `GET http://u@a.example/ HTTP/1.1\r\n${host}\r\n`,
    'a URL without a host': `GET http:///a HTTP/1.1\r\n${host}\r\n`,
    'a URL of another scheme': `GET ftp://a.example/ HTTP/1.1\r\n${host}\r\n`,
    'two empty lines before': `\r\n\r\nGET / HTTP/1.1\r\n${host}\r\n`,
    'a line feed before': `\nGET / HTTP/1.1\r\n${host}\r\n`,
    'a carriage return before': `\rGET / HTTP/1.1\r\n${host}\r\n`,
    'line feeds alone': `GET / HTTP/1.1\nHost: a.example\n\n`,
    'a line feed alone after the request line': `GET / HTTP/1.1\n${host}\r\n`,
    'a line feed alone after a header': `GET / HTTP/1.1\r\nHost: a.example\nA: b\r\n\r\n`,
    'a carriage return alone in a value': `GET / HTTP/1.1\r\n${host}A: b\rc\r\n\r\n`,
    'a carriage return before the line end': `GET / HTTP/1.1\r\n${host}A: b\r\r\n\r\n`,
    'a line feed before the blank line': `GET / HTTP/1.1\r\n${host}A: b\n\r\n\r\n`,
    'a folded value': `GET / HTTP/1.1\r\n${host}A: b\r\n c\r\n\r\n`,
    'a value folded with a tab': `GET / HTTP/1.1\r\n${host}A: b\r\n\tc\r\n\r\n`,
    'a fold instead of the first header': `GET / HTTP/1.1\r\n A: b\r\n${host}\r\n`,
    'a space before the colon': `GET / HTTP/1.1\r\n${host}Content-Length : 5\r\n\r\n`,
    'a tab before the colon': `GET / HTTP/1.1\r\n${host}Transfer-Encoding\t: chunked\r\n\r\n`,
    'a header without a colon': `GET / HTTP/1.1\r\n${host}Abc\r\n\r\n`,
    'a header without a name': `GET / HTTP/1.1\r\n${host}: b\r\n\r\n`,
    'a name that is not a token': `GET / HTTP/1.1\r\n${host}A(b): c\r\n\r\n`,
    'a name above ASCII': `GET / HTTP/1.1\r\n${host}\xe9: c\r\n\r\n`,
    'NUL in a name': `GET / HTTP/1.1\r\n${host}Transfer-Encoding\0: chunked\r\n\r\n`,
    'NUL in a value': `GET / HTTP/1.1\r\n${host}A: b\0c\r\n\r\n`,
    'a bell in a value': `GET / HTTP/1.1\r\n${host}A: b\x07\r\n\r\n`,
    'DEL in a value': `GET / HTTP/1.1\r\n${host}A: b\x7f\r\n\r\n`,
    'a vertical tab before a value': `GET / HTTP/1.1\r\n${host}Transfer-Encoding:\vchunked\r\n\r\n`,
    'no Host': 'GET / HTTP/1.1\r\nA: b\r\n\r\n',
    'an empty Host': 'GET / HTTP/1.1\r\nHost:\r\n\r\n',
    'two Hosts': `GET / HTTP/1.1\r\n${host}Host: b.example\r\n\r\n`,
    'the same Host twice': `GET / HTTP/1.1\r\n${host}${host}\r\n`,
    'userinfo in Host': 'GET / HTTP/1.1\r\nHost: u:p@a.example\r\n\r\n',
    'a path in Host': 'GET / HTTP/1.1\r\nHost: a.example/b\r\n\r\n',
    'two names in Host': 'GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n',
    'a space in Host': 'GET / HTTP/1.1\r\nHost: a.example b\r\n\r\n',
    'a port that is not a number in Host': 'GET / HTTP/1.1\r\nHost: a.example:80a\r\n\r\n',
    'a byte above ASCII in Host': 'GET / HTTP/1.1\r\nHost: \xe9.example\r\n\r\n',
    'an open bracket in Host': 'GET / HTTP/1.1\r\nHost: [::1\r\n\r\n',
    'a length that is not a number': `POST / HTTP/1.1\r\n${host}Content-Length: 5a\r\n\r\n`,
    'a length with a sign': `POST / HTTP/1.1\r\n${host}Content-Length: +5\r\n\r\n`,
    'a negative length': `POST / HTTP/1.1\r\n${host}Content-Length: -5\r\n\r\n`,
    'a length in hexadecimal': `POST / HTTP/1.1\r\n${host}Content-Length: 0x5\r\n\r\n`,
    'a length with a point': `POST / HTTP/1.1\r\n${host}Content-Length: 5.0\r\n\r\n`,
    'a length with a space': `POST / HTTP/1.1\r\n${host}Content-Length: 5 5\r\n\r\n`,
    'an empty length': `POST / HTTP/1.1\r\n${host}Content-Length:\r\n\r\n`,
    'a length too large for a number': `POST / HTTP/1.1\r\n${host}Content-Length: 9007199254740993\r\n\r\n`,
    'a list of lengths': `POST / HTTP/1.1\r\n${host}Content-Length: 5, 5\r\n\r\n`,
    'the same length twice': `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 5\r\n\r\n`,
    'two lengths': `POST / HTTP/1.1\r\n${host}Content-Length: 5\r\nContent-Length: 6\r\n\r\n`,
    'CL.TE': `POST / HTTP/1.1\r\n${host}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'TE.CL': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n`,
    'TE.TE': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-encoding: cow\r\n\r\n`,
    'chunked twice': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'a list of chunked': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, chunked\r\n\r\n`,
    'a coding before chunked': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n`,
    'a coding after chunked': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked, identity\r\n\r\n`,
    'another coding': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: identity\r\n\r\n`,
    'a coding like chunked': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: xchunked\r\n\r\n`,
    'chunked with a parameter': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chunked;a=b\r\n\r\n`,
    'chunked in quotes': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: "chunked"\r\n\r\n`,
    'chunked after a comma': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: ,chunked\r\n\r\n`,
    'chunked with a Kelvin sign for k': `POST / HTTP/1.1\r\n${host}Transfer-Encoding: chun\xe2\x84\xaaed\r\n\r\n`,
    'no coding': `POST / HTTP/1.1\r\n${host}Transfer-Encoding:\r\n\r\n`,
    'an upgrade with a length': `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 5\r\n\r\n`,
    'an upgrade with chunks': `GET / HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'HTTP/1.0 without a Host': 'GET / HTTP/1.0\r\n\r\n',
    'HTTP/1.0 with two Hosts': `GET / HTTP/1.0\r\n${host}${host}\r\n`,
    'HTTP/1.0 with chunks': `POST / HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n`,
    'HTTP/1.0 with a coding': `POST / HTTP/1.0\r\n${host}Transfer-Encoding: identity\r\n\r\n`,
    'HTTP/1.0 with chunks and a length': `POST / HTTP/1.0\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    'HTTP/1.0 and more': `GET / HTTP/1.0 \r\n${host}\r\n`,
    'a TLS hello': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
  },
  version: {
    'HTTP/1.2': `GET / HTTP/1.2\r\n${host}\r\n`,
    'HTTP/0.9': `GET / HTTP/0.9\r\n${host}\r\n`,
    'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  },
  too_large: {
    'too many headers': `GET / HTTP/1.1\r\n${host}${'A: b\r\n'.repeat(100)}\r\n`,
    'too many headers that are dropped': `GET / HTTP/1.1\r\n${host}${'A_: b\r\n'.repeat(100)}\r\n`,
    'a byte too long': filledTo(64 * 1024 + 1),
    'a target without end': `GET /${'a'.repeat(64 * 1024)}`,
  },
  expectation: {
    'another expectation': `GET / HTTP/1.1\r\n${host}Expect: 200-ok\r\n\r\n`,
    'two expectations': `GET / HTTP/1.1\r\n${host}Expect: 100-continue\r\nExpect: more\r\n\r\n`,
    'a list of expectations': `GET / HTTP/1.1\r\n${host}Expect: 100-continue, 100-continue\r\n\r\n`,
  },
}

/** A request head of `length` bytes. */
function filledTo(length: number): string {
  const [begin, end] = [`GET / HTTP/1.1\r\n${host}A: `, '\r\n\r\n']
  return begin + 'b'.repeat(length - begin.length - end.length) + end
}

describe('a request head is read:', () => {
  for (const [name, { text, is }] of Object.entries(good)) {
    test(name, () => {
      const parsed = plain(parse(text))
      assert.ok(typeof parsed === 'object' && parsed !== null, `it is ${String(parsed)}`)
      assert.deepEqual({ ...parsed, ...is }, parsed)
      assert.deepEqual(plain(parse(text, 1)), parsed)
    })
  }
})

describe('a request head is refused:', () => {
  for (const [kind, cases] of Object.entries(bad)) {
    for (const [name, text] of Object.entries(cases)) {
      test(`${kind}: ${name}`, () => {
        assert.equal(plain(parse(text)), kind)
        assert.equal(plain(parse(text, 1)), kind)
      })
    }
  }
})

describe('split at every byte', () => {
  const short = (text: string): boolean => text.length < 1000
  test('a good head gives the same result', () => {
    for (const { text } of Object.values(good).filter(({ text }) => short(text))) {
      const whole = plain(parse(text))
      for (const [first, second] of splits(text)) {
        const reader = new HeadReader(defaultLimits.headBytes)
        assert.equal(reader.take(first, 0), false)
        assert.equal(reader.take(second, 0), true)
        const parsed = parseRequestHead(reader, { maxHeaders: defaultLimits.headers })
        assert.deepEqual(parsed instanceof HeadFault ? parsed : plain(parsed), whole)
        assert.equal(reader.next, second.length)
      }
    }
  })

  test('what follows a head is found', () => {
    const text = `GET / HTTP/1.1\r\n${host}\r\n`
    for (const [first, second] of splits(text)) {
      const reader = new HeadReader(defaultLimits.headBytes)
      reader.take(first, 0)
      reader.take(Buffer.concat([second, Buffer.from('rest')]), 0)
      assert.equal(reader.next, second.length)
      assert.equal(reader.isPartial, false)
    }
  })

  test('a bad head is refused at the first byte that makes it bad', () => {
    for (const text of ['GET / HTTP/1.1\n', 'GET / HTTP/1.1\rA', 'GET / HTTP/1.1\r\nA: b\r\n\rA', '\x16']) {
      assert.equal(parse(text, 1), 'malformed')
      assert.equal(parse(text), 'malformed')
      assert.equal(parse(text.slice(0, -1)), undefined)
    }
  })
})

describe('what is written is read back', () => {
  const token = fc.stringMatching(/^[!#$%&'*+.^`|~0-9A-Za-z-]{1,20}$/)
  const value = fc.stringMatching(/^([\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]{0,30}[\x21-\x7e\x80-\xff])?)?$/)
  const reserved =
    /^(host|connection|keep-alive|content-length|transfer-encoding|trailer|upgrade|expect|proxy-connection)$/i
  const header = fc.tuple(
    token.filter((name) => !reserved.test(name)),
    value,
  )
  const request = fc.record({
    method: token.filter((method) => method !== 'CONNECT'),
    target: fc.stringMatching(/^\/[!-"$-~]{0,40}$/),
    headers: fc.array(header, { maxLength: 30 }),
    body: fc.oneof(fc.constant('none' as const), fc.constant('unknown' as const), fc.maxSafeNat()),
  })
  test('whatever it is and however it is split', () => {
    fc.assert(
      fc.property(request, fc.integer({ min: 1, max: 700 }), ({ method, target, headers, body }, size) => {
        const length = typeof body === 'number' ? body % 1e15 : body
        const list = HeaderList.of([['Host', 'a.example'], ...headers])
        const text = requestHead({ method, target, headers: list, body: length, upgrade: undefined })
        const parsed = parse(text, size)
        assert.ok(typeof parsed === 'object', `it is ${JSON.stringify(parsed)}`)
        assert.deepEqual([parsed.method, parsed.target, parsed.body], [method, target, length])
        assert.deepEqual([...parsed.headers], headers)
      }),
      { numRuns: 500 },
    )
  })

  test('any bytes are read or refused, and the same in pieces', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '\r\n',
        '\r',
        '\n',
        ' ',
        '\t',
        ':',
        '\0',
        'GET',
        ' / ',
        'HTTP/1.1',
        'Host: a',
        'Content-Length: 1',
      ),
      fc.constantFrom('Transfer-Encoding: chunked', '_', '\x80', '\r\n\r\n', 'a', '#', '*', 'http://a/'),
    )
    const sound = fc.constant(`GET / HTTP/1.1\r\n${host}`)
    const text = fc.tuple(fc.option(sound), fc.array(piece, { maxLength: 12 })).map(([a, b]) => (a ?? '') + b.join(''))
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 9 }), (text, size) => {
        const [whole, pieces] = [plain(parse(text)), plain(parse(text, size))]
        // One fault or another: which comes first may depend on the pieces.
        if (typeof whole === 'string') assert.equal(typeof pieces, 'string')
        else assert.deepEqual(pieces, whole)
      }),
      { numRuns: 2000 },
    )
  })
})

describe('the name in the TLS handshake', () => {
  const authorityOf = (text: string): string => {
    const reader = new HeadReader(defaultLimits.headBytes)
    reader.take(Buffer.from(text), 0)
    const parsed = parseRequestHead(reader, { maxHeaders: 10, serverName: 'b.example' })
    return parsed instanceof HeadFault ? parsed.kind : parsed.authority
  }

  test('is the host of HTTP/1.0 without one, and of nothing else', () => {
    assert.equal(authorityOf('GET / HTTP/1.0\r\n\r\n'), 'b.example')
    assert.equal(authorityOf(`GET / HTTP/1.0\r\n${host}\r\n`), 'a.example')
    assert.equal(authorityOf('GET http://a.example/ HTTP/1.0\r\n\r\n'), 'malformed')
    assert.equal(authorityOf('GET / HTTP/1.1\r\n\r\n'), 'malformed')
  })
})
